"""Runs made by hand, in Airflow's metadata database and in the ledger,
as a scheduler and attempts would have left them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from pyspark.sql.types import IntegerType, LongType, StructType

from stagehold.gates.suite_files import find_suite
from stagehold.lake.commit.wave_commit import Claim
from stagehold.lake.store.files import files_at
from stagehold.lake.store.location import table_location
from stagehold.lake.tables import ensure_table
from stagehold.ledger.attempts import Failure
from stagehold.ledger.ledger import Ledger
from stagehold.model.keys.compute_key import ComputeKey
from stagehold.model.records import (
    Attempt,
    AttemptState,
    Cell,
    FailureClass,
    GateResult,
    Lease,
    PartitionRecord,
    Run,
    RunState,
)
from stagehold.model.standing import PartitionState
from stagehold.model.states import UNTIL_RUNNING, AttemptEvent
from stagehold.run.planning.planning import IntervalView, RunRequest
from stagehold.settings import Settings, load_settings
from stagehold.spec.loading.loader import find_pipeline

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun
    from sqlalchemy.orm import Session

DUE = datetime(2026, 11, 20, 2, tzinfo=UTC)
SPLITS = 16
SOURCES = ("customer", "orders", "lineitem")
NULLS, RANGE = (
    "expect_column_values_to_not_be_null(revenue)",
    "expect_column_values_to_be_between(revenue, min_value=0)",
)
SEEN = "3 of 100 unexpected, such as -1"
MEAN = "expect_column_mean_to_be_between(revenue, min_value=0, max_value=50)"
SAMPLES = '{"partial_unexpected_list": [-1, -2, -1]}'
FAILURE = "Spark lost its server in the middle of orders_by_customer."


@dataclass(frozen=True)
class HalfDone:
    """A failed run whose first stages are consumable and whose fourth stopped half-way, written by hand."""

    dag_id: str
    run_id: str

    @property
    def url(self) -> str:
        return f"/stagehold/api/dags/{self.dag_id}/runs/{quote(self.run_id, safe='')}"


def make_half_done(dag_id: str, run_id: str) -> HalfDone:
    """Fails the fourth of six stages after 5 of its 16 partitions."""
    make_sources(Path(load_settings().lake_uri))
    make_dag_run(
        dag_id,
        run_id,
        {"orders_by_customer": "failed", "shipping_priority": "upstream_failed", "top_orders": "upstream_failed"},
    )
    fill_ledger(dag_id, run_id, {**dict.fromkeys(SOURCES, SPLITS), "orders_by_customer": 5})
    return HalfDone(dag_id, run_id)


def make_refused(dag_id: str, run_id: str, refused: Mapping[int, tuple[str, ...]]) -> HalfDone:
    """All is computed but the last stage: the gate of the one before it refuses these partitions."""
    make_sources(Path(load_settings().lake_uri))
    make_dag_run(dag_id, run_id, {"shipping_priority": "failed", "top_orders": "upstream_failed"})
    fill_ledger(dag_id, run_id, dict.fromkeys((*SOURCES, "orders_by_customer", "shipping_priority"), SPLITS))
    run = HalfDone(dag_id, run_id)
    refuse(run, "shipping_priority", refused)
    return run


def make_sources(lake: Path) -> None:
    for table in SOURCES:
        folder = lake / "raw" / table
        folder.mkdir(parents=True, exist_ok=True)
        for index in range(SPLITS):
            (folder / f"{index:02}.parquet").touch()


@contextmanager
def moved_away(lake: Path) -> Iterator[None]:
    """As if its disk were not mounted, inside the block."""
    aside = lake.rename(lake.with_name("aside"))
    try:
        yield
    finally:
        shutil.rmtree(lake, ignore_errors=True)
        aside.rename(lake)


def make_dag_run(
    dag_id: str, run_id: str, states: dict[str, str], state: str = "failed", conf: Mapping[str, object] | None = None
) -> None:
    """Tasks that are not named succeeded. The interval is the run id, so that no run finds what another one left,
    unless conf says so.
    """
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.utils.session import create_session
    from airflow.utils.state import DagRunState
    from airflow.utils.types import DagRunTriggeredByType, DagRunType

    with create_session() as session:
        dag = SerializedDagModel.get_dag(dag_id, session=session)
        assert dag is not None
        made = dag.create_dagrun(
            run_id=run_id,
            run_after=DUE,
            conf={"interval": run_id, **(conf or {})},
            run_type=DagRunType.MANUAL,
            triggered_by=DagRunTriggeredByType.TEST,
            state=DagRunState.QUEUED,
            session=session,
        )
        _set_states(made, states, state, session)


def refuse(run: HalfDone, stage: str, refused: Mapping[int, tuple[str, ...]]) -> None:
    """As if the gate of a stage had refused these partitions of those that are on record."""
    now = datetime.now(UTC)
    blocked = _recorded_again(run, stage, PartitionState.BLOCKED, refused, version=None)
    results = [
        GateResult(one.cell, one.partition, one.attempt_id, "made", each, False, SEEN, now, result=SAMPLES)
        for one in blocked
        for each in one.refused
    ]
    with Ledger.open(load_settings().ledger_url) as ledger:
        ledger.gates.record(results)


def observe(run: HalfDone, stage: str, value: str, before: int) -> None:
    """As if an expectation with a number had judged the last partition of a stage, for an interval of a run that began
    so many microseconds before; 0 is the run itself.
    """
    settings, now = load_settings(), datetime.now(UTC)
    interval = f"{run.run_id}-{before}" if before else run.run_id
    cell = Cell(run.dag_id, find_pipeline(run.dag_id, settings).stage(stage).id, interval)
    configuration = '{"kwargs": {"min_value": 0, "max_value": 50}}'
    made = GateResult(
        cell, SPLITS - 1, "observing", "made", MEAN, float(value) <= 50, value, now, configuration=configuration
    )
    with Ledger.open(settings.ledger_url) as ledger:
        if before:
            own = ledger.runs.get(f"{run.dag_id}/{run.run_id}")
            began = own.started_at - timedelta(microseconds=before)
            ledger.runs.start(Run(interval, run.dag_id, interval, "cli", RunState.RUNNING, began))
        ledger.gates.record([made])


def spoil(run: HalfDone, stage: str, partitions: Iterable[int]) -> None:
    """As if other code had made them."""
    other = ComputeKey("other", "settings", "environment", "params", "inputs")
    _recorded_again(run, stage, PartitionState.CONSUMABLE, dict.fromkeys(partitions, ()), compute_key=str(other))


def publish(run: HalfDone, stage: str, partitions: Iterable[int], refused: tuple[str, ...] = (NULLS,)) -> None:
    """As if a resume had published them, though their gate refuses them."""
    _recorded_again(run, stage, PartitionState.CONSUMABLE, dict.fromkeys(partitions, refused))


def _recorded_again(
    run: HalfDone, stage: str, state: PartitionState, refused: Mapping[int, tuple[str, ...]], **changes: str | None
) -> list[PartitionRecord]:
    settings = load_settings()
    pipeline = find_pipeline(run.dag_id, settings)
    cell = Cell(pipeline.name, pipeline.stage(stage).id, run.run_id)
    with Ledger.open(settings.ledger_url) as ledger:
        lease = ledger.leases.acquire(f"{pipeline.name}/{run.run_id}/{stage}", "the test", 60)
        records = [
            replace(one, state=state, refused=refused[one.partition], reason=SEEN, **changes)
            for one in ledger.partitions.newest(cell)
            if one.partition in refused
        ]
        ledger.partitions.record(records, lease)
        ledger.leases.release(lease)
    return records


def end_dag_run(dag_id: str, run_id: str) -> None:
    """What the scheduler does when every task of a run has succeeded."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        found = session.scalar(select(DagRun).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id))
        assert found is not None
        _set_states(found, {}, "success", session)


