"""Publishes staged waves through delta-rs: the staged files become the table's, in milliseconds and without Spark.

Its commits create the log's next file only if nobody else did, on object stores too, so any number of writers may share
a table.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from stagehold.errors import StageContractBroken
from stagehold.lake.commit.committed import Landed, read_back
from stagehold.lake.commit.delta_log import table_exists
from stagehold.lake.commit.staging import DATA_FOLDER
from stagehold.lake.commit.statistics import delta_statistics
from stagehold.lake.commit.tokens import (
    RetryReason,
    by_delta_rs,
    partition_columns,
    token_properties,
    tokens_to_raise,
    until_done,
)
from stagehold.lake.commit.wave_commit import Claim, CommittedPartition, WaveCommit, to_metadata
from stagehold.lake.store.columns import INTERVAL, PARTITION
from stagehold.lake.store.footers import read_footer
from stagehold.lake.store.location import TableLocation
from stagehold.model.records import DataFile

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction

log = logging.getLogger(__name__)


class StagedCommitter:
    """The default `committer.Committer`."""

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

        def replace(table: DeltaTable, landed: int) -> RetryReason:
            if landed >= commit.token_version:
                return None
            return by_delta_rs(lambda: self.replace_partitions(table, location, commit, adds))

        until_done(location, commit.claim, replace)
        landed = read_back(location, commit)
        log.info(
            "published: token=%s epoch=%d wave=%d version=%d", location.token, commit.epoch, commit.wave, landed.version
        )
        return landed

    def append_nothing(self, table: DeltaTable, location: TableLocation, versions: Mapping[str, int]) -> None:
        """One commit that only moves the tokens on."""
        table.create_write_transaction(
            [], "append", table.schema(), partition_columns(location), commit_properties=token_properties(versions)
        )

    def replace_partitions(
        self, table: DeltaTable, location: TableLocation, commit: WaveCommit, adds: list[AddAction]
    ) -> None:
        """One commit that takes the wave in. The table's own schema is passed on: another would change the table's."""
        wave = (*(one.partition for one in commit.partitions), *commit.retracted)
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
    live = (one for one in table.partitions() if one.get(INTERVAL, location.interval) == location.interval)
    return sorted({one[PARTITION] for one in live if int(one[PARTITION]) >= cut_into})


def _add_action(
    location: TableLocation, commit: WaveCommit, partition: CommittedPartition, file: DataFile
) -> AddAction:
    """delta-rs takes files of partitions that the commit does not replace, whose rows would then be there twice."""
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
