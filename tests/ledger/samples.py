"""Records to put into a ledger, and real processes to do it with."""

from __future__ import annotations

import multiprocessing
import os
import pickle
from collections.abc import Callable
from datetime import timedelta
from io import BytesIO
from multiprocessing.context import BaseContext
from typing import Any

from pyspark.cloudpickle import CloudPickler
from tests.made_records import CELL, START, partition_record

from stagehold.errors import StageholdError
from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.migrate import migrate
from stagehold.ledger.history import WithoutOldFiles
from stagehold.ledger.ledger import Ledger
from stagehold.model.checkpoint_records import CheckpointRecord, CheckpointState, CheckpointTrigger
from stagehold.model.choices import Pin, Waiver
from stagehold.model.records import (
    Attempt,
    AttemptState,
    Cell,
    DataFile,
    Event,
    GateResult,
    PartitionRecord,
    Run,
    RunState,
    StageVerdict,
)
from stagehold.model.states import AttemptEvent, RunEvent

RUN_ENDS = {  # what happens to a run that goes on, and which state that leads to
    RunState.FAILING: (RunEvent.FAIL,),
    RunState.CANCELLING: (RunEvent.CANCEL,),
    RunState.FINISHED: (RunEvent.ALL_FINISHED,),
    RunState.FAILED: (RunEvent.FAIL, RunEvent.ALL_ENDED),
    RunState.CANCELED: (RunEvent.CANCEL, RunEvent.ALL_ENDED),
}
ATTEMPT_ENDS = {
    AttemptState.FINISHED: (AttemptEvent.REPORTED_FINISHED,),
    AttemptState.FAILED: (AttemptEvent.FAIL,),
    AttemptState.CANCELED: (AttemptEvent.CANCEL, AttemptEvent.REPORTED_CANCELED),
}


def run(
    run_id: str = "run-1", *, pipeline: str = "sales", interval: str = "2024-01-01", minutes: int = 0, **facts: Any
) -> Run:
    started = START + timedelta(minutes=minutes)
    return Run(run_id, pipeline, interval, "cli", RunState.RUNNING, started, **facts)


def attempt(epoch: int = 1, *, run_id: str = "run-1", interval: str = "2024-01-01", region: str = "joined") -> Attempt:
    name = f"{run_id}.{region}.{interval}.{epoch}"
    return Attempt(
        name, run_id, "sales", interval, region, epoch, AttemptState.RUNNING, START + timedelta(minutes=epoch)
    )


def record(partition: int, *, cell: Cell = CELL, epoch: int = 1, **facts: Any) -> PartitionRecord:
    given: dict[str, Any] = {
        "run_id": "run-1",
        "attempt_id": f"run-1.joined.{epoch}",
        "wave": 0,
        "table": "/lake/sales/joined",
        "version": epoch,
        "files": (DataFile(f"_data/{epoch}/0/_partition={partition}/part-0.parquet", 1000, 10),),
        "rows": 10,
        "fingerprint": f"fingerprint of {partition}",
    }
    return partition_record(partition, cell, epoch=epoch, **(given | facts))


def checkpoint(number: int, *, run_id: str = "run-1") -> CheckpointRecord:
    trigger, state = CheckpointTrigger.PERIODIC, CheckpointState.IN_PROGRESS
    return CheckpointRecord(run_id, number, "sales", "2024-01-01", trigger, state, START)


def gate_result(
    partition: int, *, passed: bool, attempt_id: str = "attempt-1", expectation: str = "no nulls", cell: Cell = CELL
) -> GateResult:
    return GateResult(cell, partition, attempt_id, "joined", expectation, passed, "3 nulls", START)


def waiver(partition: int = 3, **facts: Any) -> Waiver:
    given: dict[str, Any] = {
        "expectation": "no nulls",
        "fingerprint": f"fingerprint of {partition}",
        "waived_by": "ann",
        "reason": "known since March",
        "recorded_at": START,
    }
    return Waiver("sales", "2024-01-01", "joined", partition, **(given | facts))


def pin(interval: str = "2024-01-01", *, pinned: bool = True, minutes: int = 0, **facts: Any) -> Pin:
    at = START + timedelta(minutes=minutes)
    return Pin("sales", interval, pinned, **({"said_by": "ann", "reason": "for the audit", "recorded_at": at} | facts))


def stage_verdict(fingerprint: str = "content", **facts: Any) -> StageVerdict:
    return StageVerdict(CELL, fingerprint, "gate", "attempt-1", START, **facts)


def event(text: str, run_id: str = "run-1") -> Event:
    return Event(run_id, "reuse", "joined", text, START)


def impatient_ledger(url: str, lock_seconds: float) -> Ledger:
    """A ledger whose transactions wait for another one's lock no longer than that."""
    database = Database(url, lock_seconds=lock_seconds)
    migrate(database)
    return Ledger(database)


class WorkPickler(CloudPickler):
    """Takes functions that stand in a test along, and a ledger as its address."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Ledger):
            return Ledger.open, (obj._database.url.render_as_string(hide_password=False),)
        return super().reducer_override(obj)


def in_processes(count: int, work: Callable[[int], Any]) -> list[Any]:
    """What ``work`` returned in each of ``count`` processes that began at the same moment; an error of ours comes back
    as itself.

    They are children of a process without threads: one that is forked while a thread of its parent is inside SQLite
    waits for that thread's lock for ever.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "pytest", "hypothesis"])
    packed = BytesIO()
    WorkPickler(packed).dump(work)
    return _results(context, count, _unpack_and_work, packed.getvalue())


def in_forks(count: int, work: Callable[[int], Any]) -> list[Any]:
    """The same in forks of this process, which have all that it has."""
    return _results(multiprocessing.get_context("fork"), count, _work, work)


def _results(context: BaseContext, count: int, target: Callable[..., None], work: Any) -> list[Any]:
    barrier, answers = context.Barrier(count), context.Queue()
    children = [context.Process(target=target, args=(work, number, barrier, answers)) for number in range(count)]
    for process in children:
        process.start()
    results = [answers.get(timeout=60) for _ in children]
    for process in children:
        process.join()
    return results


def _unpack_and_work(packed: bytes, number: int, barrier: Any, answers: Any) -> None:
    _work(pickle.loads(packed), number, barrier, answers)


def _work(work: Callable[[int], Any], number: int, barrier: Any, answers: Any) -> None:
    barrier.wait()
    try:
        answers.put(work(number))
    except StageholdError as error:
        answers.put(error)


def in_process_that_dies(work: Callable[[], Any]) -> None:
    """Run ``work`` in a forked process that is gone, without any clean-up, the moment it returns."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def everywhere(ledger: Ledger) -> WithoutOldFiles:
    """All pipelines and intervals that have records, as they are now."""
    cells = (fact.cell for fact in ledger.facts.all() if isinstance(fact, PartitionRecord))
    return WithoutOldFiles({(cell.pipeline, cell.interval) for cell in cells}, ledger.partitions.highest_id())