def forget_asset(name: str) -> None:
    """Airflow has seen no event of it."""
    from airflow.models.asset import AssetAliasModel, AssetModel
    from airflow.utils.session import create_session
    from sqlalchemy import delete, select

    with create_session() as session:
        for alias in session.scalars(select(AssetAliasModel).where(AssetAliasModel.name == name)):
            alias.assets.clear()
        session.flush()
        session.execute(delete(AssetModel).where(AssetModel.name == name))


def begin_attempt(run: HalfDone, stage: str, seconds: float) -> Lease:
    """Another one, as if a process had begun it and then said nothing more: it has its lease for so long. Airflow has
    not heard that it died.
    """
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        found = session.scalar(select(DagRun).where(DagRun.dag_id == run.dag_id, DagRun.run_id == run.run_id))
        assert found is not None
        _set_states(found, {stage: "running"}, "running", session)
    own = f"{run.dag_id}/{run.run_id}"
    with Ledger.open(load_settings().ledger_url) as ledger:
        lease = ledger.leases.acquire(f"{run.dag_id}/{run.run_id}/{stage}", "ann|host|7|1", seconds)
        facts = (own, run.dag_id, run.run_id, stage, lease.epoch, AttemptState.RUNNING, datetime.now(UTC))
        ledger.attempts.create(Attempt(f"{own}.{stage}.{lease.epoch}", *facts), *UNTIL_RUNNING)
    return lease


def fail_attempt(run: HalfDone, stage: str, failure: str) -> None:
    """One more that failed, with this text."""
    own = f"{run.dag_id}/{run.run_id}"
    with Ledger.open(load_settings().ledger_url) as ledger:
        lease = ledger.leases.acquire(f"{run.dag_id}/{run.run_id}/{stage}", "ann|host|7|1", 60)
        facts = (own, run.dag_id, run.run_id, stage, lease.epoch, AttemptState.RUNNING, datetime.now(UTC))
        attempt = Attempt(f"{own}.{stage}.{lease.epoch}", *facts)
        ledger.attempts.create(attempt, *UNTIL_RUNNING)
        told = Failure(failure, FailureClass.RECOVERABLE, "anything_else")
        ledger.attempts.apply(attempt.attempt_id, AttemptEvent.FAIL, failure=told)
        ledger.leases.release(lease)


