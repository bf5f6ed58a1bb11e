"""A lake in memory: files, and Delta tables whose log is among them. It refuses a commit as delta-rs does.

What reads and writes it is the product's code. Here is only what delta-rs does for that: it replays a log, and makes
the log's next file if nobody else has and if what landed since the handle was opened does not touch the commit.
`tests/lake/commit/test_committed_waves.py` asks the same of it as of folders and buckets.
"""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, Schema
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.transaction import AddAction
from fuzz.simulator.effects import Effects, Fault, Unreachable, stepping
from tests.run.protocol.stepper import pause

from stagehold.chronicle.chronicle import FOLDER
from stagehold.lake.commit.delta_log import LOG_FOLDER
from stagehold.lake.store.files import FileFacts

NOWHERE = "/dev/null/lake"  # nothing can be made there: what goes past the lake in memory fails
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


class SimulatedLake:
    """Files by address."""

    def __init__(self, effects: Effects | None = None, uri: str = NOWHERE) -> None:
        self.effects, self.uri = effects or Effects(), uri
        self.files: MutableMapping[str, bytes] = {}
        self._beginning = Snapshot(-1)

    def files_at(self, uri: str) -> SimulatedFiles:
        return SimulatedFiles(self, uri)

    def open_table(self, uri: str, version: int | None = None) -> SimulatedTable:
        self.effects.look(f"looks at {self.named(uri)}")
        return SimulatedTable(self, uri, version)

    def create_table(
        self, uri: str, schema: Schema, partition_by: Sequence[str], configuration: Mapping[str, str]
    ) -> None:
        actions = [{"metaData": {"schemaString": schema.to_json(), "partitionColumns": [*partition_by]}}]
        made = self.effects.carry_out(f"creates {self.named(uri)}", lambda: self.put(log_file(uri, 0), lines(actions)))
        if not made:
            raise CommitFailedError(f"{uri} is there already")

    def put(self, path: str, content: bytes) -> bool:
        """Make a file unless there is one."""
        if path in self.files:
            return False
        self.files[path] = content
        return True

    def below(self, uri: str) -> Iterator[str]:
        beginning = f"{uri.rstrip('/')}/"
        return (path for path in [*self.files] if path.startswith(beginning))

    def snapshot(self, uri: str, version: int | None = None) -> Snapshot:
        """:raises TableNotFoundError: the log has no beginning."""
        found, number = self._beginning, 0
        while (content := self.files.get(log_file(uri, number))) is not None and number - 1 != version:
            found, number = found.after(content), number + 1
        if number == 0:
            raise TableNotFoundError(f"no log at {uri}")
        return found

    def close(self) -> None:
        """Nothing is left of it."""

    def named(self, uri: str) -> str:
        return uri.removeprefix(f"{self.uri}/") or "the lake"


@dataclass(frozen=True)
class SimulatedFiles:
    """`lake.store.files.Files` in a `SimulatedLake`."""

    lake: SimulatedLake
    root: str

    def sizes(self, folder: str) -> Mapping[str, int]:
        if folder == LOG_FOLDER:
            self.lake.effects.look(f"lists the log of {self.lake.named(self.root)}")
        return {path: len(self.lake.files[self._at(path)]) for path in self._paths(folder)}

    def folders(self, folder: str) -> Collection[str]:
        depth = len(folder.split("/")) if folder else 0
        found = (path.split("/") for path in self._paths(folder))
        return {parts[depth] for parts in found if len(parts) > depth + 1}

    def names(self) -> Collection[str]:
        return [path for path in self._paths("") if "/" not in path]

    def facts(self, path: str) -> Mapping[str, FileFacts]:
        own = [path] if self._at(path) in self.lake.files else self._paths(path)
        return {name: FileFacts(len(self.lake.files[self._at(name)]), "", _modified(name)) for name in own}

    def tail(self, path: str, length: int) -> bytes:
        return self.read(path)[-length:]

    def read(self, path: str) -> bytes:
        try:
            return self.lake.files[self._at(path)]
        except KeyError:
            raise FileNotFoundError(f"{self.root}/{path}") from None

    def create(self, path: str, content: bytes) -> bool:
        name = "what happened" if path.startswith(FOLDER) else path.rpartition("/")[2]
        return self.lake.effects.carry_out(f"writes {name}", lambda: self.lake.put(self._at(path), content))

    def delete(self, folder: str) -> None:
        self._remove(folder, list(self._paths(folder)))

    def remove(self, paths: Collection[str]) -> None:
        self._remove(", ".join(path.rpartition("/")[2] for path in paths), paths)

    def _remove(self, name: str, paths: Collection[str]) -> None:
        def remove() -> None:
            for path in paths:
                self.lake.files.pop(self._at(path), None)

        self.lake.effects.carry_out(f"deletes {name}", remove)

    def _at(self, path: str) -> str:
        return f"{self.root}/{path}"

    def _paths(self, folder: str) -> list[str]:
        beginning = len(self.root) + 1
        return [path[beginning:] for path in self.lake.below(self._at(folder) if folder else self.root)]


