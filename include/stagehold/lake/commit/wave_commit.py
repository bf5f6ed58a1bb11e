"""What the log of a table is told about a commit. From this the ledger can be brought up to date."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any
from zlib import crc32

from stagehold.model.records import DataFile, PartitionRecord, StatePart
from stagehold.model.source_position import SourcePosition, read_position, write_position

SCHEMA_VERSION = 2
MARK = "stagehold"  # tells our metadata from other metadata, in all versions
ATTEMPT_WIDTH = 10**6  # waves per attempt
EPOCH_WIDTH = 10**12  # attempts per epoch, which is one as long as no ledger is lost


@dataclass(frozen=True)
class Claim:
    """An attempt's right to change a share.

    The versions of its tokens grow with the epoch first and the wave last, and name the attempt in between.

    Two attempts can have one epoch only if a ledger was lost under a living attempt. Their tokens differ all the same,
    and the attempt whose token is in the log first keeps the other out.
    """

    epoch: int
    attempt_id: str

    @property
    def fence(self) -> int:
        """The token's version before the first wave. The tokens of every earlier epoch are lower."""
        return self.epoch * EPOCH_WIDTH + crc32(self.attempt_id.encode()) % 10**6 * ATTEMPT_WIDTH

    def is_shut_out_by(self, token: int) -> bool:
        """Whether this token in the log belongs to a newer attempt, or to another attempt with the same epoch."""
        own = self.fence <= token < self.fence + ATTEMPT_WIDTH
        return epoch_of(token) >= self.epoch and not own


def epoch_of(token: int) -> int:
    """The epoch of the attempt that made a token."""
    return token // EPOCH_WIDTH


@dataclass(frozen=True)
class CommittedPartition:
    """A partition as a wave published it; if it has no rows it has no files. ``judged`` identifies the suite that
    judged it, ``refused`` are the critical expectations that it does not meet and that somebody waived, ``counted`` the
    counters of its author.
    """

    partition: int
    rows: int
    fingerprint: str
    compute_key: str
    files: tuple[DataFile, ...]
    kept: tuple[StatePart, ...] = ()
    judged: str = ""
    refused: tuple[str, ...] = ()
    counted: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, record: PartitionRecord) -> CommittedPartition:
        """The committed partition as it is recorded, to be published once more or after all."""
        return cls(
            partition=record.partition,
            rows=record.rows,
            fingerprint=record.fingerprint,
            compute_key=record.compute_key,
            files=record.files,
            kept=record.kept,
            judged=record.judged,
            refused=record.refused,
            counted=record.counted,
        )


@dataclass(frozen=True)
class WaveCommit:
    """The partitions that one wave of one attempt publishes together.

    The stage has ``cut_into`` partitions in all. Partitions beyond them in the table are of an earlier cut, and are
    removed. ``positions`` are what the interval took of the incremental sources that these rows were made from: if the
    ledger is lost, they tell what must not be read again. ``retracted`` partitions leave the table. ``note`` is for
    people who read the table's history.
    """

    run_id: str
    stage: str
    attempt_id: str
    epoch: int
    wave: int
    partitions: tuple[CommittedPartition, ...]
    cut_into: int
    positions: tuple[SourcePosition, ...] = ()
    note: str = ""
    retracted: tuple[int, ...] = ()

    @property
    def claim(self) -> Claim:
        return Claim(self.epoch, self.attempt_id)

    @property
    def token_version(self) -> int:
        return self.claim.fence + self.wave


def without_files(commit: WaveCommit) -> WaveCommit:
    """The commit without its files, for a writer that makes its own files, which only the log can name."""
    return replace(commit, partitions=tuple(replace(partition, files=()) for partition in commit.partitions))


def to_metadata(commit: WaveCommit, cell: str) -> str:
    """JSON for the log; ``cell`` tells the intervals of a published table apart."""
    facts = asdict(replace(commit, positions=()))
    for partition in facts["partitions"]:
        for name in ("kept", "judged", "refused", "counted"):
            if not partition[name]:
                del partition[name]  # as old versions wrote it, which did not know the field
    if not facts["retracted"]:
        del facts["retracted"]  # old versions did not know this field either
    positions = [[position.stage, write_position(position.position)] for position in commit.positions]
    return json.dumps({MARK: SCHEMA_VERSION, "token": cell, **facts, "positions": positions}, separators=(",", ":"))


def from_metadata(text: str | None, cell: str) -> WaveCommit | None:
    """What `to_metadata` wrote for this cell; None for anything else, also for metadata of a newer Stagehold."""
    found = _ours(text)
    if found is None or (found[MARK], found.get("token")) != (SCHEMA_VERSION, cell):
        return None
    return _read(found)


def from_any_cell(text: str | None, prefix: str) -> tuple[str, WaveCommit] | None:
    """What `to_metadata` wrote for a cell that begins with ``prefix``, and how that cell ends: its interval."""
    found = _ours(text)
    if found is None or found[MARK] != SCHEMA_VERSION or not found["token"].startswith(prefix):
        return None
    return found["token"].removeprefix(prefix), _read(found)


def _read(found: dict[str, Any]) -> WaveCommit:
    return WaveCommit(
        run_id=found["run_id"],
        stage=found["stage"],
        attempt_id=found["attempt_id"],
        epoch=found["epoch"],
        wave=found["wave"],
        partitions=tuple(_partition(partition) for partition in found["partitions"]),
        cut_into=found["cut_into"],
        note=found.get("note", ""),
        retracted=tuple(found.get("retracted", ())),
        positions=tuple(SourcePosition(stage, read_position(position)) for stage, position in found["positions"]),
    )


def is_ours(text: str | None) -> bool:
    """Whether this metadata was written by any Stagehold, for any cell."""
    return _ours(text) is not None


def is_wave_of(text: str | None, attempt_id: str, wave: int) -> bool:
    """Whether this is the metadata of that wave."""
    found = _ours(text) or {}
    return (found.get("attempt_id"), found.get("wave")) == (attempt_id, wave)


def _ours(text: str | None) -> dict[str, Any] | None:
    try:
        found = json.loads(text or "")
    except ValueError:
        return None
    return found if isinstance(found, dict) and MARK in found else None


def _partition(found: dict[str, Any]) -> CommittedPartition:
    kept = tuple(StatePart(**{**part, "files": _files(part["files"])}) for part in found.get("kept", ()))
    refused = tuple(found.get("refused", ()))
    counted = tuple((name, count) for name, count in found.get("counted", ()))
    read = {"files": _files(found["files"]), "kept": kept, "refused": refused, "counted": counted}
    return CommittedPartition(**{**found, **read})


def _files(found: Iterable[dict[str, Any]]) -> tuple[DataFile, ...]:
    return tuple(DataFile(**file) for file in found)
