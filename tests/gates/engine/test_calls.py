"""A function is called once for partitions of which it sees the same, and anew wherever something differs."""

from __future__ import annotations

from typing import Any

import pytest

from stagehold.gates.engine.asked_partitions import AskedPartitions, Calls, Look

pytestmark = pytest.mark.slow  # imports Great Expectations, which takes seconds


class Asking:
    """Looks at a value of the partition, and at a second one if the first is 0."""

    def __init__(self, first: dict[int, Any], second: dict[int, Any]) -> None:
        self.partitions = AskedPartitions("p", tuple(first))
        self.called: list[int] = []
        self._values = {"first": first, "second": second}
        self._calls = Calls(self.partitions, self._function)

    def answers(self) -> list[Any]:
        return [self._calls.answer(one) for one in self.partitions.numbers]

    def _function(self, partition: int) -> Any:
        self.called.append(partition)
        assert self.partitions.looked_at == partition
        found = self._look("first", partition)
        return self._look("second", partition) if found == 0 else found

    def _look(self, name: str, partition: int) -> Any:
        self.partitions.seen.append(Look(name, self._values[name].__getitem__))
        return self._values[name][partition]


def test_partitions_that_look_the_same_are_asked_once():
    asking = Asking({1: 5, 2: 5, 3: 7, 4: 7}, {})
    assert (asking.answers(), asking.called) == ([5, 5, 7, 7], [1, 3])


def test_a_value_that_only_some_partitions_are_asked_for_counts_for_those():
    asking = Asking({1: 0, 2: 0, 3: 4, 4: 0, 5: 4}, {1: "a", 2: "b", 3: "c", 4: "a"} | {5: "never seen"})
    assert (asking.answers(), asking.called) == (["a", "b", 4, "a", 4], [1, 2, 3])


def test_equal_numbers_of_different_types_differ():
    asking = Asking({1: 1, 2: 1.0, 3: True}, {})
    assert list(map(repr, asking.answers())) == ["1", "1.0", "True"]


def test_a_function_that_looks_at_rows_is_called_for_each_partition():
    partitions, called = AskedPartitions("p", (1, 2)), []

    def function(partition: int) -> int:
        partitions.seen.append(None)
        called.append(partition)
        return partition

    calls = Calls(partitions, function)
    assert ([calls.answer(1), calls.answer(2)], called, calls.looked) == ([1, 2], [1, 2], True)
    assert (partitions.looked_at, partitions.seen) == (1, [])
