"""What counts in a run that starts anew after each failure, as a table of its attempts and of who made what."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from stagehold.model.records import UNBEGUN, Attempt, AttemptState, Cell, PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.plan.restart.full import discarded, last_failure
from stagehold.plan.restart.rules import FENCED

START = datetime(2026, 11, 20, tzinfo=UTC)
STATES = {"F": AttemptState.FINISHED, "X": AttemptState.FAILED, "C": AttemptState.CANCELED, "R": AttemptState.RUNNING}


def at(second):
    return START + timedelta(seconds=second)


def attempts(text, *, rule=None, epoch=1):
    """Several "name:state begin-end", in seconds; what is running has no end."""
    made = []
    for part in text.split(","):
        name, _, facts = part.strip().partition(":")
        begin, _, end = facts[1:].partition("-")
        made.append(
            Attempt(
                attempt_id=name,
                run_id="run",
                pipeline="p",
                interval="i",
                region="r",
                epoch=epoch,
                state=STATES[facts[0]],
                started_at=at(int(begin)),
                ended_at=at(int(end)) if end else None,
                failure_rule=rule,
            )
        )
    return made


def record(partition, attempt, run_id):
    return PartitionRecord(
        cell=Cell("p", "s", "i"),
        partition=partition,
        state=PartitionState.CONSUMABLE,
        run_id=run_id,
        attempt_id=attempt,
        epoch=1,
        wave=1,
        table="t",
        version=1,
        files=(),
        rows=1,
        fingerprint="f",
        compute_key="k",
        recorded_at=START,
    )


# attempts of the run, who made partitions 0, 1, 2 ... ("*": another run) -> those that do not count any more
TABLE = [
    ("nothing failed", "a:F1-2, b:R3", "a b", []),
    ("what was made before it failed", "a:F1-2, b:X3-4", "a b", [0, 1]),
    ("another run's stays", "a:F1-2, b:X3-4", "a * b", [0, 2]),
    ("what was made since counts", "a:F1-2, b:X3-4, c:F5-6", "c b", [1]),
    ("the last failure counts", "a:F1-2, b:X3-4, c:F5-6, d:X7-8, e:R9", "c d e", [0, 1]),
    ("who was under way belongs to what ended", "a:F1-9, b:X3-4", "a", [0]),
    ("adopted from an attempt that nobody knows", "b:X3-4", "gone", [0]),
    ("a cancel is no failure", "a:F1-2, b:C3-4", "a b", []),
]


@pytest.mark.parametrize(("text", "makers", "lost"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_what_does_not_count_any_more(text, makers, lost):
    made = [record(number, name, "other" if name == "*" else "run") for number, name in enumerate(makers.split())]
    assert sorted(discarded({"s": made}, "run", attempts(text)).get("s", ())) == lost


def test_an_attempt_does_not_know_of_later_failures():
    known = attempts("a:F1-2, b:X5-6")
    made = {"s": [record(0, "a", "run")]}
    assert discarded(made, "run", known, as_of=at(5)) == {}
    assert discarded(made, "run", known, as_of=at(7)) == {"s": frozenset({0})}


def test_a_try_that_never_began_or_was_overtaken_is_no_failure_of_the_run():
    assert last_failure(attempts("a:X1-2", epoch=UNBEGUN)) is None
    assert last_failure(attempts("a:X1-2", rule=FENCED)) is None
    assert last_failure(attempts("a:X1-2, b:X1-4, c:X2-3")) == at(4)
