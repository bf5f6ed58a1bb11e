"""Judges expectations whose arguments are not the same for all partitions, in as few queries as those that have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stagehold.gates.engine.judging import Judged, judge_frame

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation

    from stagehold.gates.engine.grouped_frame import GroupedFrame

# Variants that are judged together, each for the partitions of all of them: that is much work for the processor
ASKED = 50  # where each has a query of its own, which can be one for all
ANSWERED = 4  # where nothing is left to ask


@dataclass(frozen=True)
class Variant:
    """An expectation with the arguments that it has for some ``partitions``."""

    expectation: Expectation
    partitions: tuple[int, ...]


@dataclass(frozen=True)
class _Numbered:
    at: int
    variant: Variant


def judge_variants(
    frame: GroupedFrame, variants: Mapping[int, Sequence[Variant]], at_once: int
) -> tuple[Mapping[int, Mapping[int, Judged]], Mapping[int, Exception]]:
    """What each expectation says of each partition of its variants; or why it says nothing.

    What was asked of all partitions of the frame before is not asked again. No result shows values of rows.

    :param at_once: `ASKED` or `ANSWERED`
    """
    judged: dict[int, dict[int, Judged]] = {at: {} for at in variants}
    unjudged: dict[int, Exception] = {}
    for block in _blocks(variants, at_once):
        numbers = sorted({number for one in block for number in one.variant.partitions})
        asked = {place: one.variant.expectation for place, one in enumerate(block)}
        found, failed = judge_frame(_among(frame, numbers), asked, samples=False)
        for place, some in found.items():
            own = frozenset(block[place].variant.partitions)
            judged[block[place].at].update((one.partition, one) for one in some if one.partition in own)
        unjudged |= {block[place].at: why for place, why in failed.items()}
    return judged, unjudged


def _blocks(variants: Mapping[int, Sequence[Variant]], at_once: int) -> Iterator[Sequence[_Numbered]]:
    """Those of the same partitions together."""
    every = [_Numbered(at, one) for at, some in variants.items() for one in some]
    every.sort(key=lambda one: (one.variant.partitions, one.at))
    for start in range(0, len(every), at_once):
        yield every[start : start + at_once]


def _among(frame: GroupedFrame, numbers: Sequence[int]) -> GroupedFrame:
    """The same frame, asked about these partitions alone. What it is answered is of them, so it is its own."""
    return replace(frame, partitions=frame.partitions.among(numbers))
