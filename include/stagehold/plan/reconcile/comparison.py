"""Which facts the ledger lacks that the lake knows, and the other way round.

The lake knows from two sources: the chronicle, which has every fact that the ledger had, and the tables' logs, which
have every commit. What is published counts: a log is never wrong about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby

from stagehold.model.backfill import Backfill
from stagehold.model.checkpoint_records import CheckpointRecord
from stagehold.model.records import (
    Acceptance,
    Attempt,
    Cell,
    Fact,
    GateResult,
    PartitionCount,
    PartitionRecord,
    Restore,
    Run,
    RunState,
    StageVerdict,
    TakenPosition,
    Waiver,
)

LONG_AGO = datetime.min.replace(tzinfo=UTC)
Place = tuple[Cell, int]  # a partition of a stage for an interval
Age = tuple[int, int, datetime]
NEVER: Age = (0, 0, LONG_AGO)
Progress = tuple[datetime, int]
UNKNOWN: Progress = (LONG_AGO, -1)


@dataclass(frozen=True)
class LakeKnowledge:
    """What the lake says.

    :param told: the chronicle's facts, in the order in which they were told.
    :param published: of every cell whose tables could be looked at, the newest commit's record of each partition.
    :param said: what gates said of those that no record knows, as far as it is beside their files.
    """

    told: tuple[Fact, ...]
    published: Mapping[Cell, tuple[PartitionRecord, ...]]
    said: tuple[GateResult, ...] = ()


def missing_in_ledger(known: Sequence[Fact], lake: LakeKnowledge) -> tuple[Fact, ...]:
    """What has to be written into a ledger that knows ``known``, in this order."""
    told = missing_rows(known, lake.told)
    return (*told, *adopted_facts((*known, *told), lake))


def missing_rows(known: Sequence[Fact], told: Sequence[Fact]) -> tuple[Fact, ...]:
    """What the chronicle says and the ledger does not, unless the ledger has forgotten it: it knows newer then."""
    rows, numbers, anew = _how_far(known), _highest_numbers(known), _begun_anew(known, told)
    behind = [
        fact
        for key, fact in _as_told_last(told).items()
        if (_progress(fact) > rows.get(key, UNKNOWN) and not (key not in rows and _is_outnumbered(fact, numbers)))
        or (isinstance(fact, Run) and fact.ended_at is None and fact.run_id in anew)
    ]
    ages = {place: _age(one) for place, one in newest_records(known).items()}
    newer = [one for one in _records(told) if _age(one) > ages.get(_place(one), NEVER)]
    return (*_as_they_ended(behind), *_positions_to_add(known, told), *newer, *_judgements_to_add(known, told))


def still_told(known: Iterable[Fact], told: Mapping[str, Sequence[Fact]]) -> Mapping[str, tuple[Fact, ...]]:
    """What is needed to rebuild a ledger that knows ``known`` and lacks nothing that was told: each thing that it has
    a row of, where it was told last. A row may be further than that, as of a run that goes on, but never elsewhere.

    :param told: by the day, or whatever else they are kept under, in the order in which it was told.
    """
    kept = {_identity(fact) for fact in known}
    last = {_identity(fact): (day, place) for day, facts in told.items() for place, fact in enumerate(facts)}
    return {
        day: tuple(
            fact
            for place, fact in enumerate(facts)
            if _identity(fact) in kept and last[_identity(fact)] == (day, place)
        )
        for day, facts in told.items()
    }


def missing_in_chronicle(known: Iterable[Fact], told: Iterable[Fact]) -> tuple[Fact, ...]:
    """What the ledger knows and the chronicle does not, as from the time before there was one."""
    seen = _how_far(told)
    return tuple(
        fact for fact in known if _progress(fact) > seen.get(_identity(fact), UNKNOWN) and not _is_waiting(fact)
    )


def unrecorded(
    facts: Iterable[Fact], published: Mapping[Cell, tuple[PartitionRecord, ...]]
) -> tuple[PartitionRecord, ...]:
    """What is published and newer than any record of it."""
    newest = newest_records(facts)
    return tuple(
        one
        for some in published.values()
        for one in some
        if _place(one) not in newest or _wave(one) > _wave(newest[_place(one)])
    )


def adopted_facts(facts: Iterable[Fact], lake: LakeKnowledge) -> tuple[PartitionRecord | GateResult, ...]:
    """`unrecorded`, and what gates said of that."""
    found = unrecorded(facts, lake.published)
    places = {_place(one) for one in found}
    return (*found, *(one for one in lake.said if (one.cell, one.partition) in places))


def uncommitted(
    facts: Iterable[Fact], published: Mapping[Cell, tuple[PartitionRecord, ...]]
) -> tuple[PartitionRecord, ...]:
    """Partitions that are recorded as consumable, though their table's log has no such commit. What was judged again
    has that of the same files.
    """
    said = {_place(one): one for some in published.values() for one in some}
    return tuple(
        one
        for place, one in newest_records(facts).items()
        if one.state.readable and one.cell in published and not _is_committed(one, said.get(place))
    )


def _is_committed(record: PartitionRecord, published: PartitionRecord | None) -> bool:
    same = published is not None and (published.files, published.fingerprint) == (record.files, record.fingerprint)
    return published is not None and (same or _wave(published) >= _wave(record))


def newest_records(facts: Iterable[Fact]) -> Mapping[Place, PartitionRecord]:
    """What counts of each partition."""
    ordered = sorted((fact for fact in facts if isinstance(fact, PartitionRecord)), key=_age)
    return {_place(one): one for one in ordered}


def _records(facts: Iterable[Fact]) -> list[PartitionRecord]:
    """By age and each once: a transaction that failed at its end may have been repeated."""
    by_age = sorted((fact for fact in facts if isinstance(fact, PartitionRecord)), key=_age)
    return sorted({_identity(fact): fact for fact in by_age}.values(), key=_age)


def _age(record: PartitionRecord) -> Age:
    return (record.epoch, record.wave, record.recorded_at)


def _wave(record: PartitionRecord) -> tuple[int, int]:
    return (record.epoch, record.wave)


def _place(record: PartitionRecord) -> Place:
    return (record.cell, record.partition)


def _as_told_last(told: Iterable[Fact]) -> Mapping[object, Fact]:
    """Everything but what is appended again and again, each as it was told last. Acceptances, waivers and stage
    verdicts are in that order as well: of those that a compaction replaced any may be left, and are told before what
    took their place.
    """
    appended = PartitionRecord | TakenPosition | GateResult
    found: dict[object, Fact] = {}
    for fact in told:
        if isinstance(fact, Acceptance | Waiver | StageVerdict):
            found.pop(_identity(fact), None)
        if not isinstance(fact, appended):
            found[_identity(fact)] = fact
    return found


def _highest_numbers(known: Iterable[Fact]) -> Mapping[str, int]:
    """Of the checkpoints of each run."""
    found: dict[str, int] = {}
    for fact in known:
        if isinstance(fact, CheckpointRecord):
            found[fact.run_id] = max(fact.number, found.get(fact.run_id, 0))
    return found


def _is_outnumbered(fact: Fact, highest: Mapping[str, int]) -> bool:
    """Checkpoints of a run are begun by number, so a ledger that knows a later one knew it."""
    return isinstance(fact, CheckpointRecord) and fact.number < highest.get(fact.run_id, 0)


def _how_far(facts: Iterable[Fact]) -> Mapping[object, Progress]:
    found: dict[object, Progress] = {}
    for fact in facts:
        key = _identity(fact)
        found[key] = max(_progress(fact), found.get(key, UNKNOWN))
    return found


def _identity(fact: Fact) -> object:
    match fact:
        case Run():
            return ("run", fact.run_id)
        case Attempt():
            return ("attempt", fact.attempt_id)
        case Restore():
            return ("restore", fact.run_id, fact.identity)
        case Backfill():
            return ("backfill", fact.backfill_id)
        case PartitionCount():
            return ("partition count", fact.cell)
        case CheckpointRecord():
            return ("checkpoint", fact.run_id, fact.number)
        case PartitionRecord():
            return ("partition", fact.cell, fact.partition, fact.attempt_id, fact.wave, fact.state)
        case TakenPosition():
            return ("position", fact.cell, fact.run_id, fact.recorded_at)
        case Acceptance() | Waiver() | GateResult() | StageVerdict():
            return fact


def _is_waiting(fact: Fact) -> bool:
    """An attempt that is told when it begins, or ends before that."""
    return isinstance(fact, Attempt) and not fact.began and fact.ended_at is None


def _progress(fact: Fact) -> Progress:
    """How far something had come that is not only written once."""
    match fact:
        case Run():
            return (fact.ended_at or LONG_AGO, 0)
        case Attempt():
            return (fact.ended_at or LONG_AGO, fact.epoch)
        case Restore():
            steps = (fact.snapshot is not None) + 2 * (fact.fulfilled_at is not None)
            return (max(fact.fulfilled_at or LONG_AGO, fact.life or LONG_AGO), steps)
        case CheckpointRecord():
            return (max(fact.ended_at or LONG_AGO, fact.discarded_at or LONG_AGO), 0)
        case _:
            return (LONG_AGO, 0)


def _begun_anew(known: Iterable[Fact], told: Iterable[Fact]) -> frozenset[str]:
    """Runs that have ended, as an old ledger says, and of which an attempt began after that."""
    ends = {row.run_id: row.ended_at for row in known if isinstance(row, Run) and row.ended_at}
    attempts = (fact for fact in told if isinstance(fact, Attempt) and fact.began and fact.run_id in ends)
    return frozenset(one.run_id for one in attempts if one.started_at >= ends[one.run_id])


def _as_they_ended(facts: Sequence[Fact]) -> Iterator[Fact]:
    """A run is told when it is made and when it ends; one that has attempts was running between."""
    begun = {fact.run_id for fact in facts if isinstance(fact, Attempt) and fact.began}
    for fact in facts:
        if isinstance(fact, Run) and fact.state is RunState.CREATED and fact.run_id in begun:
            yield replace(fact, state=RunState.RUNNING)
        else:
            yield fact


def _positions_to_add(known: Iterable[Fact], told: Iterable[Fact]) -> Iterator[TakenPosition]:
    """Of each cell what was taken after the ledger's newest; the last one counts."""
    taken = [fact for fact in known if isinstance(fact, TakenPosition)]
    newest = {cell: max(one.recorded_at for one in some) for cell, some in _of_cells(taken)}
    for cell, some in _of_cells(dict.fromkeys(fact for fact in told if isinstance(fact, TakenPosition))):
        yield from (one for one in some if one.recorded_at > newest.get(cell, LONG_AGO))


def _judgements_to_add(known: Iterable[Fact], told: Iterable[Fact]) -> Sequence[GateResult]:
    """Of each partition what was said after the ledger's newest: an older one behind it would be the last judgement."""
    newest: dict[Place, datetime] = {}
    for fact in known:
        if isinstance(fact, GateResult):
            place = (fact.cell, fact.partition)
            newest[place] = max(fact.recorded_at, newest.get(place, LONG_AGO))
    said = dict.fromkeys(fact for fact in told if isinstance(fact, GateResult))
    later = (one for one in said if one.recorded_at > newest.get((one.cell, one.partition), LONG_AGO))
    return sorted(later, key=lambda one: one.recorded_at)


def _of_cells(taken: Iterable[TakenPosition]) -> Iterator[tuple[Cell, list[TakenPosition]]]:
    ordered = sorted(taken, key=lambda one: (one.cell, one.recorded_at))
    return ((cell, list(some)) for cell, some in groupby(ordered, key=lambda one: one.cell))
