"""A pipeline for each door on a live Airflow, its dates as a wish finds them, and what is computed of them."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from fuzz.doors.stages import REFUSED_MONTH, SLOW_MONTH
from fuzz.doors.wishes import STAGES, Door, Standing, Wish
from tests.conftest import QUICK_JAVA, free_port
from tests.e2e.driven_airflow import DrivenAirflow
from tests.e2e.stack import Stack, until

from stagehold.checkpoints.releasing import as_released
from stagehold.errors import AirflowRefused
from stagehold.ledger.ledger import Ledger
from stagehold.local.airflow_client import DagRun
from stagehold.local.control import start_supervisor, stop_supervisor
from stagehold.model.records import Cell
from stagehold.run.faults import FaultAction, Point, inject
from stagehold.settings import Settings

PATIENCE_SECONDS, RUN_SECONDS = 150, 600  # with an Airflow that shares its machine with others
TIME_OF_DAY = timedelta(hours=2)
FIRST_YEAR = 2001  # Each door has a year of its own: a fault is armed for a date, and hits whichever pipeline comes.
WHOLE_DAY = "10-15"
MONTHS = {Standing.BLOCKED: REFUSED_MONTH, Standing.GOES_ON: SLOW_MONTH}  # of other dates: from January on
BEGIN_WHOLE = (Standing.WHOLE, Standing.RELEASED, Standing.HALF_RESTORED)
PIPELINE = """\
pipeline: {name}
schedule: "0 2 * * *"
release: keep
wave: 100ms
restart: {{strategy: none}}
params: {{most: 100}}
stages:
  drafts:
    job: fuzz.doors.stages:drafts
    source: {{kind: parquet, path: "${{lake}}/raw/doors/*.parquet", splits: 2}}
  edits:
    job: fuzz.doors.stages:edits
    inputs: {{drafts: {{exchange: keyed, key: k}}}}
    key: k
    partitions: 2
    gate: doors
  totals:
    job: fuzz.doors.stages:totals
    inputs: {{edits: gather}}
    output: {{type: blocking_persistent, table: marts.{name}}}
"""
SUITE = """\
suite: doors
expectations:
  - {type: expect_column_values_to_not_be_null, column: v, severity: critical}
"""
AMOUNTS = ((7, 8, 21), (20, 3, 45))


@dataclass(frozen=True)
class Place:
    """A door's pipeline on a stack."""

    stack: Stack
    door: Door

    @staticmethod
    def of(stack: Stack, door: Door) -> Place:
        return Place(replace(stack, pipeline=pipeline_of(door)), door)

    @property
    def pipeline(self) -> str:
        return self.stack.pipeline

    @property
    def airflow(self) -> DrivenAirflow:
        return self.stack.airflow

    def dates_of(self, wish: Wish) -> list[str]:
        """The dates of a wish: of one that is whole always the same, as it is whole again afterwards, and others that
        nobody used yet.
        """
        if len(wish.dates) == 1 and wish.dates[0] in BEGIN_WHOLE:
            return [f"{self._year}-{WHOLE_DAY}"]
        start = date(self._year, MONTHS.get(wish.dates[0], 1), 1)
        starts = (start + timedelta(days=len(wish.dates) * times) for times in count())
        spans = ([(first + timedelta(days=later)).isoformat() for later in range(len(wish.dates))] for first in starts)
        return next(filter(self._are_unused, spans))

    @property
    def _year(self) -> int:
        return FIRST_YEAR + [*Door].index(self.door)

    def _are_unused(self, dates: Sequence[str]) -> bool:
        with Ledger.open(self.stack.settings.ledger_url) as ledger:
            known = any(ledger.partitions.knows(self.pipeline, day) for day in dates)
        return not known and not self.airflow.dates(self.pipeline, moment(dates[0]), moment(dates[-1]))

    def prepare(self, wish: Wish, dates: Sequence[str]) -> Mapping[str, DagRun]:
        """Have the dates stand as the wish finds them. Gives the newest run of each date that has run."""
        pairs = [pair for pair in zip(dates, wish.dates, strict=True) if pair[1] is not Standing.NEVER]
        begun = {day: self._begin(day, standing) for day, standing in pairs}
        return {day: self._prepared(begun[day], day, standing) for day, standing in pairs}

    def _begin(self, day: str, standing: Standing) -> DagRun:
        if standing is Standing.FAILED:
            self._fail("edits", day)
        known = self.airflow.dates(self.pipeline, moment(day), moment(day)).get(moment(day))
        return known or tried(lambda: self.airflow.trigger(self.pipeline, logical_date=moment(day)))

    def _prepared(self, run: DagRun, day: str, standing: Standing) -> DagRun:
        """The run as soon as the date stands as it should."""
        if standing is Standing.GOES_ON:
            until(lambda: self.airflow.run(run.dag_id, run.run_id).state == "running", "the run goes on")
            return run
        self._ended(run, "failed" if standing in (Standing.FAILED, Standing.BLOCKED) else "success")
        if standing is Standing.RELEASED:
            self._release(day)
        if standing is not Standing.HALF_RESTORED:
            return run
        self._fail("totals", day)
        asked = {"interval": day, "restore_from_stage": "edits"}
        return self._ended(tried(lambda: self.airflow.trigger(self.pipeline, conf=asked)), "failed")

    def _ended(self, run: DagRun, state: str) -> DagRun:
        ended = self.airflow.wait(run, RUN_SECONDS)
        assert ended.state == state, f"{run} is {ended.state}: {self.stack.failures(run)}"
        return ended

    def _fail(self, stage: str, day: str) -> None:
        inject(self.stack.settings.home_path, Point.AFTER_WRITE, stage, 1, FaultAction.FAIL, day)

    def _release(self, day: str) -> None:
        """As the end of a later run does, when `retain` says so."""
        with Ledger.open(self.stack.settings.ledger_url) as ledger:
            lease = ledger.leases.acquire(f"{self.pipeline}/{day}/drafts", "fuzz.doors", 60)
            newest = ledger.partitions.newest(Cell(self.pipeline, "drafts", day))
            ledger.partitions.record([as_released(record, datetime.now(UTC)) for record in newest], lease)
            ledger.leases.release(lease)

    def computed(self, since: datetime) -> dict[str, dict[str, list[int]]]:
        """Epochs in which partitions were computed since then, by interval and stage, whoever did it."""
        found: dict[str, dict[str, list[int]]] = {}
        with Ledger.open(self.stack.settings.ledger_url) as ledger:
            for day in ledger.partitions.intervals(self.pipeline):
                for stage in STAGES:
                    history = ledger.partitions.history(Cell(self.pipeline, stage, day))
                    new = [
                        one for one in history if one.recorded_at >= since and one.state.has_data and not one.taken_over
                    ]
                    if new:
                        found.setdefault(day, {})[stage] = sorted(one.epoch for one in new)
                        self._refuse_twice(day, stage, Counter(one.partition for one in new))
        return found

    def _refuse_twice(self, day: str, stage: str, times: Mapping[int, int]) -> None:
        twice = [partition for partition, count in times.items() if count > 1]
        assert not twice, f"{stage}{twice} of {day} was computed more than once"

    def note(self, run: DagRun) -> str:
        """What a person reads first of the run in Airflow."""
        return str(self.airflow._send("GET", address(run))["note"] or "")

    def logs(self, run: DagRun) -> str:
        """What its tasks logged."""
        tasks = self.airflow.tasks(run.dag_id, run.run_id).items()
        begun = [(task_id, task.number) for task_id, task in tasks if task.number and task.started_at]
        return "\n".join(self.stack.log(run, task_id, number) for task_id, number in begun)


