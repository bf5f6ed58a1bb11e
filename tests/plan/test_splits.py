from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from stagehold.plan.splits import InputSplit, SplitAssigner


def split(text):
    """ "name@host,host" """
    name, _, hosts = text.partition("@")
    return InputSplit(name, frozenset(hosts.split(",")) if hosts else frozenset())


TABLE = [
    ("in order when no host is known", ["a", "b"], ["r", "r", "r"], ["a", "b", None]),
    ("a local split before an earlier remote one", ["a@x", "b@y"], ["r@y", "r@y"], ["b", "a"]),
    ("of local splits the one that the fewest hosts hold", ["a@x,y", "b@x"], ["r@x", "r@x"], ["b", "a"]),
    ("of remote splits the one that the fewest hosts hold", ["a@x,y", "b@x"], ["r@z", "r@z"], ["b", "a"]),
    ("a reader without a host leaves local ones for last", ["a@x", "b"], ["r", "r"], ["b", "a"]),
    ("each split goes to one reader only", ["a@x,y"], ["r@x", "s@y"], ["a", None]),
]


@pytest.mark.parametrize(("splits", "requests", "given"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_assignment(splits, requests, given):
    assigner = SplitAssigner(map(split, splits))
    answers = []
    for request in requests:
        reader, _, host = request.partition("@")
        answer = assigner.next_split(reader, host or None)
        answers.append(answer and answer.id)
    assert answers == given


def test_a_failed_reader_gives_its_splits_back_in_their_old_place():
    assigner = SplitAssigner(map(split, ["a@x", "b@x", "c@x"]))
    for reader in ("lost", "kept", "lost"):
        assigner.next_split(reader, "x")
    assert [returned.id for returned in assigner.give_back("lost")] == ["a", "c"]
    assert assigner.assigned == {"b": "kept"}
    assert assigner.waiting == 2
    assert assigner.next_split("next", "x") == split("a@x")


HOSTS = ("x", "y", "z")


class Assignment(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.splits = [InputSplit(f"s{number}", frozenset(HOSTS[: number % 4])) for number in range(9)]
        self.assigner = SplitAssigner(self.splits)
        self.holder = {}

    @rule(reader=st.sampled_from("pqr"), host=st.sampled_from((*HOSTS, None)))
    def ask(self, reader, host):
        free = [each for each in self.splits if each.id not in self.holder]
        given = self.assigner.next_split(reader, host)
        assert (given is None) == (not free)
        if given is not None:
            assert given.id not in self.holder
            assert host in given.hosts or not any(host in each.hosts for each in free)
            self.holder[given.id] = reader

    @rule(reader=st.sampled_from("pqr"))
    def fail(self, reader):
        lost = [name for name, holder in self.holder.items() if holder == reader]
        assert sorted(lost) == [each.id for each in self.assigner.give_back(reader)]
        self.holder = {name: holder for name, holder in self.holder.items() if holder != reader}

    @invariant()
    def every_split_has_at_most_one_reader_and_none_is_lost(self):
        assert self.assigner.assigned == self.holder
        assert self.assigner.waiting + len(self.holder) == len(self.splits)


Assignment.TestCase.settings = settings(max_examples=30, deadline=None)
TestAssignment = Assignment.TestCase
