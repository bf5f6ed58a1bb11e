"""Random histories of a ledger, step by step, and what a ledger knows in the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TypeAlias

from hypothesis import strategies as st
from tests.ledger.samples import CELL, START, gate_result, record, run
from tests.made_records import acceptance

from stagehold.ledger.ledger import Ledger
from stagehold.model.checkpoint_records import CheckpointFailure, CheckpointRecord, CheckpointState, CheckpointTrigger
from stagehold.model.records import Attempt, AttemptState, Fact, PartitionCount, Restore, Run
from stagehold.model.source_position import VersionsRead
from stagehold.model.standing import PartitionState
from stagehold.model.states import ATTEMPT, RUN, AttemptEvent, RunEvent

Step: TypeAlias = Callable[[Ledger, int], object]
REGION = "sales/2024-01-01/joined"
RUNS = st.sampled_from(["run-1", "run-2"])


def begin(run_id: str) -> Step:
    def step(ledger: Ledger, number: int) -> None:
        ledger.runs.start(run(run_id))
        name = f"{run_id}.{number}"
        waiting = Attempt(
            name, run_id, CELL.pipeline, CELL.interval, "joined", 0, AttemptState.CREATED, START, restore="asked"
        )
        ledger.attempts.create(waiting, AttemptEvent.SCHEDULE)
        lease = ledger.leases.take(REGION, None, name, 60, lambda _: True)
        ledger.attempts.begin(name, lease.epoch)

    return step


def compute(partition: int, state: PartitionState, passed: bool) -> Step:
    """Under the lease of whoever began last, if anybody did."""

    def step(ledger: Ledger, number: int) -> None:
        lease = ledger.leases.get(REGION)
        if lease is None:
            return
        with ledger.together():
            made = record(partition, epoch=lease.epoch, wave=number, state=state, attempt_id=lease.holder)
            ledger.partitions.record([made], lease)
            said = gate_result(partition, passed=passed, attempt_id=lease.holder)
            ledger.gates.record([replace(said, recorded_at=START + timedelta(seconds=number))])

    return step


def end(event: AttemptEvent, then: RunEvent) -> Step:
    def step(ledger: Ledger, number: int) -> None:
        lease = ledger.leases.get(REGION)
        if lease is None:
            return
        ledger.attempts.apply(lease.holder, event)
        ledger.runs.apply(lease.holder.partition(".")[0], then, RunEvent.ALL_ENDED)

    return step


def checkpoint(run_id: str, completes: bool) -> Step:
    def step(ledger: Ledger, number: int) -> None:
        lease = ledger.leases.acquire(f"{run_id}/coordinator", "me", 60)
        begun = ledger.checkpoints.begin(
            CheckpointRecord(
                run_id,
                number,
                CELL.pipeline,
                CELL.interval,
                CheckpointTrigger.END_OF_RUN,
                CheckpointState.IN_PROGRESS,
                START,
            ),
            lease,
        )
        if completes:
            ledger.checkpoints.complete(begun, lease, written=number, referenced=0, covers=number)

    return step


def drop(run_id: str, fails: bool) -> Step:
    """The oldest checkpoint that is there, or under way."""

    def step(ledger: Ledger, number: int) -> None:
        state = CheckpointState.IN_PROGRESS if fails else CheckpointState.COMPLETED
        there = [
            checkpoint
            for checkpoint in ledger.checkpoints.of_run(run_id)
            if checkpoint.state is state and checkpoint.discarded_at is None
        ]
        lease = ledger.leases.acquire(f"{run_id}/coordinator", "me", 60)
        for one in there[:1]:
            if fails:
                ledger.checkpoints.fail(one, lease, CheckpointFailure.CHECKPOINT_EXPIRED, "why")
            else:
                ledger.checkpoints.discard(one, lease)

    return step


def asked(run_id: str) -> Restore:
    return Restore(run_id, "asked", "joined", START)


steps = st.one_of(
    st.builds(begin, RUNS),
    st.builds(
        compute, st.integers(0, 2), st.sampled_from([PartitionState.CONSUMABLE, PartitionState.BLOCKED]), st.booleans()
    ),
    st.builds(
        end,
        st.sampled_from([AttemptEvent.REPORTED_FINISHED, AttemptEvent.FAIL]),
        st.sampled_from([RunEvent.ALL_FINISHED, RunEvent.FAIL]),
    ),
    st.builds(checkpoint, RUNS, st.booleans()),
    st.builds(drop, RUNS, st.booleans()),
    st.builds(lambda one: lambda ledger, number: ledger.restores.ask(asked(one)), RUNS),
    st.builds(lambda one: lambda ledger, number: ledger.restores.fulfil(asked(one)), RUNS),
    st.just(lambda ledger, number: ledger.partition_counts.decide(PartitionCount(CELL, number, number, START))),
    st.just(lambda ledger, number: ledger.positions.take_again(CELL, "run-1", lambda _: VersionsRead(None, number))),
    st.just(lambda ledger, number: ledger.acceptances.record([acceptance(accepted=str(number))])),
)


def facts_in(file: Path) -> list[str]:
    """As far as they are told: in which of its states an attempt or a run goes on is not."""
    with Ledger.open(f"sqlite:///{file}") as ledger:
        return sorted(repr(_as_told(fact)) for fact in ledger.facts.all())


def _as_told(fact: Fact) -> Fact:
    if isinstance(fact, Attempt) and not ATTEMPT.is_terminal(fact.state):
        return replace(fact, state=AttemptState.RUNNING)
    if isinstance(fact, Run) and not RUN.is_terminal(fact.state):
        return replace(fact, state=run().state)
    return fact