def _modified(path: str) -> datetime:
    """Data is old enough to be swept as soon as it is there, and a log is never old enough to be deleted."""
    return datetime.now(UTC) if path.startswith(LOG_FOLDER) else LONG_AGO


Values = Mapping[str, str | None]


@dataclass(eq=False)
class Snapshot:
    """A table at one version: the tokens that its log has had, and its files with their partitions. Whoever has read
    a log file behind this snapshot finds what came of it.
    """

    version: int
    tokens: Mapping[str, int] = field(default_factory=dict)
    live: Mapping[str, Values] = field(default_factory=dict)
    schema: str = ""
    partition_by: tuple[str, ...] = ()
    actions: Sequence[Mapping[str, Any]] = ()
    _following: dict[bytes, Snapshot] = field(default_factory=dict)

    @property
    def wave(self) -> Mapping[str, Any]:
        """What the newest commit says of the wave that it takes in; nothing if it is no wave's."""
        said = next((action["commitInfo"].get("userMetadata") for action in self.actions if "commitInfo" in action), "")
        return dict(json.loads(said or "{}"))

    @property
    def changed(self) -> frozenset[int]:
        """The partitions that the newest commit takes in or out."""
        named = (each["partition"] for each in self.wave.get("partitions", ()))
        removed = (action["remove"]["partitionValues"]["_partition"] for action in self.actions if "remove" in action)
        return frozenset((*named, *self.wave.get("retracted", ()), *map(int, removed)))

    def after(self, content: bytes) -> Snapshot:
        if content not in self._following:
            self._following[content] = self._replayed([json.loads(line) for line in content.splitlines()])
        return self._following[content]

    def _replayed(self, actions: Sequence[Mapping[str, Any]]) -> Snapshot:
        tokens, live, schema, partition_by = {**self.tokens}, {**self.live}, self.schema, self.partition_by
        for action in actions:
            if removed := action.get("remove"):
                live.pop(unquote(removed["path"]), None)
        for action in actions:
            if token := action.get("txn"):
                tokens[token["appId"]] = token["version"]
            if added := action.get("add"):
                live[unquote(added["path"])] = added["partitionValues"]
            if metadata := action.get("metaData"):
                schema, partition_by = metadata["schemaString"], tuple(metadata["partitionColumns"])
        return Snapshot(self.version + 1, tokens, live, schema, partition_by, actions)


