"""What a stage is in a run, from the attempts of the run and the records of its interval."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.made_records import CELL, START, partition_record
from tests.plan.split.test_task_graph import pipeline

from stagehold.model.records import Attempt, AttemptState, PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.plan.split.stage_states import stage_states

STATES = {
    "c": PartitionState.CONSUMABLE,
    "r": PartitionState.RELEASED,
    "h": PartitionState.HELD,
    "b": PartitionState.BLOCKED,
    "d": PartitionState.DAMAGED,
}


def attempts(text: str) -> list[Attempt]:
    """Attempts of `a`, one after the other, as "share:state"; one without an epoch has not begun."""
    made = []
    for number, word in enumerate(text.split()):
        share, state = word.split(":")
        unbegun = AttemptState(state) in (AttemptState.CREATED, AttemptState.SCHEDULED)
        started = START + timedelta(minutes=number)
        epoch = 0 if unbegun else number + 1
        name = f"attempt-{number}"
        made.append(Attempt(name, "run", "sales", "i", "a", epoch, AttemptState(state), started, share=share or None))
    return made


def records(text: str) -> list[PartitionRecord]:
    """A letter for each partition, a capital one if another run made it; `-` for none."""
    cell = replace(CELL, stage="a")
    return [
        partition_record(
            number, cell, state=STATES[letter.lower()], run_id="run" if letter.islower() else "the run before"
        )
        for number, letter in enumerate(text)
        if letter != "-"
    ]


@pytest.mark.parametrize(
    ("tried", "recorded", "state"),
    [
        pytest.param("", "----", "created", id="what never began counts"),
        pytest.param("", "CCCC", "created", id="the run has not come to what an earlier one left"),
        pytest.param(":scheduled", "----", "created", id="a task that waits for its lease"),
        pytest.param(":deploying", "----", "created", id="a task that is about to begin"),
        pytest.param(":initializing", "----", "initializing", id="it plans"),
        pytest.param(":running", "----", "running", id="it computes"),
        pytest.param(":running", "cc--", "running", id="half of it is there"),
        pytest.param(":running", "CCCC", "running", id="all is there as an earlier run left it, and may be stale"),
        pytest.param(":running", "cccc", "finished", id="the last partition is there"),
        pytest.param(":finished", "cccc", "finished", id="computed"),
        pytest.param(":finished", "CCCC", "finished", id="reused"),
        pytest.param(":finished", "rrrr", "finished", id="released since"),
        pytest.param(":finished", "hhhh", "finished", id="held: its gate lets nobody read it, but its tasks are done"),
        pytest.param(":finished", "ccc-", "running", id="a partition was lost since"),
        pytest.param(":finished", "cccd", "running", id="a partition was damaged since"),
        pytest.param(":finished", "----", "created", id="all of it was deleted"),
        pytest.param(":failed", "cc--", "failed", id="failed half-way"),
        pytest.param(":failed", "cccb", "failed", id="its gate said no"),
        pytest.param(":failed", "CCCC", "failed", id="failed before it replaced what was there"),
        pytest.param(":failed :running", "cc--", "running", id="tried again"),
        pytest.param(":failed :scheduled", "cc--", "running", id="about to be tried again"),
        pytest.param(":canceling", "c---", "canceling", id="is being cancelled"),
        pytest.param(":canceled", "c---", "canceled", id="cancelled, or suspended"),
        pytest.param("0-1:finished 2-3:running", "cc--", "running", id="one share is done"),
        pytest.param("0-1:finished", "cc--", "running", id="the other share never began"),
        pytest.param("0-1:finished 2-3:failed", "cc--", "failed", id="the other share failed"),
        pytest.param("0-1:finished 2-3:finished", "cccc", "finished", id="both shares are done"),
        pytest.param("0-1:initializing 2-3:running", "----", "initializing", id="one share plans"),
        pytest.param("2-3:failed 0-1:finished 2-3:finished", "cccc", "finished", id="a share was tried again"),
    ],
)
def test_a_stage_is(tried, recorded, state):
    found = stage_states(pipeline("a/4/2 b/1/1:!a"), "run", attempts(tried), {"a": records(recorded)})
    assert found == {"a": AttemptState(state), "b": AttemptState.CREATED}


def test_an_attempt_that_died_without_a_word_has_failed():
    tried = attempts("0-1:running 2-3:running")
    assert stage_states(pipeline("a/4/2"), "run", tried, {})["a"] is AttemptState.RUNNING
    assert stage_states(pipeline("a/4/2"), "run", tried, {}, {"attempt-0"})["a"] is AttemptState.FAILED


def test_what_is_computed_along_with_its_reader_is_what_the_attempts_are():
    tried = [replace(one, region="a__b") for one in attempts(":finished")]
    recorded = {"b": [replace(one, cell=replace(CELL, stage="b")) for one in records("cccc")]}
    assert set(stage_states(pipeline("a>/4/1 b/4/1:-a"), "run", tried, recorded).values()) == {AttemptState.FINISHED}
