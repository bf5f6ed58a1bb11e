"""Publishes staged waves in Delta's log, and keeps attempts that were superseded from doing so.

Every commit carries a token: the share of the partitions it writes, with a version that grows with epoch and wave. The
token is looked up in the same handle that commits, and Delta refuses a commit when another one with its token landed
after the handle was opened. So of all attempts that ever write a share, only the newest can. When the partitions were
cut into other shares before, a fence carries the tokens of all shares that overlap: what counts is the partition.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from stagehold.errors import CommitContested, Fenced, StageContractBroken
from stagehold.lake.columns import INTERVAL, PARTITION
from stagehold.lake.delta_log import newest_commits, open_table, table_exists
from stagehold.lake.footers import read_footer
from stagehold.lake.location import TableLocation
from stagehold.lake.staging import DATA_FOLDER
from stagehold.lake.statistics import delta_statistics
from stagehold.lake.wave_commit import EPOCH_WIDTH, CommittedPartition, WaveCommit, fence_version, from_metadata, to_metadata
from stagehold.model.records import DataFile

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable
    from deltalake.transaction import AddAction

__all__ = ["CommittedPartition", "WaveCommit", "committed", "fence", "publish"]

TRIES = 20  # intervals of one published table may commit at the same moment; each try lets one of them through
PAUSE_SECONDS = 0.05
FEW = 10  # newest commits among which one's own nearly always is
RECENT = 200  # commits looked through for what could not be recorded; what is further back is computed again

log = logging.getLogger(__name__)


def fence(location: TableLocation, epoch: int, rivals: Sequence[TableLocation] = ()) -> None:
    """Keep every attempt with a lower epoch from publishing here, those in the middle of a commit included.

    Does nothing when there is no table yet, or when this epoch was fenced in before.

    :param rivals: the same cut into other shares, as far as they overlap; attempts of those are kept out, too. A higher
        epoch there is none of our business: it is of a share that overlaps the rival and not this one.

    :raises Fenced: when a newer epoch was here first.
    :raises CommitContested: when others kept committing to the table.
    """
    if table_exists(location.uri):
        tokens = [location.token, *(rival.token for rival in rivals)]
        _until_landed(tokens, epoch, fence_version(epoch), location.uri, lambda table: _append_nothing(table, location, tokens, epoch))
        log.info("fenced: token=%s epoch=%d", location.token, epoch)


def publish(location: TableLocation, commit: WaveCommit) -> int:
    """Replace the wave's partitions by its files in one atomic commit; returns the version that holds them.

    Nothing is visible before, everything after. Repeating a call that landed, though its answer was lost, changes
    nothing and returns the same version.

    :raises Fenced: when a newer epoch published or fenced this share.
    :raises CommitContested: when others kept committing to the table.
    """
    adds = [_add_action(location, commit, partition, file) for partition in commit.partitions for file in partition.files]
    tokens = [location.token]
    _until_landed(tokens, commit.epoch, commit.token_version, location.uri, lambda table: _replace(table, location, commit, adds))
    version = _version_of(location, commit)
    log.info("published: token=%s epoch=%d wave=%d version=%d", location.token, commit.epoch, commit.wave, version)
    return version


def committed(location: TableLocation) -> tuple[tuple[int, WaveCommit], ...]:
    """What the log says of each partition of this stage and interval, newest commit only; each commit with just those partitions.

    Of whatever share the commits are. Oldest first. Reads log files only, the newest `RECENT` of them.
    """
    seen: set[int] = set()
    live: list[tuple[int, WaveCommit]] = []
    for version, commit in _commits(location, RECENT):
        newest = tuple(one for one in commit.partitions if one.partition not in seen)
        seen.update(one.partition for one in newest)
        if newest:
            live.insert(0, (version, replace(commit, partitions=newest)))
    return tuple(live)


def _until_landed(tokens: Sequence[str], epoch: int, token_version: int, uri: str, write: Callable[[DeltaTable], None]) -> None:
    """Write until every token is in the log. Each try asks anew whether this epoch still may; none is repeated blindly.

    :param tokens: the attempt's own first; only that one can say that a newer epoch was here.
    """
    from deltalake.exceptions import CommitFailedError

    reason = ""
    for attempt in range(TRIES):
        table = open_table(uri)
        landed = [table.transaction_version(token) or 0 for token in tokens]
        if landed[0] // EPOCH_WIDTH > epoch:
            raise Fenced(tokens[0], epoch, landed[0] // EPOCH_WIDTH)
        if min(landed) >= token_version:
            return
        try:
            return write(table)
        except CommitFailedError as error:
            reason = str(error)
            log.info("commit failed, asking anew: token=%s version=%d: %s", tokens[0], token_version, reason)
            time.sleep(random.uniform(0, PAUSE_SECONDS * attempt))  # noqa: S311
    raise CommitContested(uri, TRIES, reason)


def _version_of(location: TableLocation, commit: WaveCommit) -> int:
    """The token says that the commit, or a later one of its epoch, landed; only the log can say that it was this one."""
    for limit in (FEW, RECENT):
        for version, found in _commits(location, limit):
            if (found.attempt_id, found.epoch, found.wave) == (commit.attempt_id, commit.epoch, commit.wave):
                return version
    raise Fenced(location.token, commit.epoch, commit.epoch)


def _commits(location: TableLocation, limit: int) -> Iterator[tuple[int, WaveCommit]]:
    """Commits of this stage and interval among the newest ``limit`` of the table, newest first."""
    for version, metadata in newest_commits(location.uri, limit):
        commit = from_metadata(metadata, location.cell)
        if commit:
            yield version, commit


def _append_nothing(table: DeltaTable, location: TableLocation, tokens: Sequence[str], epoch: int) -> None:
    """Tokens never go back: a rival's that has a higher version keeps it."""
    versions = {token: fence_version(epoch) for token in tokens if (table.transaction_version(token) or 0) < fence_version(epoch)}
    table.create_write_transaction([], "append", table.schema(), _partition_columns(location), commit_properties=_properties(versions))


