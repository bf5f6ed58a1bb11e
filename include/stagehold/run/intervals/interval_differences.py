"""How two intervals of a pipeline differ, stage by stage. Records are compared, and the footer of one file of each
stage; no data is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from stagehold.errors import UnknownName
from stagehold.lake.available import present_files
from stagehold.lake.store.columns import is_reserved
from stagehold.lake.store.footers import read_footer
from stagehold.ledger.ledger import Ledger
from stagehold.model.keys.compute_key import ComputeKey
from stagehold.model.records import PartitionRecord
from stagehold.spec.pipeline import Pipeline

# Inputs of two intervals nearly always differ, so that says nothing.
TOLD_CAUSES = ("code", "settings", "environment", "params", "reads")


@dataclass(frozen=True)
class StageContents:
    """The records of a stage in one interval. ``consumable`` of the ``partitions`` can be read; ``bytes`` are of files
    that are named now, so none for released partitions. A gate has ``judged`` so many and ``refused`` so many of them,
    of which ``waived`` ones can be read all the same. Without a file to look into there are no ``columns``.
    """

    partitions: int
    consumable: int
    rows: int
    bytes: int
    seconds: float
    judged: int
    refused: int
    waived: int
    columns: Mapping[str, str]

    @property
    def verdict(self) -> str:
        """The gate's verdict, in words; None if no gate has judged it."""
        if not self.refused:
            return "passed" if self.judged else ""
        waived = f", {self.waived} waived" if self.waived else ""
        return f"{self.refused} of {self.judged} refused{waived}"


@dataclass(frozen=True)
class StageDifference:
    """``equal`` partitions have the same rows in both. ``causes`` say what differs in how they were made: code,
    settings, environment, params.
    """

    stage: str
    one: StageContents
    other: StageContents
    equal: int
    causes: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """How the columns change from one to the other, in words."""
        one, other = self.one.columns, self.other.columns
        if not one or not other:
            return ()
        return (
            *(f"+{name} {other[name]}" for name in other if name not in one),
            *(f"-{name} {one[name]}" for name in one if name not in other),
            *(f"{name}: {one[name]} -> {other[name]}" for name in one if other.get(name, one[name]) != one[name]),
        )


def compare_intervals(pipeline: Pipeline, one: str, other: str, ledger: Ledger) -> tuple[StageDifference, ...]:
    """The differences of each stage that either interval has on record.

    :raises UnknownName: an interval has nothing on record.
    """
    return tuple(_differences(pipeline, _records(pipeline, one, ledger), _records(pipeline, other, ledger)))


Recorded = Mapping[str, Sequence[PartitionRecord]]


def _records(pipeline: Pipeline, interval: str, ledger: Ledger) -> Recorded:
    found = ledger.partitions.newest_of(pipeline.name, interval)
    if not found:
        raise UnknownName("interval on record", interval, ledger.partitions.intervals(pipeline.name, 10))
    return found


def _differences(pipeline: Pipeline, one: Recorded, other: Recorded) -> Iterator[StageDifference]:
    for stage in pipeline.stages:
        mine, theirs = one.get(stage.id, ()), other.get(stage.id, ())
        if mine or theirs:
            equal, causes = _equal(mine, theirs), _causes(mine, theirs)
            yield StageDifference(stage.name, _contents(mine), _contents(theirs), equal, causes)


def _contents(records: Sequence[PartitionRecord]) -> StageContents:
    return StageContents(
        partitions=len(records),
        consumable=sum(record.state.readable for record in records),
        rows=sum(record.rows for record in records),
        bytes=sum(record.bytes for record in records),
        seconds=sum(record.seconds or 0.0 for record in records),
        judged=sum(record.judged != "" for record in records),
        refused=sum(bool(record.refused) for record in records),
        waived=sum(bool(record.refused) and record.state.readable for record in records),
        columns=_columns(records),
    )


def _columns(records: Sequence[PartitionRecord]) -> Mapping[str, str]:
    for record in records:
        for file in record.files[:1]:
            if present_files(record.table, [file.path]):
                types = read_footer(record.table, file.path).types
                return {name: kind for name, kind in types.items() if not is_reserved(name)}
    return {}


def _equal(one: Sequence[PartitionRecord], other: Sequence[PartitionRecord]) -> int:
    theirs = {record.partition: record.fingerprint for record in other}
    return sum(theirs.get(record.partition) == record.fingerprint for record in one)


def _causes(one: Sequence[PartitionRecord], other: Sequence[PartitionRecord]) -> tuple[str, ...]:
    theirs = {record.partition: record.compute_key for record in other}
    found: set[str] = set()
    for record in one:
        key = ComputeKey.parse(record.compute_key)
        if key and record.partition in theirs:
            found.update(key.changes_since(theirs[record.partition]))
    return tuple(cause for cause in TOLD_CAUSES if cause in found)
