"""Intervals of the sample pipeline written into the ledger by hand, as runs and attempts would have left them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from sqlalchemy import delete, insert, literal, select, true, update
from tests.airflow.made_runs import make_sources

from stagehold.airflow.answering.kept_standings import kept_standings
from stagehold.ledger.attempts import Failure
from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.rows import row_of
from stagehold.ledger.database.schema import attempts, gate_results, partitions, pins, runs
from stagehold.ledger.ledger import Ledger
from stagehold.model.choices import Severity
from stagehold.model.records import (
    Attempt,
    AttemptState,
    Cell,
    DataFile,
    FailureClass,
    GateResult,
    PartitionRecord,
    Run,
    RunState,
)
from stagehold.model.standing import PartitionState
from stagehold.model.states import UNTIL_RUNNING, AttemptEvent, RunEvent
from stagehold.settings import load_settings

PIPELINE = "shipping_priority"
TAB = f"/dags/{PIPELINE}/plugin/stagehold-intervals"
SPLITS = 16
STAGES = {
    **dict.fromkeys(("customer", "orders", "lineitem", "orders_by_customer", "shipping_priority"), SPLITS),
    "top_orders": 1,
}
GATED = ("shipping_priority", "top_orders")
FIRST = date(2026, 9, 1)
SHOWN, DAYS = 20, 27  # of a page, and all that are made
FAILED, BLOCKED, REUSED, WARNED, RECOVERED = DAYS - 3, DAYS - 5, DAYS - 7, DAYS - 9, DAYS - 11
FAILURE = "Spark lost its server in the middle of the stage."


def day(number: int) -> str:
    return (FIRST + timedelta(days=number)).isoformat()


def at(interval: str) -> datetime:
    return datetime.fromisoformat(interval).replace(hour=2, tzinfo=UTC)


@contextmanager
def emptied_ledger() -> Iterator[Ledger]:
    """Without what other tests have left of the pipeline; nothing is left to them either."""
    with Ledger.open(load_settings().ledger_url) as ledger:
        _empty()
        yield ledger
        _empty()


def _empty() -> None:
    with Database(load_settings().ledger_url).writing() as connection:
        for table in (runs, attempts, partitions, gate_results, pins):
            connection.execute(delete(table).where(table.c.pipeline == PIPELINE))
    kept_standings.cache_clear()  # nothing but a test deletes what is on record of partitions


@dataclass(frozen=True)
class MadeRun:
    """A run for one interval, which began ``hours`` after it was due."""

    ledger: Ledger
    interval: str
    name: str = "scheduled"
    hours: float = 0.0

    @property
    def run_id(self) -> str:
        return f"{PIPELINE}/{self.name}__{self.interval}"

    @property
    def began(self) -> datetime:
        return at(self.interval) + timedelta(hours=self.hours)

    def begin(self) -> MadeRun:
        self.ledger.runs.start(Run(self.run_id, PIPELINE, self.interval, "airflow", RunState.RUNNING, self.began))
        return self

    def end(self, *events: RunEvent) -> None:
        self.ledger.runs.apply(self.run_id, *(events or (RunEvent.ALL_FINISHED,)))

    def date_end(self, hours: float) -> None:
        """It ended so long after it began, and not when the test wrote it."""
        with Database(load_settings().ledger_url).writing() as connection:
            of_run = update(runs).where(runs.c.run_id == self.run_id)
            connection.execute(of_run.values(ended_at=self.began + timedelta(hours=hours)))

    def fail(self) -> None:
        self.end(RunEvent.FAIL, RunEvent.ALL_ENDED)

    def attempt(
        self,
        stage: str,
        done: Sequence[int] = (),
        *,
        failure: str | None = None,
        state: PartitionState = PartitionState.CONSUMABLE,
        refused: tuple[str, ...] = (),
        size: float = 1.0,
        ends: bool = True,
    ) -> str:
        """One that records these partitions, and then fails if there is a failure."""
        lease = self.ledger.leases.acquire(f"{PIPELINE}/{self.interval}/{stage}", "the test", 60)
        attempt_id = f"{self.run_id}.{stage}.{lease.epoch}"
        started = self.began + timedelta(minutes=lease.epoch)
        made = Attempt(
            attempt_id, self.run_id, PIPELINE, self.interval, stage, lease.epoch, AttemptState.RUNNING, started
        )
        self.ledger.attempts.create(made, *UNTIL_RUNNING)
        records = [self.record(stage, number, attempt_id, lease.epoch, size) for number in done]
        self.ledger.partitions.record([replace(one, state=state, refused=refused) for one in records], lease)
        if failure is not None:
            told = Failure(failure, FailureClass.RECOVERABLE, "anything_else")
            self.ledger.attempts.apply(attempt_id, AttemptEvent.FAIL, failure=told)
        elif ends:
            self.ledger.attempts.apply(attempt_id, AttemptEvent.REPORTED_FINISHED)
        if ends or failure is not None:
            self.ledger.leases.release(lease)
        return attempt_id

    def record(self, stage: str, partition: int, attempt_id: str, epoch: int, size: float) -> PartitionRecord:
        rows = int(size * (100 + partition))
        return PartitionRecord(
            cell=Cell(PIPELINE, stage, self.interval),
            partition=partition,
            state=PartitionState.CONSUMABLE,
            run_id=self.run_id,
            attempt_id=attempt_id,
            epoch=epoch,
            wave=0,
            table=f"/lake/{stage}",
            version=1,
            files=(DataFile(f"_data/{attempt_id}/0/{partition}.parquet", 1000 * rows, rows),),
            rows=rows,
            fingerprint=f"{partition}",
            compute_key="key",
            recorded_at=self.began + timedelta(minutes=epoch),
            seconds=0.5 * size,
            judged="suite" if stage in GATED else "",
        )

    def warn(self, stage: str, partitions: Sequence[int], severity: Severity = Severity.WARNING) -> None:
        cell = Cell(PIPELINE, stage, self.interval)
        self.ledger.gates.record(
            [
                GateResult(cell, number, "judge", stage, "expect_less", False, "more", self.began, severity)
                for number in partitions
            ]
        )


def make_whole(ledger: Ledger, interval: str, size: float = 1.0, stages: Mapping[str, int] = STAGES) -> MadeRun:
    """A run that computed all of its interval at once."""
    run = MadeRun(ledger, interval).begin()
    for stage, count in stages.items():
        run.attempt(stage, range(count), size=size)
    run.end()
    return run


def make_failed(ledger: Ledger, interval: str, stage: str, done: int) -> MadeRun:
    """A run that failed at a stage after so many partitions of it."""
    run = MadeRun(ledger, interval).begin()
    for name, count in STAGES.items():
        if name == stage:
            run.attempt(name, range(done), failure=FAILURE)
            break
        run.attempt(name, range(count))
    run.fail()
    return run


def make_huge(ledger: Ledger, interval: str, partitions_each: int) -> None:
    """A run with very many partitions of its first four stages, which are copies of one another."""
    run = MadeRun(ledger, interval).begin()
    for stage in list(STAGES)[:4]:
        run.attempt(stage, [0])
    run.end()
    first = select(literal(1).label("number"))
    numbers = first.cte("numbers", recursive=True)
    numbers = numbers.union_all(select(numbers.c.number + 1).where(numbers.c.number < partitions_each - 1))
    copied = [one for one in partitions.c if one.name not in ("id", "partition")]
    many = select(*copied, numbers.c.number).join(numbers, true()).where(partitions.c.run_id == run.run_id)
    with Database(load_settings().ledger_url).writing() as connection:
        connection.execute(insert(partitions).from_select([*(one.name for one in copied), "partition"], many))


def make_many_runs(intervals: Iterable[str]) -> None:
    """Runs that have not got to do anything."""
    begun = (Run(f"{PIPELINE}/old__{one}", PIPELINE, one, "cli", RunState.FINISHED, at(one)) for one in intervals)
    with Database(load_settings().ledger_url).writing() as connection:
        connection.execute(insert(runs), [row_of(one) for one in begun])


@contextmanager
def made_weeks() -> Iterator[Ledger]:
    """Four weeks in which some nights went wrong."""
    make_sources(Path(load_settings().lake_uri))  # without which nothing can be planned
    with emptied_ledger() as ledger:
        make_many_runs(day(number) for number in range(DAYS - SHOWN))
        for number in range(DAYS - SHOWN, DAYS):
            _make_night(ledger, number)
        MadeRun(ledger, day(WARNED)).warn("shipping_priority", [2, 3])
        blocked = MadeRun(ledger, day(BLOCKED)).begin()
        refused = {"state": PartitionState.BLOCKED, "refused": ("no nulls",), "failure": "refused"}
        blocked.attempt("shipping_priority", [14, 15], **refused)
        blocked.fail()
        again = MadeRun(ledger, day(REUSED), "backfill", hours=30).begin()
        for stage, count in STAGES.items():
            again.attempt(stage, range(count) if stage in GATED else ())
        again.end()
        yield ledger


def _make_night(ledger: Ledger, number: int) -> None:
    if number not in (FAILED, RECOVERED):
        make_whole(ledger, day(number), 1 + number / 10)
        return
    run = make_failed(ledger, day(number), "orders_by_customer", 5)
    if number == RECOVERED:
        run.begin()
        for stage, first in (("orders_by_customer", 5), ("shipping_priority", 0), ("top_orders", 0)):
            run.attempt(stage, range(first, STAGES[stage]))
        run.end()
