"""Whatever happened to a ledger, and whenever it is lost or an old copy is put back: the chronicle brings it back."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ledger.samples import CELL, START, gate_result, record, run

from stagehold.lake.chronicle import LakeChronicle, read_chronicle
from stagehold.ledger.ledger import Ledger
from stagehold.model.checkpoint_records import CheckpointRecord, CheckpointState, CheckpointTrigger
from stagehold.model.records import (
    Acceptance,
    Attempt,
    AttemptState,
    Fact,
    PartitionCount,
    PartitionState,
    Restore,
    Run,
)
from stagehold.model.source_position import VersionsRead
from stagehold.model.states import ATTEMPT, RUN, AttemptEvent, RunEvent
from stagehold.plan.reconcile.comparison import LakeKnowledge, missing_in_chronicle, missing_in_ledger

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
    st.builds(lambda one: lambda ledger, number: ledger.restores.ask(asked(one)), RUNS),
    st.builds(lambda one: lambda ledger, number: ledger.restores.fulfil(asked(one)), RUNS),
    st.just(lambda ledger, number: ledger.partition_counts.decide(PartitionCount(CELL, number, number, START))),
    st.just(lambda ledger, number: ledger.positions.take_anew(CELL, "run-1", VersionsRead(None, number))),
    st.just(
        lambda ledger, number: ledger.acceptances.record(
            [Acceptance("sales", None, "joined", "old", str(number), "me", "why", START)]
        )
    ),
)


@settings(max_examples=20, deadline=None)
@given(st.lists(steps, min_size=1, max_size=12), st.integers(0, 12), st.booleans())
def test_a_ledger_that_was_lost_or_is_old_is_as_it_was_after_the_repair(history: list[Step], kept: int, copied: bool):
    with tempfile.TemporaryDirectory() as folder:
        file, copy, lake = Path(folder, "ledger.db"), Path(folder, "copy"), str(Path(folder, "lake"))
        for number, step in enumerate(history, 1):
            with Ledger.open(f"sqlite:///{file}", chronicle=LakeChronicle(lake)) as ledger:
                step(ledger, number)
            if copied and number == kept:
                shutil.copy(file, copy)
        known = facts_in(file)
        file.unlink()
        if copy.exists():
            copy.rename(file)
        told = LakeKnowledge(read_chronicle(lake).facts, {})
        with Ledger.open(f"sqlite:///{file}") as ledger:
            ledger.facts.mend(lambda facts: missing_in_ledger(facts, told))
            assert missing_in_ledger(ledger.facts.all(), told) == ()
            assert missing_in_chronicle(ledger.facts.all(), told.told) == ()
        assert facts_in(file) == known


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
