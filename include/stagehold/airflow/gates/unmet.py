"""Which partitions do not meet what their gates ask for, and whose word lets them be read all the same. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from stagehold.model.partition_set import PartitionSet, Ranges
from stagehold.model.records import GateResult, PartitionRecord, Waiver
from stagehold.model.standing import PartitionState, RefusalStanding
from stagehold.plan.resume.waiving import is_waived, waivers_of


@dataclass(frozen=True)
class WaiverTold:
    """Who waived something, why and until when; None is for ever."""

    waived_by: str
    reason: str
    recorded_at: datetime
    until: datetime | None

    @staticmethod
    def of(word: Waiver) -> WaiverTold:
        return WaiverTold(word.waived_by, word.reason, word.recorded_at, word.until)


@dataclass(frozen=True)
class GateFailure:
    """Partitions of a stage that do not meet one critical expectation and stand alike. ``observed`` is what the gate
    saw in the first of them.
    """

    stage: str
    suite: str
    expectation: str
    standing: RefusalStanding
    partitions: Ranges
    count: int
    observed: str
    waiver: WaiverTold | None


@dataclass(frozen=True)
class _Alike:
    expectation: str
    standing: RefusalStanding
    waiver: WaiverTold | None


def gate_failures(
    stage: str,
    gate: str | None,
    records: Iterable[PartitionRecord],
    failed: Sequence[GateResult],
    words: Sequence[Waiver],
    outdated: Collection[int] = (),
) -> Iterator[GateFailure]:
    """Of the partitions as they are now; what was corrected since is history.

    :param records: the newest of the stage.
    :param failed: what was not met when each partition was judged last.
    :param words: waivers of the stage that hold now.
    :param outdated: partitions that the next run or resume computes anew.
    """
    said = _said(failed)
    alike: dict[_Alike, list[int]] = {}
    for record in records:
        if record.state in (PartitionState.BLOCKED, PartitionState.CONSUMABLE):
            for kind in _kinds(record, said.get(record.partition, {}), words):
                kind = replace(kind, standing=RefusalStanding.OUTDATED) if record.partition in outdated else kind
                alike.setdefault(kind, []).append(record.partition)
    for kind, partitions in alike.items():
        result = said.get(partitions[0], {}).get(kind.expectation)
        yield GateFailure(
            stage=stage,
            suite=result.suite if result else gate or "",
            expectation=kind.expectation,
            standing=kind.standing,
            partitions=PartitionSet(partitions).ranges,
            count=len(partitions),
            observed=result.observed if result else "",
            waiver=kind.waiver,
        )


def _said(failed: Sequence[GateResult]) -> Mapping[int, Mapping[str, GateResult]]:
    found: dict[int, dict[str, GateResult]] = {}
    for one in failed:
        if one.blocks:
            found.setdefault(one.partition, {})[one.expectation] = one
    return found


def _kinds(record: PartitionRecord, said: Mapping[str, GateResult], words: Sequence[Waiver]) -> Iterator[_Alike]:
    by_expectation = {one.expectation: one for one in waivers_of(record, words)}
    # A version that did not keep with the record why it is blocked left it in the results alone.
    blocked = record.state is PartitionState.BLOCKED
    for expectation in record.refused or (said if blocked else ()):
        word = by_expectation.get(expectation)
        yield _Alike(expectation, _standing(record, word, words), WaiverTold.of(word) if word else None)


def _standing(record: PartitionRecord, word: Waiver | None, words: Sequence[Waiver]) -> RefusalStanding:
    if record.state.readable:
        return RefusalStanding.PUBLISHED if word else RefusalStanding.ENDED
    if word is None:
        return RefusalStanding.OUTSTAYING if record.in_table else RefusalStanding.BLOCKED
    return RefusalStanding.TO_PUBLISH if is_waived(record, words) else RefusalStanding.WAIVED
