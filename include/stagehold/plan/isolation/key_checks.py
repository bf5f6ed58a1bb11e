"""Whether a keyed stage may deal its keys to partitions: the same kinds of values in every input and in the output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from stagehold.errors import KeyProblem
from stagehold.model.keys.key_types import KeyKind, KeyType, may_meet


@dataclass(frozen=True)
class KeyColumn:
    """A column of a key, and the stage whose output it is in."""

    stage: str
    name: str
    type: KeyType

    def __str__(self) -> str:
        return f"{self.stage}.{self.name} is {self.type.text}"


Key = Sequence[KeyColumn]


def key_problems(keys: Sequence[Key]) -> list[KeyProblem]:
    """What is wrong with keys whose columns meet by their place: one problem per place is enough to act on."""
    return [problem for columns in zip(*keys, strict=True) if (problem := next(_problems(columns), None))]


def _problems(columns: Sequence[KeyColumn]) -> Iterator[KeyProblem]:
    for column in columns:
        if not column.type.usable:
            why = "values of that type can be equal without being alike"
            yield KeyProblem((str(column),), why, column.stage, _way_out(column))
    for one, other in combinations(columns, 2):
        if not may_meet(one.type, other.type):
            cast, target = _cast(one, other)
            why = "Spark may take such values for equal after a cast of its own"
            yield KeyProblem((str(one), str(other)), why, cast.stage, f'F.col("{cast.name}").cast("{target}")')


def _cast(column: KeyColumn, other: KeyColumn) -> tuple[KeyColumn, str]:
    """Which of two columns to cast, and to what."""
    kinds = {column.type.kind: column, other.type.kind: other}
    if KeyKind.FLOAT in kinds and KeyKind.WHOLE in kinds:
        return kinds[KeyKind.FLOAT], "double"
    if column.type.kind.value < other.type.kind.value:
        return column, other.type.text
    return other, column.type.text


def _way_out(column: KeyColumn) -> str:
    if column.type.kind is KeyKind.COLLATED:
        return f'F.collate("{column.name}", "UTF8_BINARY")'
    return f'F.to_json("{column.name}"), or another column,'
