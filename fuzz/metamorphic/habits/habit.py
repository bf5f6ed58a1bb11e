"""What all habits share: how their function comes by the session, and how they are counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from enum import EnumMeta, StrEnum
from typing import TYPE_CHECKING, get_args, get_type_hints

if TYPE_CHECKING:
    from fuzz.metamorphic.algebra import Operator

ROOM = __name__.rpartition(".")[0]


class Way(StrEnum):
    """How a function comes by its session."""

    OF_FRAME = "{}.sparkSession"
    BUILDER = "SparkSession.builder.getOrCreate()"
    ACTIVE = "SparkSession.getActiveSession()"

    def of(self, frame: str) -> str:
        return self.value.format(frame)


class Habit:
    """An operator that does something beside making a plan. It is counted by its class and by how it is spelt."""

    @property
    def family(self) -> str:
        return type(self).__name__

    @property
    def spelling(self) -> tuple[str, ...]:
        """The choices that were made for it, as ``Class.CHOICE``."""
        values = (getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]
        own = (value for value in values if isinstance(value, StrEnum) and _is_own(type(value)))
        return tuple(f"{self.family}.{type(value).__name__}.{value.name}" for value in own)

    @classmethod
    def spellings(cls) -> Iterator[str]:
        """All choices that there are for it."""
        for kind in get_type_hints(cls).values():
            for choices in (one for one in (kind, *get_args(kind)) if isinstance(one, EnumMeta) and _is_own(one)):
                yield from (f"{cls.__name__}.{choices.__name__}.{choice.name}" for choice in choices)


def _is_own(choices: type) -> bool:
    return choices.__module__.startswith(ROOM)


def habits_of(tree: Operator) -> Iterator[Habit]:
    if isinstance(tree, Habit):
        yield tree
    for one in tree.inputs:
        yield from habits_of(one)
