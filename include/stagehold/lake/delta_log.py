"""Reads Delta's log without Spark."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from stagehold.lake.files import files_at
from stagehold.lake.location import OBJECT_STORE

if TYPE_CHECKING:
    from deltalake import DeltaTable

LOG_FOLDER = "_delta_log"
COMMIT_FILE = re.compile(r"_delta_log/(\d{20})\.json")


def table_exists(uri: str) -> bool:
    """Whether something was ever committed; a log folder alone may be a table that is being made just now."""
    return any(COMMIT_FILE.fullmatch(path) for path in files_at(uri).sizes(LOG_FOLDER))


def open_table(uri: str, version: int | None = None) -> DeltaTable:
    """A handle that sees the table as it is now, or as it was at ``version``; it does not follow later commits."""
    from deltalake import DeltaTable

    return DeltaTable(uri, version=version, storage_options=storage_options(uri))


def schema_fields(table: DeltaTable) -> dict[str, Any]:
    """Type of each column by name, in order; types as Delta's JSON has them."""
    return {field["name"]: field["type"] for field in json.loads(table.schema().to_json())["fields"]}


def newest_commits(uri: str, limit: int) -> Iterator[tuple[int, str | None]]:
    """Version and user metadata of the newest commits, newest first; without a log there are none.

    delta-rs counts the versions in its history back from the newest one at that moment, not from the one its handle
    has, so beside other writers they are wrong. A file's name is not.
    """
    names = (COMMIT_FILE.fullmatch(path) for path in files_at(uri).sizes(LOG_FOLDER))
    for version in sorted((int(name[1]) for name in names if name), reverse=True)[:limit]:
        actions = (json.loads(line) for line in files_at(uri).read(f"{LOG_FOLDER}/{version:020d}.json").splitlines())
        yield version, next((action["commitInfo"].get("userMetadata") for action in actions if "commitInfo" in action), None)


def storage_options(uri: str) -> dict[str, str] | None:
    """delta-rs reads AWS_ENDPOINT_URL as boto3 does, but takes one without TLS only when told so."""
    if uri.startswith(OBJECT_STORE) and os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://"):
        return {"AWS_ALLOW_HTTP": "true"}
    return None
