"""Tasks that start before what they read is there, against a real ledger."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.lake.paper_table import PaperTable
from tests.ledger.samples import RUN_ENDS

from stagehold.errors import InputsNeverCame
from stagehold.lake.store.location import table_location
from stagehold.ledger.ledger import Ledger
from stagehold.model.partition_set import Share
from stagehold.model.records import AttemptState, Cell, Run, RunState
from stagehold.plan.split.regions import stage_regions
from stagehold.run.here.awaited_inputs import WaitingClock, await_inputs
from stagehold.run.planning.planning import IntervalView, RunRequest
from stagehold.run.planning.task import RegionTask
from stagehold.settings import Settings
from stagehold.spec.loading.loader import build_pipeline


class QuickClock(WaitingClock):
    """Two minutes pass in a second."""

    def now(self) -> float:
        return 120 * time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds / 25)


JOBS = "def first(ctx, source): ...\ndef second(ctx, first): ...\n"
PARTITIONS = 4


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "work.py").write_text(JOBS)
    (tmp_path / "home" / "lake" / "x").mkdir(parents=True)
    for number in range(PARTITIONS):
        pq.write_table(pa.table({"n": [number]}), tmp_path / "home" / "lake" / "x" / f"{number}.parquet")
    return Settings(home=str(tmp_path / "home"), project=str(tmp_path), suites=str(tmp_path))


def task(settings: Settings, exchange: str, share: Share | None = None) -> RegionTask:
    source = {"kind": "parquet", "path": "${lake}/x/*.parquet", "splits": PARTITIONS}
    edge = {"first": {"exchange": "keyed", "key": "n"}} if exchange == "keyed" else {"first": exchange}
    second = {"job": "work:second", "inputs": edge, "partitions": PARTITIONS}
    stages = {"first": {"job": "work:first", "source": source, "output": {"type": "blocking"}}, "second": second}
    project = Path(settings.project)
    pipeline = build_pipeline(
        {"pipeline": "p", "schedule_mode": "eager", "stages": stages}, project=project, suites=project
    )
    region = next(region for region in stage_regions(pipeline) if region.name == "second")
    return RegionTask(RunRequest(pipeline, "r1", "day", {}), region, "owner", "airflow", share=share)


def finish(wanted: RegionTask, settings: Settings, *partitions: int) -> None:
    """Record partitions of the first stage as consumable, as this run wants them."""
    with Ledger.open(settings.ledger_url) as ledger:
        keys = IntervalView.of_run(RunRequest(wanted.pipeline, "r1", "day", {}), ledger, settings).plan.of("first")
        lease = ledger.leases.take("first", None, "the test", 60, lambda _: True)
        table = PaperTable(table_location(settings.lake_uri, "p", wanted.pipeline.stage("first"), "day"), lease.epoch)
        cell, now = Cell("p", "first", "day"), datetime.now(UTC)
        made = (table if Path(table.location.uri).exists() else table.create()).publish(
            {partition: [("a", partition)] for partition in partitions}
        )
        ledger.partitions.record(
            [
                replace(one, cell=cell, run_id="r1", compute_key=str(keys[one.partition].key), recorded_at=now)
                for one in made
            ],
            lease,
        )


def waits(wanted: RegionTask, settings: Settings) -> threading.Thread:
    thread = threading.Thread(
        target=await_inputs, args=(wanted, settings, lambda line: None, QuickClock()), daemon=True
    )
    thread.start()
    return thread


@pytest.mark.parametrize(
    ("exchange", "share", "first", "rest"),
    [
        pytest.param("forward", Share(2, 3), (2,), (3,), id="a share waits for its own partitions"),
        pytest.param("forward", None, (0, 1, 2), (3,), id="a task for everything waits for everything"),
        pytest.param("keyed", Share(2, 3), (0, 2, 3), (1,), id="a share that reads by key waits for everything"),
    ],
)
def test_a_task_starts_as_soon_as_what_it_reads_is_consumable(settings, exchange, share, first, rest):
    wanted = task(settings, exchange, share)
    thread = waits(wanted, settings)
    finish(wanted, settings, *first)
    thread.join(0.5)
    assert thread.is_alive()
    finish(wanted, settings, *rest)
    thread.join(10)
    assert not thread.is_alive()


def test_what_an_earlier_run_left_is_not_waited_for(settings):
    wanted = task(settings, "forward")
    finish(wanted, settings, *range(PARTITIONS))
    waited = await_inputs(wanted, settings, lambda line: None)
    with Ledger.open(settings.ledger_url) as ledger:
        assert ledger.attempts.of_run("r1") == (waited,)
        assert (waited.state, ledger.runs.get("r1").state) == (AttemptState.CREATED, RunState.CREATED)


def test_code_that_changed_since_makes_it_wait_for_this_runs_own(settings):
    wanted = task(settings, "forward")
    finish(wanted, settings, *range(PARTITIONS))
    (Path(settings.project) / "work.py").write_text(JOBS.replace("source): ...", "source): return source"))
    thread = waits(wanted, settings)
    thread.join(0.3)
    assert thread.is_alive()
    finish(wanted, settings, *range(PARTITIONS))
    thread.join(10)
    assert not thread.is_alive()


def test_the_wait_has_an_end(settings):
    wanted = task(settings, "forward", Share(0, 1))
    with pytest.raises(InputsNeverCame, match="first 0, 1"):
        await_inputs(wanted, replace(settings, input_seconds=0), lambda line: None)


def test_a_run_that_failed_and_is_not_tried_again_is_not_waited_for(settings):
    wanted = task(settings, "forward")
    with Ledger.open(settings.ledger_url) as ledger:
        ledger.runs.start(Run("r1", "p", "day", "airflow", RunState.RUNNING, datetime.now(UTC)))
        ledger.runs.apply("r1", *RUN_ENDS[RunState.FAILED])
    with pytest.raises(InputsNeverCame):
        await_inputs(wanted, settings, lambda line: None, QuickClock())