def _set_states(dag_run: DagRun, states: dict[str, str], state: str, session: Session) -> None:
    from airflow.utils.state import DagRunState

    for instance in dag_run.get_task_instances(session=session):
        instance.state = states.get(instance.task_id, "success")
    dag_run.state = DagRunState(state)


def fill_ledger(dag_id: str, run_id: str, done: dict[str, int]) -> None:
    """Record the first so many partitions of each stage as consumable, with the keys the planner wants now."""
    settings = load_settings()
    pipeline = find_pipeline(dag_id, settings)
    request = RunRequest(pipeline, f"{dag_id}/{run_id}", run_id, {})
    run = Run(request.run_id, pipeline.name, request.interval, "airflow", RunState.RUNNING, datetime.now(UTC))
    with Ledger.open(settings.ledger_url) as ledger:
        ledger.runs.start(run)
        plan = IntervalView.of_run(request, ledger, settings).plan
        for stage, count in done.items():
            if pipeline.stage(stage).inputs:  # whose records its keys follow from
                plan = IntervalView.of_run(request, ledger, settings).plan
            keys = [str(decision.key) for decision in plan.of(stage)]
            _attempt(ledger, request, stage, keys[:count], settings, finished=count == len(keys))


def _table(request: RunRequest, stage: str, settings: Settings) -> str:
    """Where the stage's records say that their data is: a log with the versions that they name. Whether a published
    table has the data is looked up in the table.
    """
    location = table_location(settings.lake_uri, request.pipeline.name, request.pipeline.stage(stage), request.interval)
    if location.interval is not None:
        ensure_table(
            location, StructType().add("o_orderkey", LongType()).add("_partition", IntegerType()), Claim(1, "nobody")
        )
    for version in range(0 if location.interval is None else 1, 2 + SPLITS // 4):
        files_at(location.uri).create(f"_delta_log/{version:020d}.json", b'{"commitInfo": {"timestamp": 0}}')
    return location.uri


def _judge(gate: str | None, settings: Settings) -> str:
    """What records say of the suite that let them."""
    return find_suite(gate, Path(settings.suites), Path(settings.project)).fingerprint if gate else ""


def _attempt(
    ledger: Ledger, request: RunRequest, stage: str, keys: list[str], settings: Settings, *, finished: bool
) -> None:
    pipeline, interval = request.pipeline.name, request.interval
    lease = ledger.leases.acquire(f"{pipeline}/{interval}/{stage}", "the test", 60)
    attempt_id = f"{request.run_id}.{stage}.{lease.epoch}"
    ledger.attempts.create(
        Attempt(
            attempt_id, request.run_id, pipeline, interval, stage, lease.epoch, AttemptState.RUNNING, datetime.now(UTC)
        ),
        *UNTIL_RUNNING,
    )
    cell = Cell(pipeline, request.pipeline.stage(stage).id, interval)
    table, judged = _table(request, stage, settings), _judge(request.pipeline.stage(stage).gate, settings)
    made = (_record(cell, number, key, request.run_id, attempt_id, lease, table) for number, key in enumerate(keys))
    records = [replace(one, judged=judged) for one in made]
    ledger.partitions.record(records, lease)
    if finished:
        ledger.attempts.apply(attempt_id, AttemptEvent.REPORTED_FINISHED)
    else:
        failure = Failure(FAILURE, FailureClass.RECOVERABLE, "anything_else", {"team": "orders"})
        ledger.attempts.apply(attempt_id, AttemptEvent.FAIL, failure=failure)
    ledger.leases.release(lease)


def _record(
    cell: Cell, partition: int, key: str, run_id: str, attempt_id: str, lease: Lease, table: str
) -> PartitionRecord:
    return PartitionRecord(
        cell=cell,
        partition=partition,
        state=PartitionState.CONSUMABLE,
        run_id=run_id,
        attempt_id=attempt_id,
        epoch=lease.epoch,
        wave=partition // 4,
        table=table,
        version=1 + partition // 4,
        files=(),
        rows=100 + partition,
        fingerprint=f"{partition}",
        compute_key=key,
        recorded_at=datetime.now(UTC),
    )


def switch(dag_id: str, *, on: bool) -> None:
    """Pause a DAG, or have Airflow run it. Those of the tests are paused when they are made."""
    from airflow.models.dag import DagModel
    from airflow.utils.session import create_session
    from sqlalchemy import update

    with create_session() as session:
        session.execute(update(DagModel).where(DagModel.dag_id == dag_id).values(is_paused=not on))
