"""Which facts of the lake the ledger lacks, and the other way round.

The lake has two sources: the chronicle, with every fact that the ledger had, and the tables' logs, with every commit.
Published data counts: a log is never wrong about it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stagehold.ledger.kinds import (
    AS_WRITTEN,
    BY_TYPE,
    KINDS,
    LONG_AGO,
    Age,
    FactKind,
    Progress,
    identity_of,
    partition_age,
)
from stagehold.model.records import Attempt, Cell, Fact, GateResult, PartitionRecord, Run, RunState

Place = tuple[Cell, int]  # a partition of a stage for an interval
UNKNOWN: Progress = (LONG_AGO, AS_WRITTEN[1] - 1)


@dataclass(frozen=True)
class LakeKnowledge:
    """The facts of the lake.

    :param told: the chronicle's facts, in the order in which they were told.
    :param published: for every cell whose tables could be read, the newest commit's record of each partition.
    :param said: verdicts on those that no record knows, as far as they are beside their files.
    """

    told: tuple[Fact, ...]
    published: Mapping[Cell, tuple[PartitionRecord, ...]]
    said: tuple[GateResult, ...] = ()


def missing_in_ledger(known: Sequence[Fact], lake: LakeKnowledge) -> tuple[Fact, ...]:
    """The facts to write into a ledger that knows ``known``, in this order."""
    told = missing_rows(known, lake.told)
    return (*told, *adopted_facts((*known, *told), lake))


def missing_rows(known: Sequence[Fact], told: Sequence[Fact]) -> tuple[Fact, ...]:
    """Facts of the chronicle that the ledger lacks, unless it has forgotten them: then it knows newer ones."""
    rows, numbers, anew = _how_far(known), _highest_numbers(known), _begun_anew(known, told)
    behind = [
        fact
        for key, fact in _as_told_last(told).items()
        if (_progress(fact) > rows.get(key, UNKNOWN) and not (key not in rows and _is_outnumbered(fact, numbers)))
        or (isinstance(fact, Run) and fact.ended_at is None and fact.run_id in anew)
    ]
    younger = [
        fact for kind in KINDS if kind.age for fact in _younger(kind.age, _of_kind(kind, known), _of_kind(kind, told))
    ]
    return (*_as_they_ended(behind), *younger)


def still_told(known: Iterable[Fact], told: Mapping[str, Sequence[Fact]]) -> Mapping[str, tuple[Fact, ...]]:
    """The facts that are needed to rebuild a ledger that knows ``known`` and lacks nothing that was told: each fact
    that it has a row of, as it was told last. A row may be further than that, for example of a run that goes on, but
    never elsewhere.

    :param told: facts by the day, or by another name under which they are kept, in the order in which they were told.
    """
    kept = {identity_of(fact) for fact in known}
    last = {identity_of(fact): (day, place) for day, facts in told.items() for place, fact in enumerate(facts)}
    return {
        day: tuple(
            fact
            for place, fact in enumerate(facts)
            if identity_of(fact) in kept and last[identity_of(fact)] == (day, place)
        )
        for day, facts in told.items()
    }


def missing_in_chronicle(known: Iterable[Fact], told: Iterable[Fact]) -> tuple[Fact, ...]:
    """Facts of the ledger that the chronicle lacks, for example from the time before there was a chronicle."""
    seen = _how_far(told)
    return tuple(
        fact
        for fact in known
        if _progress(fact) > seen.get(identity_of(fact), UNKNOWN) and BY_TYPE[type(fact)].told(fact)
    )


def unrecorded(
    facts: Iterable[Fact], published: Mapping[Cell, tuple[PartitionRecord, ...]]
) -> tuple[PartitionRecord, ...]:
    """Published partitions that are newer than any record of them."""
    newest = newest_records(facts)
    return tuple(
        record
        for records in published.values()
        for record in records
        if _place(record) not in newest or _wave(record) > _wave(newest[_place(record)])
    )


def adopted_facts(facts: Iterable[Fact], lake: LakeKnowledge) -> tuple[PartitionRecord | GateResult, ...]:
    """`unrecorded`, with the verdicts on those partitions."""
    found = unrecorded(facts, lake.published)
    places = {_place(record) for record in found}
    return (*found, *(result for result in lake.said if (result.cell, result.partition) in places))


def uncommitted(
    facts: Iterable[Fact], published: Mapping[Cell, tuple[PartitionRecord, ...]]
) -> tuple[PartitionRecord, ...]:
    """Partitions that are recorded as consumable, though their table's log has no such commit. For a partition that was
    judged again, the commit of the same files counts.
    """
    said = {_place(record): record for records in published.values() for record in records}
    return tuple(
        record
        for place, record in newest_records(facts).items()
        if record.state.readable and record.cell in published and not _is_committed(record, said.get(place))
    )


def _is_committed(record: PartitionRecord, published: PartitionRecord | None) -> bool:
    same = published is not None and (published.files, published.fingerprint) == (record.files, record.fingerprint)
    return published is not None and (same or _wave(published) >= _wave(record))


def newest_records(facts: Iterable[Fact]) -> Mapping[Place, PartitionRecord]:
    """The record of each partition that counts."""
    ordered = sorted(
        (fact for fact in facts if isinstance(fact, PartitionRecord)), key=lambda record: partition_age(record)[1]
    )
    return {_place(record): record for record in ordered}


def _wave(record: PartitionRecord) -> tuple[int, int]:
    return (record.epoch, record.wave)


def _place(record: PartitionRecord) -> Place:
    return (record.cell, record.partition)


def _as_told_last(told: Iterable[Fact]) -> Mapping[Hashable, Fact]:
    """All facts that are not appended again and again, each as it was told last. Facts that are appended once are in
    that order as well: some of those that a compaction replaced may be left, and they were told before those that
    replaced them.
    """
    found: dict[Hashable, Fact] = {}
    for fact in told:
        kind = BY_TYPE[type(fact)]
        if kind.age:
            continue
        if kind.appended:
            found.pop(identity_of(fact), None)
        found[identity_of(fact)] = fact
    return found


def _younger(age_of: Callable[[Any], Age], known: Iterable[Fact], told: Iterable[Fact]) -> Iterator[Fact]:
    """Facts that were told and are younger than the ledger's youngest in their place, of one kind that is appended
    again and again. The oldest comes first, and each comes once: a transaction that failed at its end may have been
    repeated.
    """
    youngest: dict[Hashable, Any] = {}
    for place, age in map(age_of, known):
        youngest[place] = max(age, youngest.get(place, age))
    each = {identity_of(fact): fact for fact in sorted(told, key=lambda fact: age_of(fact)[1])}
    for fact in sorted(each.values(), key=lambda fact: age_of(fact)[1]):
        place, age = age_of(fact)
        if place not in youngest or age > youngest[place]:
            yield fact


def _of_kind(kind: FactKind[Any], facts: Iterable[Fact]) -> list[Fact]:
    return [fact for fact in facts if type(fact) is kind.type]


def _highest_numbers(known: Iterable[Fact]) -> Mapping[Hashable, int]:
    """The highest number of each series of numbered facts."""
    found: dict[Hashable, int] = {}
    for fact in known:
        if number_of := BY_TYPE[type(fact)].number:
            series, number = number_of(fact)
            found[series] = max(number, found.get(series, 0))
    return found


def _is_outnumbered(fact: Fact, highest: Mapping[Hashable, int]) -> bool:
    number_of = BY_TYPE[type(fact)].number
    if number_of is None:
        return False
    series, number = number_of(fact)
    return number < highest.get(series, 0)


def _how_far(facts: Iterable[Fact]) -> Mapping[Hashable, Progress]:
    found: dict[Hashable, Progress] = {}
    for fact in facts:
        key = identity_of(fact)
        found[key] = max(_progress(fact), found.get(key, UNKNOWN))
    return found


def _progress(fact: Fact) -> Progress:
    return BY_TYPE[type(fact)].progress(fact)


def _begun_anew(known: Iterable[Fact], told: Iterable[Fact]) -> frozenset[str]:
    """Runs that have ended, according to an old ledger, and of which an attempt began after that."""
    ends = {row.run_id: row.ended_at for row in known if isinstance(row, Run) and row.ended_at}
    attempts = (fact for fact in told if isinstance(fact, Attempt) and fact.began and fact.run_id in ends)
    return frozenset(attempt.run_id for attempt in attempts if attempt.started_at >= ends[attempt.run_id])


def _as_they_ended(facts: Sequence[Fact]) -> Iterator[Fact]:
    """Runs with their states. A run is told when it is made and when it ends; one that has attempts was running in
    between.
    """
    begun = {fact.run_id for fact in facts if isinstance(fact, Attempt) and fact.began}
    for fact in facts:
        if isinstance(fact, Run) and fact.state is RunState.CREATED and fact.run_id in begun:
            yield replace(fact, state=RunState.RUNNING)
        else:
            yield fact
