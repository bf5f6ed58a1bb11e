"""Publishes staged waves through delta-rs: the staged files become the table's, in milliseconds and without Spark.

Its commits create the log's next file only if nobody else did, on object stores too, so any number of writers may share
a table. Statistics of a file are left out of Delta's log if they could make a reader skip rows that match.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from stagehold.errors import StageContractBroken
from stagehold.lake.commit.committed_waves import Landed, read_back
from stagehold.lake.commit.delta_log import table_exists
from stagehold.lake.commit.staging import DATA_FOLDER
from stagehold.lake.commit.tokens import (
    PAUSE_SECONDS,
    RetryReason,
    by_delta_rs,
    note_landed,
    partition_columns,
    token_properties,
    tokens_to_raise,
    until_done,
)
from stagehold.lake.commit.wave_commit import Claim, CommittedPartition, WaveCommit, to_metadata
from stagehold.lake.store.columns import INTERVAL, PARTITION
from stagehold.lake.store.footers import ColumnRange, Footer, read_footer
from stagehold.lake.store.location import TableLocation
from stagehold.model.records import DataFile

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction

log = logging.getLogger(__name__)

LONGEST_TEXT = 32  # Delta's own writers cut longer texts

LAST_MOMENT = datetime.fromisoformat("9999-12-31T23:59:59.999")  # the last whole millisecond

DIGITS = 15  # a decimal with more of them is not the same after a detour through a JSON number


class StagedCommitter:
    """The default `committer.Committer`."""

    pause_seconds = PAUSE_SECONDS

    def fence(self, location: TableLocation, claim: Claim, rivals: Sequence[TableLocation] = ()) -> None:
        if not table_exists(location.uri):
            return

        def append_nothing(table: DeltaTable, landed: int) -> RetryReason:  # noqa: ARG001
            versions = tokens_to_raise(table, (location, *rivals), claim)
            return by_delta_rs(lambda: self.append_nothing(table, location, versions)) if versions else None

        until_done(location, claim, append_nothing)
        log.info("fenced: token=%s epoch=%d", location.token, claim.epoch)

    def publish(self, location: TableLocation, commit: WaveCommit) -> Landed:
        adds = [
            _add_action(location, commit, partition, file)
            for partition in commit.partitions
            for file in partition.files
        ]

        seen: list[int] = []

        def replace(table: DeltaTable, landed: int) -> RetryReason:
            if landed >= commit.token_version:
                return None
            seen.append(table.version())
            return by_delta_rs(lambda: self.replace_partitions(table, location, commit, adds))

        until_done(location, commit.claim, replace, self.pause_seconds)
        landed = read_back(location, commit, seen[-1] + 1 if seen else None)
        note_landed(location, commit.claim, landed.version, commit.token_version)
        log.info(
            "published: token=%s epoch=%d wave=%d version=%d", location.token, commit.epoch, commit.wave, landed.version
        )
        return landed

    def append_nothing(self, table: DeltaTable, location: TableLocation, versions: Mapping[str, int]) -> None:
        """Make a commit that only moves the tokens on."""
        table.create_write_transaction(
            [], "append", table.schema(), partition_columns(location), commit_properties=token_properties(versions)
        )

    def replace_partitions(
        self, table: DeltaTable, location: TableLocation, commit: WaveCommit, adds: list[AddAction]
    ) -> None:
        """Make the commit that takes the wave in. It names the table's own schema: another schema would change the
        table's.
        """
        wave = (*(partition.partition for partition in commit.partitions), *commit.retracted)
        partitions = [*map(str, wave), *_beyond(table, location, commit.cut_into)]
        share = [] if location.interval is None else [(INTERVAL, "=", location.interval)]
        table.create_write_transaction(
            list(adds),
            "overwrite",
            table.schema(),
            partition_columns(location),
            [*share, (PARTITION, "in", partitions)],
            commit_properties=token_properties(
                {location.token: commit.token_version}, to_metadata(commit, location.cell)
            ),
        )


def _beyond(table: DeltaTable, location: TableLocation, cut_into: int) -> list[str]:
    """Partitions of this stage and interval that only an earlier cut had."""
    live = (
        partition for partition in table.partitions() if partition.get(INTERVAL, location.interval) == location.interval
    )
    return sorted({partition[PARTITION] for partition in live if int(partition[PARTITION]) >= cut_into})


def _add_action(
    location: TableLocation, commit: WaveCommit, partition: CommittedPartition, file: DataFile
) -> AddAction:
    """The action that adds a file of the partition. It is checked here: delta-rs also accepts files of partitions that
    the commit does not replace, whose rows would then be there twice.
    """
    from deltalake.transaction import AddAction

    if not (file.path.startswith(f"{DATA_FOLDER}/") and f"/{PARTITION}={partition.partition}/" in file.path):
        raise StageContractBroken(
            location.stage, f"its wave {commit.wave} has {file.path} among the files of partition {partition.partition}"
        )
    values = {PARTITION: str(partition.partition)} | (
        {} if location.interval is None else {INTERVAL: location.interval}
    )
    statistics = delta_statistics(read_footer(location.uri, file.path))
    return AddAction(file.path, file.bytes, values, time.time_ns() // 1_000_000, True, statistics)


def delta_statistics(footer: Footer) -> str:
    """JSON for the ``stats`` of an add action.

    Ranges are given for whole numbers, short texts, dates, timestamps and decimals that JSON can hold. Not for
    floating point: Parquet's range may leave NaN out, which Spark sorts above everything.
    """
    ranged = {name: column for name, column in footer.columns.items() if _has_range(column)}
    return json.dumps(
        {
            "numRecords": footer.rows,
            "minValues": {name: _lowest(column.minimum) for name, column in ranged.items()},
            "maxValues": {name: _highest(column.maximum) for name, column in ranged.items()},
            "nullCount": {name: column.nulls for name, column in footer.columns.items() if column.nulls is not None},
        }
    )


def _has_range(column: ColumnRange) -> bool:
    return _is_exact(column.minimum) and _is_exact(column.maximum)


def _is_exact(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST_TEXT
    if isinstance(value, Decimal):
        return len(value.as_tuple().digits) <= DIGITS
    if isinstance(value, datetime):
        return value.replace(tzinfo=None) <= LAST_MOMENT  # a later moment would be rounded up into the year 10000
    return isinstance(value, date) or (isinstance(value, int) and not isinstance(value, bool))


def _lowest(value: Any) -> Any:
    return _timestamp(value) if isinstance(value, datetime) else _plain(value)


def _highest(value: Any) -> Any:
    """The maximum for the log. The log keeps milliseconds, so a maximum between two of them becomes the later one."""
    return (
        _timestamp(value + timedelta(microseconds=-value.microsecond % 1000))
        if isinstance(value, datetime)
        else _plain(value)
    )


def _timestamp(value: datetime) -> str:
    text = (value.astimezone(UTC) if value.tzinfo else value).replace(tzinfo=None).isoformat(timespec="milliseconds")
    return f"{text}Z" if value.tzinfo else text


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    return value.isoformat() if isinstance(value, date) else value
