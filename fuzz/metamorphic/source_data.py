"""The rows that all cases of a seed read: two sides with a key and a value of every type,
and a small table for everybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from fuzz.metamorphic.kinds import ARROW, STORED, Kind, draw

FILES = 3


@dataclass(frozen=True)
class Column:
    name: str
    kind: Kind


@dataclass(frozen=True)
class SourceTable:
    """A source stage's columns and how much it holds."""

    name: str
    columns: tuple[Column, ...]
    rows: int
    nulls: float = 0.12
    skew: float = 0.3

    def write(self, folder: Path, random: Random) -> None:
        """In several files, which are its splits."""
        (folder / self.name).mkdir(parents=True)
        rows = [self._row(random, number) for number in range(self.rows)]
        for number in range(FILES):
            pq.write_table(
                pa.Table.from_pylist(rows[number::FILES], self._schema), folder / self.name / f"{number}.parquet"
            )

    def spec(self, folder: Path) -> dict[str, Any]:
        return {"kind": "parquet", "path": f"{folder / self.name}/*.parquet", "splits": FILES}

    def scan(self, folder: Path, file: int | None = None) -> str:
        """The same rows for DuckDB; only those of one file, if it is named."""
        return f"SELECT * FROM read_parquet('{folder / self.name}/{'*' if file is None else file}.parquet')"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def _schema(self) -> pa.Schema:
        return pa.schema([(column.name, ARROW[column.kind]) for column in self.columns])

    def _row(self, random: Random, number: int) -> dict[str, Any]:
        drawn = {column.name: draw(random, column.kind, self.nulls, self.skew) for column in self.columns}
        return drawn | {"id": number} if "id" in drawn else drawn


def _side(name: str) -> tuple[Column, ...]:
    keys = (Column(f"{name}_key_{kind.slug}", kind) for kind in STORED)
    values = (Column(f"{name}_{kind.slug}", kind) for kind in STORED)
    return (*keys, *values)


LEFT = SourceTable("left_rows", _side("l"), rows=60)
RIGHT = SourceTable("right_rows", _side("r"), rows=40)
SMALL = SourceTable("small_rows", (Column("s_int", Kind.INT), Column("s_string", Kind.STRING)), rows=3, skew=0.0)
TABLES = (LEFT, RIGHT, SMALL)
