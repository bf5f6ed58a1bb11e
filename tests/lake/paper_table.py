"""A stage's table and its waves without Spark:
pyarrow writes the files, so that commits can be tested in milliseconds.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, Schema

from stagehold.lake.commit.committed_waves import Landed
from stagehold.lake.commit.delta_log import create_table, open_table
from stagehold.lake.commit.staged_committer import StagedCommitter
from stagehold.lake.commit.wave_commit import Claim, CommittedPartition, WaveCommit
from stagehold.lake.store.files import files_at
from stagehold.lake.store.footers import SPARK_SCHEMA
from stagehold.lake.store.location import TableLocation
from stagehold.model.records import Cell, DataFile, PartitionRecord
from stagehold.model.standing import PartitionState

INTERVAL = "2026-11-20"
Rows = Sequence[tuple[str, int]]


class InterruptedCommitter(StagedCommitter):
    """Does what waits, one after the other, each time it has opened and checked a table and is about to commit."""

    def __init__(self, *waiting: Callable[[], object]) -> None:
        self.waiting = list(waiting)

    def append_nothing(self, *facts: Any) -> None:
        self._let_others()
        super().append_nothing(*facts)

    def replace_partitions(self, *facts: Any) -> None:
        self._let_others()
        super().replace_partitions(*facts)

    def _let_others(self) -> None:
        if self.waiting:
            self.waiting.pop(0)()


@dataclass(frozen=True)
class PaperTable:
    """One attempt's view of a table with the columns name and amount."""

    location: TableLocation
    epoch: int = 1
    cut_into: int = 100
    committer: StagedCommitter = StagedCommitter()  # noqa: RUF009 - it has no state

    @staticmethod
    def own(folder: str) -> PaperTable:
        return PaperTable(TableLocation("joined", f"{folder}/joined", f"stagehold/p/joined/{INTERVAL}", None)).create()

    @staticmethod
    def published(folder: str) -> PaperTable:
        return PaperTable(TableLocation("top", f"{folder}/marts/top", f"stagehold/p/top/{INTERVAL}", INTERVAL)).create()

    def create(self) -> PaperTable:
        columns = {"name": "string", "amount": "long", "_partition": "integer"}
        columns |= {} if self.location.interval is None else {"_interval": "string"}
        fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns.items()]
        partitioning = ["_partition"] if self.location.interval is None else ["_interval", "_partition"]
        schema = Schema.from_json(json.dumps({"type": "struct", "fields": fields}))
        create_table(self.location.uri, schema, partitioning, {})
        return self

    def next_epoch(self) -> PaperTable:
        return replace(self, epoch=self.epoch + 1)

    def on(self, interval: str) -> PaperTable:
        cell = f"{self.location.cell.rpartition('/')[0]}/{interval}"
        return replace(self, location=replace(self.location, cell=cell, interval=interval))

    @property
    def attempt_id(self) -> str:
        return f"run.region.{self.epoch}.{self.location.interval}"

    @property
    def claim(self) -> Claim:
        return Claim(self.epoch, self.attempt_id)

    def wave(self, rows: Mapping[int, Rows], number: int = 1) -> WaveCommit:
        """Write files; what is left is to publish."""
        partitions = [
            CommittedPartition(
                partition,
                len(some),
                f"content of {some}",
                "key",
                write_file(self.location.uri, self.attempt_id, number, partition, some),
            )
            for partition, some in rows.items()
        ]
        return WaveCommit(
            "run", self.location.stage, self.attempt_id, self.epoch, number, tuple(partitions), self.cut_into
        )

    def publish(self, rows: Mapping[int, Rows], number: int = 1) -> list[PartitionRecord]:
        return records(self.location, self.committer.publish(self.location, self.wave(rows, number)))

    def seen(self) -> list[tuple[Any, ...]]:
        """What any Delta reader sees in the newest version: (interval, partition, name, amount)."""
        rows = self.handle().to_pyarrow_table().to_pylist()
        return sorted((row.get("_interval", INTERVAL), row["_partition"], row["name"], row["amount"]) for row in rows)

    def handle(self) -> DeltaTable:
        return open_table(self.location.uri)

    @property
    def version(self) -> int:
        return self.handle().version()


def lose_commits(table: PaperTable) -> None:
    """Have the table's log be a checkpoint, whose commits cannot be read any more."""
    table.handle().create_checkpoint()
    log = files_at(f"{table.location.uri}/_delta_log")
    for name in [f"{version:020d}.json" for version in range(table.version + 1)]:
        log.remove([name])
        log.create(name, b"not to be read")


SCHEMA = json.dumps(  # as Spark writes it into its files, for whoever reads no others
    {
        "type": "struct",
        "fields": [
            {"name": "name", "type": "string", "nullable": True, "metadata": {}},
            {"name": "amount", "type": "long", "nullable": True, "metadata": {}},
        ],
    }
)


def write_file(uri: str, attempt_id: str, wave: int, partition: int, rows: Rows) -> tuple[DataFile, ...]:
    """The file of one staged partition; there is none for one without rows."""
    if not rows:
        return ()
    path = f"_data/{attempt_id}/{wave}/_partition={partition}/part-0.parquet"
    table = pa.table({"name": [name for name, _ in rows], "amount": [amount for _, amount in rows]})
    content = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({SPARK_SCHEMA: SCHEMA}), content)
    assert files_at(uri).create(path, content.getvalue())
    return (DataFile(path, len(content.getvalue()), len(rows)),)


def records(location: TableLocation, landed: Landed) -> list[PartitionRecord]:
    """What the ledger holds of a wave that was published."""
    version, commit = landed
    return [
        PartitionRecord(
            cell=Cell("p", commit.stage, location.interval or INTERVAL),
            partition=partition.partition,
            state=PartitionState.CONSUMABLE,
            run_id=commit.run_id,
            attempt_id=commit.attempt_id,
            epoch=commit.epoch,
            wave=commit.wave,
            table=location.uri,
            version=version,
            files=partition.files,
            rows=partition.rows,
            fingerprint=partition.fingerprint,
            compute_key=partition.compute_key,
            recorded_at=datetime(2026, 11, 20, tzinfo=UTC),
        )
        for partition in commit.partitions
    ]
