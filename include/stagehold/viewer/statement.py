"""May this statement be carried out over a checkpoint? Decided from its syntax tree, before DuckDB binds anything.

DuckDB's own lock is not enough. It allows the files behind the views, and does not tell reading from writing: a COPY,
also as a common table expression of a SELECT, or in what `query('...')` is given, would overwrite them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stagehold.errors import QueryRefused
from stagehold.viewer.views import DATA

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

READING = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
TABLE_FUNCTIONS = frozenset({"unnest", "range", "generate_series"})


@dataclass(frozen=True)
class Statement:
    """One SELECT. ``reads`` are the tables, by schema and name in lower case, among them names that it gives itself.
    ``lists`` says that it asks which views there are, or about one.
    """

    text: str
    reads: frozenset[tuple[str, str]]
    lists: bool


def parse_statement(text: str, connection: DuckDBPyConnection) -> Statement:
    """
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
    return Statement(text, reads, any(node["type"] == "SHOW_REF" for node in nodes))


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