def address(run: DagRun) -> str:
    return f"/api/v2/dags/{run.dag_id}/dagRuns/{quote(run.run_id, safe='')}"


def pipeline_of(door: Door) -> str:
    return f"door_{door.name.lower()}"


def moment(day: str) -> datetime:
    """When the schedule is due on a day."""
    return datetime.fromisoformat(day).replace(tzinfo=UTC) + TIME_OF_DAY


def tried(call: Callable[[], Any]) -> Any:
    """On SQLite, Airflow gives up when its scheduler writes at the same moment."""
    got: list[Any] = []

    def accepted() -> bool:
        try:
            got.append(call())
        except AirflowRefused as refused:
            if refused.status in (500, 503):
                return False
            raise
        return True

    until(accepted, "Airflow answers")
    return got[0]


def declare(settings: Settings, doors: Sequence[Door]) -> None:
    """The pipelines of these doors, with their suite and rows."""
    for door in doors:
        name = pipeline_of(door)
        (Path(settings.pipelines) / f"{name}.yaml").write_text(PIPELINE.format(name=name))
    (Path(settings.suites) / "doors.yaml").write_text(SUITE)
    folder = Path(settings.lake_uri) / "raw" / "doors"
    folder.mkdir(parents=True, exist_ok=True)
    for number, amounts in enumerate(AMOUNTS):
        file = folder / f"{number}.parquet"
        if not file.exists():  # of a folder that is used again: another file is another source
            pq.write_table(pa.table({"amount": pa.array(amounts, pa.int64())}), file)


@contextmanager
def started(folder: Path, doors: Sequence[Door]) -> Iterator[Stack]:
    """A stack of its own in ``folder``, which is stopped in the end."""
    for part in ("pipelines", "suites"):
        shutil.rmtree(folder / part, ignore_errors=True)
        (folder / part).mkdir(parents=True)
    settings = Settings(
        home=str(folder / "home"),
        pipelines=str(folder / "pipelines"),
        suites=str(folder / "suites"),
        spark_port=free_port(),
        airflow_port=free_port(),
        spark_java_options=QUICK_JAVA,
        spark_slots=32,
    )
    declare(settings, doors)
    start_supervisor(settings, print)
    try:
        with DrivenAirflow.local(settings) as airflow:
            airflow._http.timeout = PATIENCE_SECONDS
            for door in doors:
                airflow.await_dag(pipeline_of(door), PATIENCE_SECONDS)
            yield Stack(settings, airflow)
    finally:
        stop_supervisor(settings)
