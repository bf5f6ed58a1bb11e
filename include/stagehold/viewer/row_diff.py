"""Which rows of a stage differ between two checkpoints. Only partitions that differ are read: the others are equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stagehold.errors import InvalidArgument
from stagehold.lake.checkpoints.opened_checkpoint import OpenedCheckpoint, OpenedStage
from stagehold.lake.store.columns import PARTITION
from stagehold.viewer.database import Tell, database_over
from stagehold.viewer.diff import StageDiff, differing
from stagehold.viewer.read_rows import Rows, fetched
from stagehold.viewer.views import View, consumable, data_view, identifier

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

A, B = "a", "b"  # schemas of the two checkpoints
FIRST = 20


DifferingRows = tuple[int, Rows]  # how many there are, and the first of them


@dataclass(frozen=True)
class RowDiff:
    """Rows of a stage, compared in the columns that both have. Without a key, a row that is there twice counts twice
    and nothing is called changed; ``removed`` are only in A, ``added`` only in B.
    """

    key: tuple[str, ...]
    only_in_a: tuple[str, ...]
    only_in_b: tuple[str, ...]
    removed: DifferingRows
    added: DifferingRows
    changed: DifferingRows | None


def row_diff(
    a: OpenedCheckpoint, b: OpenedCheckpoint, diff: StageDiff, key: Sequence[str], tell: Tell
) -> RowDiff | None:
    """The rows of a stage that differ between two checkpoints. None if the stage has no file in one of them, or no
    partition differs.

    :raises InvalidArgument: the key is not in both, or not a key: it has a value twice.
    :raises PartitionDataMissing: files of partitions that differ are gone.
    """
    views = [_view(schema, opened, opened.stage(diff.id), diff) for schema, opened in ((A, a), (B, b))]
    if not all(view.files for view in views):
        return None
    with database_over(views, tell) as connection:
        return _compared(str(views[0]), str(views[1]), key, connection)


def _compared(a: str, b: str, key: Sequence[str], connection: DuckDBPyConnection) -> RowDiff:
    ours, theirs = _columns(a, connection), _columns(b, connection)
    both = [column for column in ours if column in theirs]
    for table in (a, b):
        _refuse_what_is_no_key(key, both, table, connection)
    queries = _by_key(a, b, key, both) if key else _as_multisets(a, b, both)
    removed, added, *changed = (_difference(query, connection) for query in queries)
    return RowDiff(
        key=tuple(key),
        only_in_a=tuple(column for column in ours if column not in both),
        only_in_b=tuple(column for column in theirs if column not in both),
        removed=removed,
        added=added,
        changed=changed[0] if changed else None,
    )


def _view(schema: str, opened: OpenedCheckpoint, stage: OpenedStage, diff: StageDiff) -> View:
    wanted = differing(diff.partitions)
    records = consumable(opened, stage)
    return data_view(
        schema, stage.name, [record for record in records if record.partition in wanted or not diff.cut_alike]
    )


def _columns(table: str, connection: DuckDBPyConnection) -> list[str]:
    described = connection.execute(f"DESCRIBE {table}").fetchall()
    return [name for name, *_ in described if name != PARTITION]


def _refuse_what_is_no_key(
    key: Sequence[str], columns: Sequence[str], table: str, connection: DuckDBPyConnection
) -> None:
    for column in key:
        if column not in columns:
            raise InvalidArgument("--key", column, f"columns that both have: {', '.join(columns)}")
    if key:
        twice = f"SELECT {_list(key)} FROM {table} GROUP BY ALL HAVING count(*) > 1 LIMIT 1"
        if found := connection.execute(twice).fetchall():
            value = ", ".join(map(str, found[0]))
            raise InvalidArgument("--key", " ".join(key), f"columns that tell rows apart; {value} is there twice")


def _by_key(a: str, b: str, key: Sequence[str], columns: Sequence[str]) -> list[str]:
    same = " AND ".join(f"a.{column} IS NOT DISTINCT FROM b.{column}" for column in map(identifier, key))
    others = [column for column in columns if column not in key]
    differs = " OR ".join(f"a.{column} IS DISTINCT FROM b.{column}" for column in map(identifier, others)) or "false"
    beside = [
        f"{side}.{identifier(column)} AS {identifier(f'{column} in {side.upper()}')}"
        for column in others
        for side in (A, B)
    ]
    shown = ", ".join((*(f"a.{identifier(column)}" for column in key), *beside))
    return [
        f"SELECT {_list(columns)} FROM {a} AS a ANTI JOIN {b} AS b ON {same}",
        f"SELECT {_list(columns)} FROM {b} AS b ANTI JOIN {a} AS a ON {same}",
        f"SELECT {shown} FROM {a} AS a JOIN {b} AS b ON {same} WHERE {differs}",
    ]


def _as_multisets(a: str, b: str, columns: Sequence[str]) -> list[str]:
    every = _list(columns)
    return [f"SELECT {every} FROM {one} EXCEPT ALL SELECT {every} FROM {other}" for one, other in ((a, b), (b, a))]


def _difference(query: str, connection: DuckDBPyConnection) -> DifferingRows:
    ((count,),) = connection.execute(f"SELECT count(*) FROM ({query})").fetchall()
    return count, fetched(connection.execute(f"{query} ORDER BY ALL LIMIT {FIRST}"), None)


def _list(columns: Sequence[str]) -> str:
    return ", ".join(map(identifier, columns))
