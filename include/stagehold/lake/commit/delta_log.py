"""Reads Delta's log without Spark."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from stagehold.lake.store.files import files_at, mounted_at
from stagehold.lake.store.location import OBJECT_STORE
from stagehold.model.records import DataFile

if TYPE_CHECKING:
    from deltalake import DeltaTable, Schema

LOG_FOLDER = "_delta_log"
AT_ONCE = 16  # readers; an object store answers many as fast as one
COMMIT_FILE = re.compile(r"_delta_log/(\d{20})\.json")


@dataclass(frozen=True)
class AddedFile:
    """A file that a commit added; ``partition`` are its values of the partition columns.

    Without ``data_change`` its rows were in the table before, in other files. If it ``deletes``, some of its rows do
    not count.
    """

    file: DataFile
    partition: Mapping[str, str | None]
    data_change: bool
    deletes: bool = False


@dataclass(frozen=True)
class RemovedFile:
    """A file that a commit removed; without ``data_change`` its rows are still in the table, in other files.

    ``partition`` are its values of the partition columns, or nothing if the writer did not write them.
    """

    path: str
    data_change: bool
    partition: Mapping[str, str | None]


@dataclass(frozen=True)
class LogEntry:
    """A commit. ``user_metadata`` comes from its writer; ``operation``, ``who`` and ``at`` come from the writer's
    engine.

    A field is None if it was not written.
    """

    version: int
    user_metadata: str | None
    operation: str | None
    who: str | None
    at: datetime | None
    added: tuple[AddedFile, ...]
    removed: tuple[RemovedFile, ...]


def table_exists(uri: str) -> bool:
    """Whether anything was ever committed; a log folder alone may be a table that is just being made."""
    return any(COMMIT_FILE.fullmatch(path) for path in files_at(uri).sizes(LOG_FOLDER))


def open_table(uri: str, version: int | None = None) -> DeltaTable:
    """A handle that sees the table as it is now, or as it was at ``version``; it does not follow later commits."""
    from deltalake import DeltaTable

    if lake := mounted_at(uri):
        return lake.open_table(uri, version)
    return DeltaTable(uri, version=version, storage_options=storage_options(uri))


def create_table(uri: str, schema: Schema, partition_by: Sequence[str], configuration: Mapping[str, str]) -> None:
    """Make an empty table.

    :raises DeltaError: somebody else has made one.
    """
    from deltalake import DeltaTable

    if lake := mounted_at(uri):
        return lake.create_table(uri, schema, partition_by, configuration)
    options = storage_options(uri)
    DeltaTable.create(
        uri, schema, partition_by=[*partition_by], configuration={**configuration}, storage_options=options
    )
    return None


def schema_fields(schema: Schema) -> dict[str, Any]:
    """Type of each column by name, in order; types as Delta's JSON has them."""
    return {field["name"]: field["type"] for field in json.loads(schema.to_json())["fields"]}


def newest_commits(uri: str, limit: int | None) -> Iterator[LogEntry]:
    """The newest commits, newest first, all of them if ``limit`` is None; without a log there are none.

    delta-rs counts the versions in its history back from the newest version at that moment, not from the version of its
    handle, so with other writers they are wrong. The name of a file in the log is right.
    """
    for version in commit_versions(uri)[::-1][:limit]:
        yield read_commit(uri, version)


def commit_versions(uri: str) -> Sequence[int]:
    """Versions whose commits are in the log, ascending; older ones may have been cleaned up behind a checkpoint."""
    names = (COMMIT_FILE.fullmatch(path) for path in files_at(uri).sizes(LOG_FOLDER))
    return sorted(int(name[1]) for name in names if name)


def read_commits(uri: str, versions: Sequence[int]) -> Iterator[LogEntry]:
    """What the commits that made ``versions`` did, in that order, many read at once."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(partial(read_commit, uri), versions)


def read_commit(uri: str, version: int) -> LogEntry:
    """What the commit that made ``version`` did, from its file in the log."""
    lines = files_at(uri).read(f"{LOG_FOLDER}/{version:020d}.json").splitlines()
    actions = [(kind, facts) for line in lines for kind, facts in json.loads(line).items()]
    info: Mapping[str, Any] = next((facts for kind, facts in actions if kind == "commitInfo"), {})
    return LogEntry(
        version=version,
        user_metadata=info.get("userMetadata"),
        operation=info.get("operation"),
        who=_who(info),
        at=datetime.fromtimestamp(info["timestamp"] / 1000, UTC) if "timestamp" in info else None,
        added=tuple(_added(facts) for kind, facts in actions if kind == "add"),
        removed=tuple(_removed(facts) for kind, facts in actions if kind == "remove"),
    )


def _who(info: Mapping[str, Any]) -> str | None:
    """The user, if the writer names one, and the program."""
    program = info.get("engineInfo") or info.get("clientVersion")
    user = info.get("userName")
    return f"{user} ({program})" if user and program else user or program


def _removed(facts: Mapping[str, Any]) -> RemovedFile:
    return RemovedFile(unquote(facts["path"]), facts["dataChange"], facts.get("partitionValues") or {})


def _added(facts: Mapping[str, Any]) -> AddedFile:
    """The file that an entry adds. Paths in the log are encoded as in a URL."""
    rows = json.loads(facts.get("stats") or "{}").get("numRecords", 0)
    return AddedFile(
        DataFile(unquote(facts["path"]), facts["size"], rows),
        facts["partitionValues"],
        facts["dataChange"],
        deletes=bool(facts.get("deletionVector")),
    )


# As long as our own calls wait (`lake.store.files`); by itself delta-rs gives up after two to four seconds.
PATIENCE = {"max_retries": "60", "retry_timeout": "60s", "backoff_config.init_backoff": "500ms"}


def storage_options(uri: str) -> dict[str, str] | None:
    """Options for delta-rs. It reads AWS_ENDPOINT_URL as boto3 does, but accepts an address without TLS only when it is
    told to.
    """
    if not uri.startswith(OBJECT_STORE):
        return None
    plain = os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")
    return PATIENCE | ({"AWS_ALLOW_HTTP": "true"} if plain else {})
