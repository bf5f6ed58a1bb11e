"""Rows of a checkpoint's stages and states, as a statement or a state's name asks for them.

A statement must not change anything, which its syntax tree tells before DuckDB binds anything. DuckDB's own lock is not
enough: it allows the files behind the views, and does not tell reading from writing. A COPY, also as a common table
expression of a SELECT, or in what `query('...')` is given, would overwrite them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

from stagehold.errors import InvalidArgument, QueryRefused
from stagehold.extras import Extra, brought_by
from stagehold.lake.checkpoints.opened_checkpoint import OpenedCheckpoint, OpenedStage
from stagehold.lake.store.columns import PARTITION, STATE_GROUP, STATE_POSITION
from stagehold.model.stage_state import StateKind, StateShape
from stagehold.viewer.database import Tell, closed_database, database_over
from stagehold.viewer.views import DATA, View, identifier, view_names, views_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

KEY_SEPARATOR = ","

READING = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})

TABLE_FUNCTIONS = frozenset({"unnest", "range", "generate_series"})


@dataclass(frozen=True)
class Rows:
    """``types`` are DuckDB's, one for each column. ``more`` says that there are others behind these."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    more: bool = False


def rows_of_statement(opened: OpenedCheckpoint, text: str, limit: int | None, tell: Tell) -> Rows:
    """The answer to one SELECT over the views of the checkpoint; see `answer`."""
    return answer(text, view_names(opened), partial(views_of, opened), limit, tell)


def answer(
    text: str,
    names: Collection[tuple[str, str]],
    views: Callable[[Collection[tuple[str, str]]], Sequence[View]],
    limit: int | None,
    tell: Tell,
) -> Rows:
    """The answer to one SELECT over the views with these names; only the files behind those that it reads are opened.

    :raises QueryRefused: it does something else, or DuckDB does not understand it.
    :raises PartitionDataMissing: files that it would read are gone.
    """
    with brought_by(Extra.INSPECT):
        import duckdb

    shown = [str(View(*name, "", ())) for name in names]
    asked: Sequence[View] = ()
    try:
        with closed_database() as connection:
            reads, lists = parse_statement(text, connection)
        asked = views(_named(reads, names, lists=lists))
        with database_over(asked, tell) as connection:
            return fetched(connection.execute(text), limit)
    except duckdb.CatalogException as error:
        empty = ", ".join(str(view) for view in asked if not view.files)
        raise QueryRefused(f"nothing of {empty} is there yet" if empty else str(error), shown) from error
    except duckdb.Error as error:
        raise QueryRefused(str(error), shown) from error


def rows_of_state(
    opened: OpenedCheckpoint,
    stage: OpenedStage,
    state: StateShape,
    limit: int | None,
    tell: Tell,
    *,
    partition: int | None = None,
    keys: tuple[str, ...] = (),
) -> Rows:
    """Keyed state in the order of its groups, a list in its own, each row with the partition that holds it.

    :param keys: the key columns' values as text, joined by a comma; none of them means every key.
    :raises InvalidArgument: keys are asked for of a list.
    :raises PartitionDataMissing: files of the state are gone.
    """
    if keys and state.kind.is_list:
        raise InvalidArgument("--keys", " ".join(keys), f"none, since {state.name} is a list")
    (view,) = views_of(opened, [(stage.name, state.name)])
    if not view.files:
        return Rows((), (), ())
    conditions = (_of_partition(partition), _of_keys(state.key, keys))
    where = " AND ".join(condition for condition in conditions if condition) or "true"
    order = (STATE_GROUP, *state.key) if state.kind is StateKind.KEYED else (PARTITION, STATE_POSITION)
    query = f"SELECT * FROM {view} WHERE {where} ORDER BY {', '.join(map(identifier, order))}"
    with database_over([view], tell) as connection:
        return fetched(connection.execute(query, list(keys)), limit)


def fetched(answer: DuckDBPyConnection, limit: int | None) -> Rows:
    """The first ``limit`` rows of an answer, or all of them."""
    description = answer.description or []
    found = answer.fetchall() if limit is None else answer.fetchmany(limit + 1)
    return Rows(
        columns=tuple(column[0] for column in description),
        types=tuple(str(column[1]) for column in description),
        rows=tuple(found[:limit]),
        more=limit is not None and len(found) > limit,
    )


def plain(value: Any) -> Any:
    """A value as JSON has it. Numbers that JSON would round are text, and so are moments, in ISO's form."""
    if isinstance(value, dict):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return format(value, "f")
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return str(value)


def shown(value: Any) -> str:
    """A value for people, in one line."""
    if value is None:
        return "NULL"
    simple = plain(value)
    return simple if isinstance(simple, str) else json.dumps(simple, ensure_ascii=False)


def _named(
    reads: Collection[tuple[str, str]], names: Collection[tuple[str, str]], *, lists: bool
) -> list[tuple[str, str]]:
    """Views that a statement reads; all of them if it asks which there are."""
    named = [name for name in names if (name[0].lower(), name[1].lower()) in reads]
    return list(names) if lists and not named else named


def _of_partition(partition: int | None) -> str:
    return "" if partition is None else f"{PARTITION} = {partition}"


def _of_keys(key: Sequence[str], wanted: Sequence[str]) -> str:
    columns = ", ".join(f"{identifier(column)}::VARCHAR" for column in key)
    return f"concat_ws('{KEY_SEPARATOR}', {columns}) IN ({', '.join('?' * len(wanted))})" if wanted else ""


def parse_statement(text: str, connection: DuckDBPyConnection) -> tuple[frozenset[tuple[str, str]], bool]:
    """The tables that a SELECT reads, by schema and name in lower case, among them names that it gives itself; and
    whether it asks which views there are, or about one.

    :raises QueryRefused: it is not exactly one SELECT that only reads tables.
    """
    (answer,) = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [text]).fetchall()
    tree = json.loads(answer[0])
    if tree["error"]:
        raise QueryRefused(tree["error_message"], ())
    if len(tree["statements"]) != 1:
        raise QueryRefused(f"it is {len(tree['statements'])} statements", ())
    nodes = list(_nodes(tree["statements"][0]))
    _refuse_other_than_reading(nodes)
    reads = frozenset(
        ((node["schema_name"] or DATA).lower(), node["table_name"].lower())
        for node in nodes
        if node["type"] == "BASE_TABLE"
    )
    return reads, any(node["type"] == "SHOW_REF" for node in nodes)


def _refuse_other_than_reading(nodes: list[dict[str, Any]]) -> None:
    for node in nodes:
        if node["type"].endswith("_NODE") and node["type"] not in READING:
            raise QueryRefused(f"it has a {node['type'].removesuffix('_NODE').replace('_', ' ')} in it", ())
        if node["type"] == "TABLE_FUNCTION" and (name := _function(node)) not in TABLE_FUNCTIONS:
            raise QueryRefused(f"{name}(...) could read something else than the checkpoint", ())


def _function(node: dict[str, Any]) -> str:
    return str(node["function"].get("function_name")).lower()


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """What has a type, wherever it is in the tree."""
    if isinstance(tree, dict):
        if isinstance(tree.get("type"), str):
            yield tree
        tree = list(tree.values())
    if isinstance(tree, list):
        for part in tree:
            yield from _nodes(part)
