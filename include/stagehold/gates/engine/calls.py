"""Calls a function for partitions, once for all of which it sees the same: somebody's code, and slow.

Great Expectations takes milliseconds for each metric and verdict, and most of a thousand partitions are alike: none of
them has a value that was not expected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stagehold.gates.engine.asked_partitions import AskedPartitions, Look


class Calls:
    """Of one function, whose answer for a partition follows from what it looks at."""

    def __init__(self, partitions: AskedPartitions, function: Callable[[int], Any]) -> None:
        self._partitions, self._function = partitions, function
        self._answers: dict[tuple[Look, ...], dict[str, Any]] = {}
        self.looked = False

    def answer(self, partition: int) -> Any:
        for looks, answers in self._answers.items():
            told = _told(looks, partition)
            if told in answers:
                return answers[told]
        return self._call(partition)

    def _call(self, partition: int) -> Any:
        with self._partitions.noting() as seen:
            self._partitions.looked_at = partition
            answer = self._function(partition)
        self.looked = self.looked or bool(seen)
        looks = tuple(look for look in dict.fromkeys(seen) if look is not None)
        if None not in seen:
            self._answers.setdefault(looks, {})[_told(looks, partition)] = answer
        return answer


def _told(looks: Sequence[Look], partition: int) -> str:
    """As text, which says of numbers that are equal whether they are of one type."""
    return repr([look.told(partition) for look in looks])