class SimulatedTable:
    """A handle, as far as a `deltalake.DeltaTable` is used to publish, sweep and delete."""

    def __init__(self, lake: SimulatedLake, uri: str, version: int | None = None) -> None:
        self.lake, self.uri, self._seen = lake, uri, lake.snapshot(uri, version)

    def version(self) -> int:
        return self._seen.version

    def transaction_version(self, token: str) -> int | None:
        return self._seen.tokens.get(token)

    def schema(self) -> Schema:
        return Schema.from_json(self._seen.schema)

    def partitions(self) -> list[Values]:
        return list({tuple(values.items()): values for values in self._seen.live.values()}.values())

    def get_add_actions(self, flatten: bool = False) -> pa.Table:
        columns = {"path": [quote(path) for path in self._seen.live]}
        for name in self._seen.partition_by:
            columns[f"partition.{name}"] = [str(values[name]) for values in self._seen.live.values()]
        return pa.table({name: pa.array(column, pa.string()) for name, column in columns.items()})

    def protocol(self) -> Any:
        return type("Protocol", (), {"reader_features": None, "writer_features": None})

    def create_write_transaction(
        self,
        actions: Sequence[AddAction],
        mode: str,
        schema: Schema,
        partition_by: Sequence[str],
        partition_filters: Sequence[tuple[str, str, Any]] | None = None,
        commit_properties: CommitProperties | None = None,
    ) -> None:
        """Replace what ``partition_filters`` find, or all of the table, by ``actions``; append nothing else.

        :raises CommitFailedError: something landed since the handle was opened that touches this, so that whoever
            commits has to look again.
        """
        commit = _Commit(self._seen, actions, mode, schema, partition_by, partition_filters or (), commit_properties)
        if stepping() is not None:
            pause(f"commits to {self.lake.named(self.uri)} on version {self._seen.version}")
        fault = self.lake.effects.take_fault()
        if fault is Fault.LOST_REQUEST:
            raise Unreachable(fault)
        newest = self.lake.snapshot(self.uri)
        for version in range(self._seen.version + 1, newest.version + 1):
            commit.refuse_conflict(self.lake.snapshot(self.uri, version))
        path, content = log_file(self.uri, newest.version + 1), commit.content()
        if fault is Fault.DELAYED:
            self.lake.effects.late.append(lambda: self.lake.put(path, content))
            raise Unreachable(fault)
        self.lake.effects.changes += 1
        self.lake.put(path, content)
        if fault is Fault.REPEATED:  # the second request finds a commit with its own token
            raise CommitFailedError(fault)
        if fault is not None:
            raise Unreachable(fault)

    def to_pyarrow_table(self) -> pa.Table:
        """All rows, with their partitions."""
        found = [pa.table({})] if not self._seen.live else []
        for path, values in self._seen.live.items():
            rows = pq.read_table(io.BytesIO(self.lake.files[f"{self.uri}/{path}"]))
            for name in self._seen.partition_by:
                value = values[name] if name == "_interval" else int(str(values[name]))
                rows = rows.append_column(name, pa.array([value] * len(rows)))
            found.append(rows.replace_schema_metadata())
        return pa.concat_tables(found)


@dataclass(frozen=True)
class _Commit:
    """A commit that was made from what a handle had ``seen``."""

    seen: Snapshot
    adds: Sequence[AddAction]
    mode: str
    schema: Schema
    partition_by: Sequence[str]
    filters: Sequence[tuple[str, str, Any]]
    properties: CommitProperties | None

    @property
    def tokens(self) -> Mapping[str, int]:
        found = self.properties.app_transactions if self.properties else None
        return {token.app_id: token.version for token in found or ()}

    def refuse_conflict(self, landed: Snapshot) -> None:
        for action in landed.actions:
            if "metaData" in action or action.get("txn", {}).get("appId") in self.tokens:
                raise CommitFailedError(f"a concurrent transaction made version {landed.version}")
            values = action.get("add", action.get("remove", {})).get("partitionValues")
            if self.mode == "overwrite" and values and self._finds(values):
                raise CommitFailedError(f"version {landed.version} changed the same partitions")

    def content(self) -> bytes:
        metadata = (self.properties.custom_metadata if self.properties else None) or {}
        info = {"timestamp": 0, "operation": "WRITE", **metadata}
        replaced = {path: values for path, values in self.seen.live.items() if self._finds(values)}
        changed = [] if self.schema.to_json() == self.seen.schema else [self._metadata()]
        return lines(
            [
                {"commitInfo": info},
                *({"txn": {"appId": token, "version": version}} for token, version in self.tokens.items()),
                *changed,
                *({"remove": {"path": path, "partitionValues": values, "dataChange": True}}
                  for path, values in replaced.items() if self.mode == "overwrite"),
                *({"add": {"path": add.path, "size": add.size, "partitionValues": add.partition_values,
                           "dataChange": True, "stats": add.stats}} for add in self.adds),
            ]
        )  # fmt: skip

    def _metadata(self) -> Mapping[str, Any]:
        return {"metaData": {"schemaString": self.schema.to_json(), "partitionColumns": [*self.partition_by]}}

    def _finds(self, values: Values) -> bool:
        return all(
            values.get(column) in wanted if operator == "in" else values.get(column) == wanted
            for column, operator, wanted in self.filters
        )


def log_file(uri: str, version: int) -> str:
    return f"{uri}/{LOG_FOLDER}/{version:020d}.json"


def lines(actions: Sequence[Mapping[str, Any]]) -> bytes:
    return "\n".join(json.dumps(action, separators=(",", ":")) for action in actions).encode()
