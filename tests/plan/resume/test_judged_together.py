"""Partitions that their gate judges together: nobody reads one of them before all may be read."""

from __future__ import annotations

import pytest
from tests.plan.resume.situations import (
    CHAIN,
    DONE,
    NOW,
    altered,
    blocked,
    changed,
    fresh,
    records_of,
    waived,
    with_facts,
    without,
    words,
)

from stagehold.model.records import WHOLE, Cell, StageVerdict
from stagehold.model.standing import PartitionState
from stagehold.plan.grounds.content_verdicts import content_of
from stagehold.plan.resume.planner import resume_plan
from stagehold.plan.resume.situation import Situation
from stagehold.plan.resume.waiving import WaiverWish, refused_data, wished

UNIQUE = "unique(id)"
UNREAD = without(DONE, "total", 0)  # before anything reads `clean`


def held(situation: Situation, *partitions: int) -> Situation:
    for partition in partitions:
        situation = altered(situation, "clean", partition, state=PartitionState.HELD, version=None)
    return situation


def judged(situation: Situation, *refused: str, by: str = "whole") -> Situation:
    """What the gate said of `clean` as it is on record."""
    content, cell = content_of(records_of(situation, "clean")), Cell("chain", "clean", "i")
    verdict = StageVerdict(
        cell, content, by, "a1", NOW, refused, "; ".join(f"{decision}: got 2" for decision in refused) or None
    )
    known = situation.of("clean").words.verdicts
    return with_facts(situation, verdicts={"clean": (*known, verdict)})


def whole(situation: Situation) -> Situation:
    return changed(situation, "clean", whole="whole")


def let(situation: Situation) -> Situation:
    return waived(situation, "clean", WHOLE, UNIQUE, fingerprint=content_of(records_of(situation, "clean")))


HELD, PUBLISHED = whole(held(UNREAD, 0, 1)), whole(DONE)
REFUSED = judged(HELD, UNIQUE)
RELEASED = altered(without(PUBLISHED, "clean", 0), "clean", 1, state=PartitionState.RELEASED)
GONE = {"clean": frozenset({1})}
TABLE = [
    ("nothing is there", whole(fresh(CHAIN)), "RR RR R"),
    ("all are held", HELD, "rr JJ R"),
    ("one is held, one is not there", without(HELD, "clean", 1), "rr JR R"),
    ("one is held, and the other one blocked", blocked(HELD, "clean", 1), "rr BB B"),
    ("one is held, and the other one gone", with_facts(HELD, gone=GONE), "rr JR R"),
    ("all are held and refused", REFUSED, "rr BB B"),
    ("all are held, and may be read", judged(HELD), "rr JJ R"),
    ("all are held, and were judged by something else", judged(HELD, UNIQUE, by="other"), "rr JJ R"),
    ("what was refused is other data", altered(REFUSED, "clean", 0, fingerprint="x"), "rr JJ R"),
    ("refused, then judged again by the same", judged(REFUSED), "rr JJ R"),
    ("refused, and waived", let(REFUSED), "rr JJ R"),
    ("refused, and one input changed", changed(REFUSED, "raw", splits=("split 0", "x")), "rR JR R"),
    ("its suite for partitions changed", changed(HELD, "clean", gate="new"), "rr JJ R"),
    ("its gate judges it together no more", held(UNREAD, 0, 1), "rr JJ R"),
    ("published, and never judged together", PUBLISHED, "rr JJ r"),
    ("published", judged(PUBLISHED), "rr rr r"),
    ("published, and refused by a new suite", judged(PUBLISHED, UNIQUE), "rr BB B"),
    ("published by a waiver", let(judged(PUBLISHED, UNIQUE)), "rr rr r"),
    ("one is new, and equal", held(judged(PUBLISHED), 1), "rr rJ r"),
    ("published and never judged together, and gone", with_facts(PUBLISHED, gone=GONE), "rr rr r"),
    ("one runs, and another one was released", RELEASED, "rr RH R"),
    ("computed elsewhere, and never judged together", with_facts(PUBLISHED, accepted=frozenset({"clean"})), "rr rr r"),
    ("held elsewhere", with_facts(HELD, accepted=frozenset({"clean"})), "rr JJ R"),
]


@pytest.mark.parametrize(("name", "situation", "expected"), TABLE, ids=[row[0] for row in TABLE])
def test_decisions(name, situation, expected):
    assert " ".join(words(resume_plan(situation)).values()) == expected


@pytest.mark.parametrize(("name", "situation", "expected"), TABLE, ids=[row[0] for row in TABLE])
def test_nobody_is_given_what_is_held(name, situation, expected):
    plan = resume_plan(situation)
    assert all(record.state is not PartitionState.HELD for record in plan.records("clean"))


def test_what_is_refused_says_why_and_what_was_waived_says_who():
    refused = resume_plan(REFUSED).of("clean")
    assert {str(decision.reason) for decision in refused} == {"all of its stage together is refused: unique(id): got 2"}
    plan = resume_plan(let(judged(PUBLISHED, UNIQUE)))
    assert "ann waived unique(id): known" in str(plan.of("clean")[0].reason)
    assert str(plan.of("total")[0].reason).endswith("made from clean[0], which somebody waived")


def test_a_word_for_all_is_about_the_content_of_all():
    (verdict,) = REFUSED.of("clean").words.verdicts
    data = refused_data(records_of(HELD, "clean"), verdict)
    (word,) = wished(WaiverWish(None, None, "ann", "known"), "clean", data, NOW)
    assert (word.partition, word.fingerprint, word.expectation) == (WHOLE, verdict.fingerprint, UNIQUE)
    assert refused_data(records_of(HELD, "clean"), judged(HELD).of("clean").words.verdicts[0]) == ()
