"""Which partitions do not meet their gates, and whose waiver lets them be read all the same. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from stagehold.airflow.run_page.gate_responses import GateFailure, WaiverTold, WordTold
from stagehold.model.choices import RefusedData, Waiver
from stagehold.model.partition_set import PartitionSet
from stagehold.model.records import GateResult, PartitionRecord
from stagehold.model.standing import PartitionState, RefusalStanding
from stagehold.plan.resume.waiving import is_waived, waivers_of

Refusal = tuple[
    str, RefusalStanding, WaiverTold | None
]  # an expectation, and the state of partitions that do not meet it


def gate_failures(
    stage: str,
    gate: str | None,
    records: Iterable[PartitionRecord],
    failed: Sequence[GateResult],
    waivers: Sequence[Waiver],
    outdated: Collection[int] = (),
    past: Sequence[Waiver] = (),
) -> Iterator[GateFailure]:
    """The refusals of partitions as they are now; refusals of data that was replaced since are history.

    :param records: the newest records of the stage.
    :param failed: expectations that were not met when each partition was judged last.
    :param waivers: waivers of the stage that are in force.
    :param outdated: partitions that the next run or resume computes anew.
    :param past: waivers of the stage that are no longer in force, and those that took others back.
    """
    said = _said(failed)
    alike: dict[Refusal, list[PartitionRecord]] = {}
    for record in records:
        if record.state in (PartitionState.BLOCKED, PartitionState.CONSUMABLE):
            for expectation, standing, waiver in _refusals(record, said.get(record.partition, {}), waivers):
                now = RefusalStanding.OUTDATED if record.partition in outdated else standing
                alike.setdefault((expectation, now, waiver), []).append(record)
    for (expectation, standing, waiver), group in alike.items():
        partitions = [one.partition for one in group]
        result = said.get(partitions[0], {}).get(expectation)
        yield GateFailure(
            stage=stage,
            suite=result.suite if result else gate or "",
            expectation=expectation,
            standing=standing,
            partitions=PartitionSet(partitions).ranges,
            count=len(partitions),
            observed=result.observed if result else "",
            waiver=waiver,
            past=words_told(group, past, ()).get(expectation, ()),
        )


def words_told(
    data: Iterable[RefusedData], said: Sequence[Waiver], held: Collection[Waiver]
) -> Mapping[str, tuple[WordTold, ...]]:
    """The waivers of data that a gate refuses, by expectation, the first one first. A waiver of many partitions at once
    is one.

    :param said: waivers of the stage, in force or not.
    :param held: the waivers among them that are in force.
    """
    refused = {one.partition: one for one in data}
    alike: dict[tuple[str, WaiverTold, bool], list[int]] = {}
    for one in sorted(said, key=lambda word: word.recorded_at):
        about = refused.get(one.partition)
        if about is not None and one.holds_for(about) and one.expectation in about.refused:
            alike.setdefault((one.expectation, waiver_told(one), one in held), []).append(one.partition)
    found: dict[str, list[WordTold]] = {}
    for (expectation, told, holds), partitions in alike.items():
        which = PartitionSet(partitions).ranges
        word = WordTold(waiver=told, holds=holds, partitions=which, count=len(partitions))
        found.setdefault(expectation, []).append(word)
    return {expectation: tuple(words) for expectation, words in found.items()}


def waiver_told(waiver: Waiver) -> WaiverTold:
    return WaiverTold(
        waived_by=waiver.waived_by, reason=waiver.reason, recorded_at=waiver.recorded_at, until=waiver.until
    )


def _said(failed: Sequence[GateResult]) -> Mapping[int, Mapping[str, GateResult]]:
    found: dict[int, dict[str, GateResult]] = {}
    for one in failed:
        if one.blocks:
            found.setdefault(one.partition, {})[one.expectation] = one
    return found


def _refusals(record: PartitionRecord, said: Mapping[str, GateResult], waivers: Sequence[Waiver]) -> Iterator[Refusal]:
    by_expectation = {one.expectation: one for one in waivers_of(record, waivers)}
    # An old version did not record with a blocked partition why it is blocked; the results say it.
    blocked = record.state is PartitionState.BLOCKED
    for expectation in record.refused or (said if blocked else ()):
        waiver = by_expectation.get(expectation)
        yield expectation, _standing(record, waiver, waivers), waiver_told(waiver) if waiver else None


def _standing(record: PartitionRecord, waiver: Waiver | None, waivers: Sequence[Waiver]) -> RefusalStanding:
    if record.state.readable:
        return RefusalStanding.PUBLISHED if waiver else RefusalStanding.ENDED
    if waiver is None:
        return RefusalStanding.OUTSTAYING if record.in_table else RefusalStanding.BLOCKED
    return RefusalStanding.TO_PUBLISH if is_waived(record, waivers) else RefusalStanding.WAIVED
