from __future__ import annotations

from dataclasses import replace

import pytest
from tests.ledger.samples import record
from tests.made_records import acceptance

from stagehold.model.keys.compute_key import ComputeKey
from stagehold.model.standing import PartitionState
from stagehold.plan.grounds.content_verdicts import acceptance_of, code_to_accept


def word(recorded, accepted, who="ann"):
    return acceptance(recorded, accepted, accepted_by=who)


def made_by(code, partition=0, **facts):
    return replace(record(partition), compute_key=str(ComputeKey(code, "s", "e", "p", "i")), **facts)


TABLE = [
    # recorded, present, words -> who accepted
    ("a", "b", [word("a", "b")], "ann"),
    ("a", "b", [], None),
    ("a", "b", [word("b", "a")], None),
    ("a", "c", [word("a", "b", "ann"), word("b", "c", "bob")], "ann"),
    ("a", "c", [word("a", "b")], None),
    ("a", "b", [word("a", "b", "ann"), word("a", "b", "bob")], "bob"),
    ("a", "a", [word("a", "b"), word("b", "a")], None),  # its own code needs no word, and a circle ends
]


@pytest.mark.parametrize(("recorded", "present", "words", "who"), TABLE)
def test_data_of_other_code_counts_by_somebodys_word(recorded, present, words, who):
    found = acceptance_of(recorded, present, words)
    assert (found and found.accepted_by) == who


def test_what_is_left_to_accept_is_consumable_and_does_not_count_yet():
    records = [
        made_by("old"),
        made_by("old", 1),
        made_by("older", 2),
        made_by("new", 3),
        made_by("accepted", 4),
        made_by("refused", 5, state=PartitionState.BLOCKED),
        made_by("", 6),
        replace(record(7), compute_key="unreadable"),
    ]
    assert code_to_accept(records, "new", [word("accepted", "new")]) == ("old", "older")
