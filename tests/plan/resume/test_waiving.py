"""What a gate refuses may be read while somebody waives all that it does not meet."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.plan.resume.situations import CHAIN, DONE, NOW, altered, blocked, changed, fresh, waived, with_facts, words

from stagehold.model.choices import Waiver
from stagehold.model.standing import PartitionState
from stagehold.plan.resume.planner import resume_plan
from stagehold.plan.resume.waiving import in_force

REFUSED = blocked(DONE, "clean", 1, reason="revenue > 0: got -1")
LET = altered(DONE, "clean", 1, refused=("revenue > 0",))  # published after it was waived
GONE = {"clean": frozenset({1})}
TABLE = [
    ("refused", REFUSED, "rr rB B"),
    ("refused, and waived", waived(REFUSED, "clean", 1), "rr rJ r"),
    ("waived for other data", waived(REFUSED, "clean", 1, fingerprint="other"), "rr rB B"),
    ("another partition is waived", waived(REFUSED, "clean", 0), "rr rB B"),
    ("something else is waived", waived(REFUSED, "clean", 1, "no nulls"), "rr rB B"),
    (
        "one of two is waived",
        waived(blocked(DONE, "clean", 1, refused=("revenue > 0", "no nulls")), "clean", 1),
        "rr rB B",
    ),
    (
        "both are waived",
        waived(blocked(DONE, "clean", 1, refused=("revenue > 0", "no nulls")), "clean", 1, "no nulls", "revenue > 0"),
        "rr rJ r",
    ),
    ("let through by a waiver", waived(LET, "clean", 1), "rr rr r"),
    ("let through by a waiver that has ended", LET, "rr rJ r"),
    ("waived, but its input changed", changed(waived(LET, "clean", 1), "raw", splits=("split 0", "other")), "rR rR R"),
    ("waived, but its gate changed", changed(waived(LET, "clean", 1), "clean", gate="new"), "rr JJ r"),
    ("waived, and gone before it was published", with_facts(waived(REFUSED, "clean", 1), gone=GONE), "rr rR R"),
    ("let through, and gone", with_facts(waived(LET, "clean", 1), gone=GONE), "rr rr r"),
    (
        "let through, and released",
        waived(altered(LET, "clean", 1, state=PartitionState.RELEASED), "clean", 1),
        "rr rr r",
    ),
    ("blocked by a version that did not keep what it does not meet", blocked(DONE, "clean", 1, refused=()), "rr rJ r"),
]


@pytest.mark.parametrize(("name", "situation", "expected"), TABLE, ids=[row[0] for row in TABLE])
def test_decisions(name, situation, expected):
    assert " ".join(words(resume_plan(situation)).values()) == expected


def test_what_was_made_from_waived_data_says_so():
    plan = resume_plan(waived(LET, "clean", 1))
    assert str(plan.of("clean")[1].reason) == "consumable; ann waived revenue > 0: known"
    assert str(plan.of("total")[0].reason) == (
        "consumable, and nothing it follows from changed; made from clean[1], which somebody waived"
    )
    assert [decision.rests_on for decision in plan.of("clean")] == [None, None]
    assert plan.of("total")[0].rests_on == ("clean", 1)


def test_whatever_follows_from_waived_data_says_so_however_far_away():
    from_raw = waived(altered(DONE, "raw", 1, refused=("revenue > 0",)), "raw", 1)
    plan = resume_plan(from_raw)
    assert [decision.rests_on for decision in plan.of("clean")] == [None, ("raw", 1)]
    assert plan.of("total")[0].rests_on == ("raw", 1)
    assert resume_plan(fresh(CHAIN)).of("total")[0].rests_on is None


def word(said: str, until: int | None = None) -> Waiver:
    ended = None if until is None else NOW + timedelta(days=until)
    return Waiver("p", "i", "s", 0, "no nulls", "data", "ann", said, NOW, ended)


def test_the_word_that_was_said_last_counts_until_it_ends():
    assert in_force([word("first"), word("second")], NOW) == (word("second"),)
    assert in_force([word("first"), word("taken back", 0)], NOW) == ()
    assert in_force([word("for a day", 1)], NOW) == (word("for a day", 1),)
    assert in_force([word("for a day", 1)], NOW + timedelta(days=1)) == ()
    assert in_force([word("for ever"), replace(word("of other data", 0), fingerprint="other")], NOW) == (
        word("for ever"),
    )
