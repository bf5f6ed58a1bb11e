"""State: what a stage keeps from one interval to the next, as its author declares it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any


class StateKind(StrEnum):
    """How state is dealt to partitions, also when there are more or fewer of them than before."""

    KEYED = "keyed"  # rows belong to the partition of their key group
    SPLIT = "split"  # a list; each element goes to one partition
    UNION = "union"  # a list; every partition is given every element
    BROADCAST = "broadcast"  # a list; all partitions hold the same elements already

    @property
    def is_list(self) -> bool:
        return self is not StateKind.KEYED


@dataclass(frozen=True)
class StateColumn:
    """A column of state; ``type`` is as Spark spells it."""

    name: str
    type: str


@dataclass(frozen=True)
class StateShape:
    """The shape of a state of a stage. ``key`` are the columns that group keyed state; its groups can be told only by
    the hash that wrote it. A list has neither.
    """

    name: str
    kind: StateKind
    columns: tuple[StateColumn, ...]
    key: tuple[str, ...] = ()
    hash_name: str | None = None

    @staticmethod
    def of(facts: Mapping[str, Any]) -> StateShape:
        """What `asdict` made facts of.

        :raises LookupError: or ValueError or TypeError, they are something else.
        """
        return StateShape(
            name=str(facts["name"]),
            kind=StateKind(facts["kind"]),
            columns=tuple(StateColumn(str(column["name"]), str(column["type"])) for column in facts["columns"]),
            key=tuple(map(str, facts["key"])),
            hash_name=None if facts["hash_name"] is None else str(facts["hash_name"]),
        )

    @cached_property
    def written(self) -> str:
        """As JSON, equal for equal shapes."""
        return json.dumps(asdict(self))

    def __str__(self) -> str:
        dealt = f"{self.kind} by {', '.join(self.key)}" if self.key else str(self.kind)
        return f"{dealt}, columns {', '.join(f'{column.name} {column.type}' for column in self.columns)}"
