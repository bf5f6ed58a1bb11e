"""Marks in a published table, for anybody who reads it: which of its rows stay though a waiver has ended.

It is a property of the table, `_STAGEHOLD`, in JSON: `{"waiver_ended": {"2026-11-20": [3]}}`, partitions by interval.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from stagehold.errors import CommitContested
from stagehold.lake.commit.delta_log import open_table, table_exists
from stagehold.lake.commit.tokens import TRIES, by_delta_rs

PROPERTY = "_STAGEHOLD"
WAIVER_ENDED = "waiver_ended"


def outstaying(uri: str, interval: str) -> tuple[int, ...]:
    """Partitions of the interval that are marked; none without a table."""
    return tuple(_marks(uri).get(interval, ()))


def mark_outstaying(uri: str, interval: str, partitions: Sequence[int]) -> bool:
    """Mark just these partitions of the interval; False if they are marked already.

    :raises CommitContested: others kept changing the table.
    """
    reason: str | None = None
    for _ in range(TRIES):
        if not table_exists(uri) or outstaying(uri, interval) == tuple(partitions):
            return reason is not None
        reason = _set(uri, interval, partitions) or ""
    raise CommitContested(uri, TRIES, reason or "")


def _set(uri: str, interval: str, partitions: Sequence[int]) -> str | None:
    """Set the property. Every try opens its own handle, so any commit that somebody made since then is a conflict."""
    table = open_table(uri)
    every = {**_of(table.metadata().configuration), interval: list(partitions)}
    told = json.dumps({WAIVER_ENDED: {name: partitions for name, partitions in sorted(every.items()) if partitions}})
    return by_delta_rs(lambda: table.alter.set_table_properties({PROPERTY: told}, raise_if_not_exists=False))


def _marks(uri: str) -> Mapping[str, Sequence[int]]:
    return _of(open_table(uri).metadata().configuration) if table_exists(uri) else {}


def _of(properties: Mapping[str, str]) -> Mapping[str, Sequence[int]]:
    return dict(json.loads(properties.get(PROPERTY, "{}")).get(WAIVER_ENDED, {}))
