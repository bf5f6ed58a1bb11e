"""Why something happens to a partition, as data:
what reasons of one kind have in common, and what is each partition's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from stagehold.model.partition_set import PartitionSet

Place = tuple[str, int]  # stage and partition


@dataclass(frozen=True)
class Detail:
    """A text that only this partition has, such as the value that a gate saw."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Unexplained(Detail):
    """What was remarked on data that came out different though nothing explains it."""


@dataclass(frozen=True)
class Places:
    """Several partitions of a stage. Very many reasons share one of these, so its text is made once; its hash is made
    once by the set.
    """

    stage: str
    partitions: PartitionSet

    @cached_property
    def text(self) -> str:
        return f"{self.stage}[{self.partitions}]"

    def __str__(self) -> str:
        return self.text


Part = str | Place | Places | Detail


@dataclass(frozen=True)
class Reason:
    """Words, the partitions they name, and details.
    Its text is made from these, and nothing is decided by that text.
    """

    parts: tuple[Part, ...]

    def __str__(self) -> str:
        return "".join(_text(part) for part in self.parts)

    @property
    def kind(self) -> tuple[str | tuple[str], ...]:
        """Equal for reasons that differ only in their details and in which partitions of a stage they name."""
        return tuple(map(_kind, self.parts))

    @property
    def is_unexplained(self) -> bool:
        """Whether it goes back to data that came out different though nothing explains it."""
        return any(isinstance(part, Unexplained) for part in self.parts)

    def and_then(self, *parts: Part) -> Reason:
        """The reason with more to say."""
        return Reason((*self.parts, *parts))


def because(*parts: Part) -> Reason:
    return Reason(parts)


def joined(reasons: Sequence[Reason]) -> Reason:
    """Several reasons as one."""
    (first, *others) = reasons
    return Reason((*first.parts, *(part for other in others for part in ("; ", *other.parts))))


def in_one_line(reasons: Sequence[Reason]) -> str:
    """A text for reasons of one kind: places become ranges, and of differing details the first is shown."""
    return "".join(_common_text(parts) for parts in zip(*(reason.parts for reason in reasons), strict=True))


def _kind(part: Part) -> str | tuple[str]:
    match part:
        case str():
            return part
        case Places():
            return (part.stage,)
        case Detail():
            return ("",)
    return (part[0],)


def _text(part: Part) -> str:
    return f"{part[0]}[{part[1]}]" if isinstance(part, tuple) else str(part)


def _common_text(parts: Sequence[Part]) -> str:
    named = {part for part in parts if isinstance(part, tuple | Places)}
    if named:
        several = [Places(part[0], PartitionSet([part[1]])) if isinstance(part, tuple) else part for part in named]
        partitions = PartitionSet(partition for places in several for partition in places.partitions)
        return str(Places(several[0].stage, partitions))
    texts = list(dict.fromkeys(_text(part) for part in parts))
    return texts[0] if len(texts) == 1 else f"{texts[0]} (and {len(texts) - 1} more like this)"


def grouped(reasons: Iterable[Reason]) -> tuple[str, ...]:
    """A text for each kind of reason, in the order in which the kinds come."""
    kinds: dict[tuple[str | tuple[str], ...], list[Reason]] = {}
    for reason in reasons:
        kinds.setdefault(reason.kind, []).append(reason)
    return tuple(map(in_one_line, kinds.values()))
