"""The ledger's records of the intervals that a plan is made for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from stagehold.ledger.ledger import Ledger
from stagehold.model.choices import Acceptance, Waiver
from stagehold.model.records import PartitionRecord, StageVerdict


@dataclass(frozen=True)
class IntervalRecords:
    """``partitions`` are the newest records by stage id. What people and gates said of whole stages is oldest first."""

    partitions: Mapping[str, tuple[PartitionRecord, ...]]
    acceptances: tuple[Acceptance, ...]
    waivers: tuple[Waiver, ...]
    verdicts: tuple[StageVerdict, ...]


def read_records(pipeline: str, intervals: Collection[str], ledger: Ledger) -> Mapping[str, IntervalRecords]:
    """The records by interval, by as many queries for many intervals as for one."""
    partitions = ledger.partitions.newest_of_each(pipeline, intervals)
    acceptances = ledger.acceptances.holding(pipeline, intervals)
    waivers: defaultdict[str, list[Waiver]] = defaultdict(list)
    for waiver in ledger.waivers.of_each(pipeline, intervals):
        waivers[waiver.interval].append(waiver)
    verdicts: defaultdict[str, list[StageVerdict]] = defaultdict(list)
    for verdict in ledger.stage_verdicts.of_each(pipeline, intervals):
        verdicts[verdict.cell.interval].append(verdict)
    return {
        interval: IntervalRecords(
            partitions.get(interval, {}),
            tuple(word for word in acceptances if word.interval in (None, interval)),
            tuple(waivers[interval]),
            tuple(verdicts[interval]),
        )
        for interval in intervals
    }
