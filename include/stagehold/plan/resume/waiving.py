"""Which data may be read although its gate refuses it, because somebody waived that, and what follows when a waiver
ends.

Once a waiver was needed for data, the data is in tables only as long as its gate or a waiver lets it. A waiver is about
the data that was there when it was recorded. Before other data is computed in its place, the data that it let through
leaves the tables, since nobody knows yet whether the other data will be let through.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from stagehold.errors import NothingToWaive
from stagehold.model.choices import RefusedData, Waiver
from stagehold.model.keys.compute_key import ComputeKey
from stagehold.model.partition_set import NO_PARTITIONS, PartitionSet
from stagehold.model.records import PartitionRecord, StageVerdict
from stagehold.model.standing import PartitionState
from stagehold.plan.grounds.content_verdicts import content_of, last_verdict_on
from stagehold.plan.grounds.reasons import Detail, Place, Reason, because
from stagehold.plan.resume.decisions import Action, Decision, EndedWaiver
from stagehold.plan.resume.situation import Situation
from stagehold.spec.pipeline import Exchange, Pipeline, Stage
from stagehold.spec.settings.output_settings import OnWaiverEnd

Data = tuple[Place, str]  # a partition, and the fingerprint of its data
NOTHING: frozenset[Data] = frozenset()


def in_force(words: Iterable[Waiver], now: datetime) -> tuple[Waiver, ...]:
    """Waivers that are in force. Of several for the same data and expectation the last one counts, unless it has
    ended.
    """
    return tuple(waiver for waiver in _newest(words) if waiver.until is None or waiver.until > now)


def no_longer_in_force(words: Iterable[Waiver], now: datetime) -> tuple[Waiver, ...]:
    """Waivers that were in force once, unless a later waiver for the same data and expectation is in force."""
    newest = _newest(words)
    return tuple(waiver for waiver in newest if waiver.until is not None and waiver.until <= now)


def _newest(words: Iterable[Waiver]) -> tuple[Waiver, ...]:
    return tuple(
        {(waiver.partition, waiver.stage, waiver.fingerprint, waiver.expectation): waiver for waiver in words}.values()
    )


def waivers_of(data: RefusedData, words: Sequence[Waiver]) -> tuple[Waiver, ...]:
    """Waivers for expectations that the recorded data does not meet."""
    return tuple(waiver for waiver in words if waiver.holds_for(data) and waiver.expectation in data.refused)


def is_waived(data: RefusedData, words: Sequence[Waiver]) -> bool:
    """Whether somebody waived each expectation that the data does not meet."""
    return {waiver.expectation for waiver in waivers_of(data, words)} >= {*data.refused}


def who_waived(words: Sequence[Waiver]) -> Reason:
    """Who waived it, and why."""
    said = "; ".join(
        dict.fromkeys(f"{waiver.waived_by} waived {waiver.expectation}: {waiver.reason}" for waiver in words)
    )
    return because(Detail(said))


def refused_data(records: Iterable[PartitionRecord], verdict: StageVerdict | None) -> tuple[RefusedData, ...]:
    """The refused data of a stage: partitions, and all of them together.

    :param records: the newest records of the stage.
    :param verdict: the verdict on just these together, if there is one.
    """
    refused = (record for record in records if record.refused and record.state is not PartitionState.DAMAGED)
    return (*refused, *([verdict] if verdict and verdict.refused else ()))


@dataclass(frozen=True)
class WaiverWish:
    """A wish to let data through, of one stage for one interval.

    ``partitions`` are None for all that its gate refuses. ``expectation`` is the beginning of the text of the
    expectation; None for the only one that these partitions do not meet. A waiver that ends at once takes back an
    earlier one.
    """

    partitions: PartitionSet | None
    expectation: str | None
    waived_by: str
    reason: str
    until: datetime | None = None


def wished(wish: WaiverWish, stage: str, data: Iterable[RefusedData], now: datetime) -> tuple[Waiver, ...]:
    """The waivers that a wish means, one for each partition and expectation.

    :param data: the data that the gate refuses, see `refused_data`.
    :raises NothingToWaive: the gate refuses none of that, or it is not clear which expectation is meant.
    """
    refused = {known.partition: known for known in data}
    others = (wish.partitions or NO_PARTITIONS) - refused.keys()
    if others or not refused:
        which = f"[{others}]" if others else ""
        raise NothingToWaive(stage, f"its gate does not refuse {stage}{which}", _offers(refused.values()))
    chosen = [
        known for number, known in sorted(refused.items()) if wish.partitions is None or number in wish.partitions
    ]
    unmet = list(dict.fromkeys(expectation for known in chosen for expectation in known.refused))
    meant = [
        expectation for expectation in unmet if wish.expectation is None or expectation.startswith(wish.expectation)
    ]
    if not meant:
        raise NothingToWaive(stage, f"none of them fails {wish.expectation}", _offers(chosen))
    if len(meant) > 1:
        raise NothingToWaive(stage, "more than one expectation may be meant; name it", _offers(chosen))
    return tuple(_word(wish, known, meant[0], now) for known in chosen if meant[0] in known.refused)


def _word(wish: WaiverWish, record: RefusedData, expectation: str, now: datetime) -> Waiver:
    return Waiver(
        pipeline=record.cell.pipeline,
        interval=record.cell.interval,
        stage=record.cell.stage,
        partition=record.partition,
        expectation=expectation,
        fingerprint=record.fingerprint,
        waived_by=wish.waived_by,
        reason=wish.reason,
        recorded_at=now,
        until=wish.until,
    )


def _offers(data: Iterable[RefusedData]) -> Sequence[str]:
    """What could be waived, a line for each expectation."""
    found: dict[str, list[int]] = {}
    for known in data:
        for expectation in known.refused:
            found.setdefault(expectation, []).append(known.partition)
    return [f"[{PartitionSet(partitions)}] {expectation}" for expectation, partitions in found.items()]


def own_waiver_ended(stage: Stage, record: PartitionRecord | None, situation: Situation) -> bool:
    """Whether the gate of the stage refuses the partition, and no waiver lets it any more. Without a gate nothing is
    refused.
    """
    return record is not None and bool(situation.of(stage.name).facts.gate) and _has_ended(record, stage, situation)


def stage_waiver_ended(stage: Stage, records: Sequence[PartitionRecord], situation: Situation) -> bool:
    """Whether the waiver for the stage as a whole has ended."""
    if not situation.of(stage.name).facts.whole or not records:
        return False
    verdict = last_verdict_on(content_of(records), situation.of(stage.name).words.verdicts)
    return verdict is not None and _has_ended(verdict, stage, situation)


def _has_ended(data: RefusedData, stage: Stage, situation: Situation) -> bool:
    words, ended = situation.of(stage.name).words.waivers, situation.of(stage.name).words.ended_waivers
    said = any(waiver.holds_for(data) for waiver in (*words, *ended))
    return said and bool(data.refused) and not is_waived(data, words)


def about_to_be_replaced(stage: Stage, drafted: Sequence[Decision], situation: Situation) -> list[Decision]:
    """The decisions, with those ended that a word let and in whose place, or that of others which it let together with
    them, something else is computed.
    """
    replaced = {
        decision.partition
        for decision in drafted
        if decision.action is Action.RUN and _is_let(decision, stage, situation)
    }
    if any(decision.action is Action.RUN and decision.record for decision in drafted) and _are_let_together(
        stage, drafted, situation
    ):
        replaced = {decision.partition for decision in drafted}
    return [
        replace(decision, ended=EndedWaiver(decision.place))
        if decision.partition in replaced and not decision.ended
        else decision
        for decision in drafted
    ]


def _is_let(decision: Decision, stage: Stage, situation: Situation) -> bool:
    refused = decision.record is not None and bool(decision.record.refused)
    return refused and bool(situation.of(stage.name).facts.gate)


def _are_let_together(stage: Stage, drafted: Sequence[Decision], situation: Situation) -> bool:
    records = [decision.record for decision in drafted if decision.record is not None]
    if not situation.of(stage.name).facts.whole or not records:
        return False
    verdict = last_verdict_on(content_of(records), situation.of(stage.name).words.verdicts)
    return verdict is not None and bool(verdict.refused)


def made_from(record: PartitionRecord, key: ComputeKey) -> bool:
    """Whether the partition was made from the very inputs that this key names, whatever else changed."""
    recorded = ComputeKey.parse(record.compute_key)
    return recorded is not None and recorded.inputs == key.inputs


@dataclass(frozen=True)
class EndedData:
    """Data of earlier stages that their gates refuse and that no waiver lets any more."""

    data: frozenset[Data]
    ancestry: Ancestry

    @staticmethod
    def of(drafts: Mapping[str, Sequence[Decision]], situation: Situation) -> EndedData:
        every = (decision for decisions in drafts.values() for decision in decisions)
        own = (decision for decision in every if decision.ended and decision.ended.place == decision.place)
        data = frozenset((decision.place, decision.record.fingerprint) for decision in own if decision.record)
        return EndedData(data, Ancestry(situation.pipeline, situation.history))

    def beneath(self, record: PartitionRecord | None) -> Place | None:
        """The waived data that the partition was made from, even if its inputs have changed since."""
        if record is None or not self.data:
            return None
        return min((place for place, _ in self.ancestry.made_from(record) & self.data), default=None)


@dataclass(frozen=True)
class Ancestry:
    """Which data was made from which in one interval, told from the order of the records: ``history`` are those that
    are kept, oldest first.

    A key says what a partition was made from as long as all of that is still what is recorded. This says it also when
    some inputs have been computed anew since, and the partition has not.
    """

    pipeline: Pipeline
    history: Sequence[PartitionRecord] = ()

    def made_from(self, record: PartitionRecord) -> frozenset[Data]:
        """All data that the partition was made from, directly or not."""
        made = self._made(record)
        return NOTHING if made is None else self._inputs(self._place(record), made)

    def _inputs(self, place: Place, moment: int) -> frozenset[Data]:
        """The waived data in the inputs of the partition at a moment."""
        if (place, moment) not in self._known:
            read = (self._with_inputs(source, moment) for source in self._reads(*place))
            self._known[place, moment] = NOTHING.union(*read)
        return self._known[place, moment]

    def _with_inputs(self, place: Place, moment: int) -> frozenset[Data]:
        if not self.pipeline.stage(place[0]).output.type.stored:
            return self._inputs(place, moment)
        read = self._readable(place, moment)
        return NOTHING if read is None else self.made_from(read) | {(place, read.fingerprint)}

    def _reads(self, stage: str, partition: int) -> Iterator[Place]:
        for edge in self.pipeline.stage(stage).inputs:
            if edge.exchange is Exchange.FORWARD:
                yield edge.stage, partition
            else:
                yield from ((edge.stage, other) for other in range(self.pipeline.stage(edge.stage).partitions))

    def _made(self, record: PartitionRecord) -> int | None:
        """When the data was recorded first; later records say what became of it."""
        same, told = (record.compute_key, record.fingerprint), self._told[self._place(record)]
        return next((when for when, record in told if (record.compute_key, record.fingerprint) == same), None)

    def _readable(self, place: Place, moment: int) -> PartitionRecord | None:
        before = (record for when, record in reversed(self._told[place]) if when < moment)
        return next((record for record in before if record.state.readable), None)

    @cached_property
    def _told(self) -> dict[Place, list[tuple[int, PartitionRecord]]]:
        """The records of each partition, each with how many there were before it."""
        found: dict[Place, list[tuple[int, PartitionRecord]]] = defaultdict(list)
        for when, record in enumerate(self.history):
            found[self._place(record)].append((when, record))
        return found

    @cached_property
    def _known(self) -> dict[tuple[Place, int], frozenset[Data]]:
        return {}

    def _place(self, record: PartitionRecord) -> Place:
        return self._names.get(record.cell.stage, record.cell.stage), record.partition

    @cached_property
    def _names(self) -> dict[str, str]:
        return {stage.id: stage.name for stage in self.pipeline.stages}


def why_ended(record: RefusedData, stage: Stage, situation: Situation) -> Reason:
    """Why data is blocked whose waiver has ended."""
    ended = [waiver for waiver in situation.of(stage.name).words.ended_waivers if waiver.holds_for(record)]
    words = [
        f"the word of {waiver.waived_by} has ended ({waiver.reason})"
        for waiver in ended
        if waiver.expectation in record.refused
    ]
    return because(Detail("; ".join(("; ".join(record.refused) + " is not met", *dict.fromkeys(words)))))


def as_retracted(record: PartitionRecord) -> PartitionRecord:
    """The record of the partition when its rows have left the table: a partition that its own gate refuses is blocked,
    and one that was made from it is held until it may be read again.
    """
    if record.state is PartitionState.DAMAGED:
        return replace(record, version=None)
    return replace(record, version=None, state=PartitionState.BLOCKED if record.refused else PartitionState.HELD)


def as_blocked(record: PartitionRecord) -> PartitionRecord:
    """The record of the partition when its rows stay in the table, and no stage reads them."""
    return replace(record, state=PartitionState.BLOCKED)


def with_consequences(stage: Stage, decisions: Sequence[Decision], situation: Situation) -> list[Decision]:
    """The decisions, and what becomes of rows in the stage's table that may no longer be shown."""
    return [
        _with_consequence(stage, decision, decision.ended, situation) if decision.ended else decision
        for decision in decisions
    ]


def _with_consequence(stage: Stage, decision: Decision, ended: EndedWaiver, situation: Situation) -> Decision:
    record = decision.record
    awaited = decision.partition in situation.of(stage.name).data.restored
    if record is None or not record.in_table or awaited:
        return decision
    retracts = stage.output.on_waiver_end is OnWaiverEnd.RETRACT
    told = "".join(_told(stage, decision, retracts=retracts))
    return replace(decision, ended=replace(ended, retracts=retracts), reason=decision.reason.and_then(told))


def _told(stage: Stage, decision: Decision, *, retracts: bool) -> Iterator[str]:
    where = stage.output.table or "its table"
    yield f"; its rows are taken out of {where}" if retracts else f"; its rows stay in {where}, and are marked"
    if decision.action is Action.REUSE:
        yield " until it may be read again"
    if decision.action.computes:
        yield " until then"
