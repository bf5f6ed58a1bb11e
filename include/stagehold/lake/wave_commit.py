"""What a commit says about itself in the table's log, so that the ledger can be brought up to date from it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from stagehold.model.records import DataFile

SCHEMA_VERSION = 1
EPOCH_WIDTH = 1_000_000  # waves per epoch; a token grows with the epoch first, with the wave second


@dataclass(frozen=True)
class CommittedPartition:
    """One partition as a wave published it; without rows it has no files."""

    partition: int
    rows: int
    fingerprint: str
    compute_key: str
    files: tuple[DataFile, ...]


@dataclass(frozen=True)
class WaveCommit:
    """The partitions that one wave of one attempt publishes together.

    The stage has ``cut_into`` partitions in all. Whatever the table holds beyond them is of an earlier cut, and goes.
    """

    run_id: str
    stage: str
    attempt_id: str
    epoch: int
    wave: int
    partitions: tuple[CommittedPartition, ...]
    cut_into: int

    @property
    def token_version(self) -> int:
        return fence_version(self.epoch) + self.wave


def fence_version(epoch: int) -> int:
    """Token of an epoch before its first wave; every earlier epoch's tokens are lower."""
    return epoch * EPOCH_WIDTH


def without_files(commit: WaveCommit) -> WaveCommit:
    """For a writer that makes files of its own, which only the log can name."""
    return replace(commit, partitions=tuple(replace(one, files=()) for one in commit.partitions))


def to_metadata(commit: WaveCommit, cell: str) -> str:
    """JSON for the log; ``cell`` tells the intervals of a published table apart."""
    return json.dumps({"stagehold": SCHEMA_VERSION, "token": cell, **asdict(commit)}, separators=(",", ":"))


def from_metadata(text: str | None, cell: str) -> WaveCommit | None:
    """What `to_metadata` wrote for this cell; None for anything else, also for what a newer Stagehold wrote."""
    try:
        found = json.loads(text or "")
    except ValueError:
        return None
    if not isinstance(found, dict) or (found.get("stagehold"), found.get("token")) != (SCHEMA_VERSION, cell):
        return None
    partitions = tuple(_partition(one) for one in found["partitions"])
    return WaveCommit(found["run_id"], found["stage"], found["attempt_id"], found["epoch"], found["wave"], partitions, found["cut_into"])


def _partition(found: dict[str, Any]) -> CommittedPartition:
    return CommittedPartition(**{**found, "files": tuple(DataFile(**file) for file in found["files"])})