def _replace(table: DeltaTable, location: TableLocation, commit: WaveCommit, adds: list[AddAction]) -> None:
    """The table's own schema is passed on: another would change the table's."""
    partitions = [str(one.partition) for one in commit.partitions]
    share = [] if location.interval is None else [(INTERVAL, "=", location.interval)]
    table.create_write_transaction(
        list(adds),
        "overwrite",
        table.schema(),
        _partition_columns(location),
        [*share, (PARTITION, "in", partitions)],
        commit_properties=_properties({location.token: commit.token_version}, to_metadata(commit, location.cell)),
    )


def _properties(versions: Mapping[str, int], metadata: str | None = None) -> CommitProperties:
    from deltalake import CommitProperties, Transaction

    return CommitProperties(
        custom_metadata={"userMetadata": metadata} if metadata else None,
        app_transactions=[Transaction(token, version) for token, version in versions.items()],
    )


def _partition_columns(location: TableLocation) -> list[str]:
    return [PARTITION] if location.interval is None else [INTERVAL, PARTITION]


def _add_action(location: TableLocation, commit: WaveCommit, partition: CommittedPartition, file: DataFile) -> AddAction:
    """delta-rs takes files of partitions that the commit does not replace, whose rows would then be there twice."""
    from deltalake.transaction import AddAction

    if not file.path.startswith(f"{DATA_FOLDER}/{commit.attempt_id}/{commit.wave}/{PARTITION}={partition.partition}/"):
        raise StageContractBroken(
            location.stage, f"its wave {commit.wave} has {file.path} among the files of partition {partition.partition}"
        )
    values = {PARTITION: str(partition.partition)} | ({} if location.interval is None else {INTERVAL: location.interval})
    statistics = delta_statistics(read_footer(location.uri, file.path))
    return AddAction(file.path, file.bytes, values, time.time_ns() // 1_000_000, True, statistics)
