"""The partitions of a stage in a checkpoint: one line for each, or for neighbours that are alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from stagehold.lake.checkpoints.encoding import RecordedPartition
from stagehold.model.records import GateResult
from stagehold.model.standing import PartitionState

FOLDED_ABOVE = 100  # partitions of a stage


@dataclass(frozen=True)
class PartitionLine:
    """The partitions from ``first`` to ``last``, with sums. What differs among them is None."""

    first: int
    last: int
    state: PartitionState
    rows: int
    bytes: int
    version: int | None
    fingerprint: str | None
    wave: int
    seconds: float | None
    compute_key: str | None
    passed: int
    failed: tuple[GateResult, ...]
    reason: str | None


def partition_lines(partitions: Sequence[RecordedPartition], fold_above: int = FOLDED_ABOVE) -> list[PartitionLine]:
    """The lines of partitions in ascending order. More than ``fold_above`` neighbours become a single line if the same
    wave made them and the gate said the same of them.
    """
    if len(partitions) <= fold_above:
        return [_line([partition]) for partition in partitions]
    numbered = enumerate(partitions)
    return [
        _line([partition for _, partition in alike])
        for _, alike in groupby(numbered, key=lambda pair: _likeness(*pair))
    ]


def _likeness(index: int, partition: RecordedPartition) -> tuple[object, ...]:
    record, said = partition.record, tuple((verdict.expectation, verdict.passed) for verdict in partition.verdicts)
    return record.partition - index, record.state, record.attempt_id, record.wave, record.version, record.reason, said


def _line(alike: Sequence[RecordedPartition]) -> PartitionLine:
    records, first = [partition.record for partition in alike], alike[0].record
    timed = [record.seconds for record in records if record.seconds is not None]
    verdicts = [verdict for partition in alike for verdict in partition.verdicts]
    return PartitionLine(
        first=first.partition,
        last=records[-1].partition,
        state=first.state,
        rows=sum(record.rows for record in records),
        bytes=sum(record.bytes for record in records),
        version=first.version,
        fingerprint=_common(record.fingerprint for record in records),
        wave=first.wave,
        seconds=sum(timed) if timed else None,
        compute_key=_common(record.compute_key for record in records),
        passed=sum(verdict.passed for verdict in verdicts),
        failed=tuple(verdict for verdict in verdicts if not verdict.passed),
        reason=first.reason,
    )


def _common(texts: Iterable[str]) -> str | None:
    found = set(texts)
    return found.pop() if len(found) == 1 else None
