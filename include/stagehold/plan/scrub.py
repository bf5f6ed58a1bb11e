"""What a scrub looks at, in which order, and what follows from its findings. A scrub reads recorded data again."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import ceil
from random import Random

from stagehold.model.foreign_change import ForeignChange
from stagehold.model.records import Cell, PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.plan.determinism.verification import Mismatch
from stagehold.spec.pipeline import Stage
from stagehold.spec.settings.output_settings import OnForeignChange

Place = tuple[str, str]  # pipeline and interval
SAMPLE_ALLOWED = "a share of each stage's partitions, from 1% to 100%, or a number of them, from 1 on"


class Condition(StrEnum):
    """What is wrong with a partition, or that it was not compared."""

    DAMAGED = "damaged"  # its content is not what was recorded
    MISSING = "missing"  # its data is gone, or not whole: whoever needs it heals it
    SKIPPED = "skipped"  # nothing is known to be wrong with it


@dataclass(frozen=True)
class Sample:
    """How many of a stage's partitions are looked at for each interval, and which; at least one."""

    seed: str
    percent: int = 100
    most: int | None = None

    @staticmethod
    def read(text: str, seed: str) -> Sample | None:
        """The sample that a text names; None if the text is neither a share nor a number."""
        match = re.fullmatch(r"([1-9][0-9]{0,8})(%?)", text.strip())
        if match is None or (match[2] and int(match[1]) > 100):
            return None
        return Sample(seed, percent=int(match[1])) if match[2] else Sample(seed, most=int(match[1]))

    def draw(self, cell: Cell, records: Sequence[PartitionRecord]) -> tuple[PartitionRecord, ...]:
        share = ceil(len(records) * self.percent / 100)
        wanted = share if self.most is None else min(self.most, len(records))
        chosen = Random(f"{self.seed}/{cell}").sample(range(len(records)), wanted)  # noqa: S311
        return tuple(records[place] for place in sorted(chosen))


Draw = Callable[[Cell, Sequence[PartitionRecord]], tuple[PartitionRecord, ...]]  # chooses partitions of a stage


def only(wanted: Mapping[Cell, frozenset[int]]) -> Draw:
    """Chooses partitions that a scrub has findings about, to look at them again."""
    return lambda cell, records: tuple(
        record for record in records if record.partition in wanted.get(cell, frozenset())
    )


@dataclass(frozen=True)
class ScrubTarget:
    """A stage of an interval, with what is known of it before any content is read.

    ``records`` are the newest of the partitions to look at, consumable or damaged. ``gone`` are partitions that cannot
    be read, with the present size of each of their files, None for a file that is gone. ``removed`` are those that
    somebody else took out of a published table. ``busy`` says who works on the region at this moment.
    """

    cell: Cell
    stage: Stage
    region: str
    records: tuple[PartitionRecord, ...]
    gone: Mapping[int, Mapping[str, int | None]] = field(default_factory=dict)
    removed: Mapping[int, ForeignChange] = field(default_factory=dict)
    busy: str | None = None


@dataclass(frozen=True)
class ScrubFinding:
    """A partition whose data differs, or may differ, from its record. ``marked`` says that it is on record as
    damaged.
    """

    record: PartitionRecord
    condition: Condition
    differs: str
    marked: bool = False
    healed: bool = False

    @property
    def open(self) -> bool:
        return self.condition is not Condition.SKIPPED and not self.healed


@dataclass(frozen=True)
class StageScrub:
    """The findings of a scrub about one stage for one interval."""

    target: ScrubTarget
    findings: tuple[ScrubFinding, ...]

    @property
    def checked(self) -> int:
        return len(self.target.records) - self.count(Condition.SKIPPED)

    def count(self, condition: Condition) -> int:
        return sum(finding.condition is condition for finding in self.findings)

    @property
    def open(self) -> tuple[ScrubFinding, ...]:
        return tuple(finding for finding in self.findings if finding.open)


def in_order(targets: Iterable[ScrubTarget]) -> tuple[ScrubTarget, ...]:
    """Published tables first, since others read them; then the newest interval first."""
    newest_first = sorted(targets, key=lambda target: target.cell.interval, reverse=True)
    return tuple(sorted(newest_first, key=lambda target: target.stage.output.table is None))


def first_findings(target: ScrubTarget) -> tuple[ScrubFinding, ...]:
    """The findings that need no content to be read."""
    return tuple(found for record in target.records if (found := _at_first_sight(record, target)))


def to_compare(target: ScrubTarget) -> tuple[PartitionRecord, ...]:
    """The records whose content is read. A partition without rows has no content."""
    settled = {finding.record.partition for finding in first_findings(target)}
    return tuple(record for record in target.records if record.all_files and record.partition not in settled)


def mismatch_found(found: Mismatch, *, marked: bool, why_not: str = "") -> ScrubFinding:
    """The finding about a mismatch; ``why_not`` says why it could not be put on record."""
    record, measured = found
    other = f"its fingerprint is {measured}, and {record.fingerprint} on record"
    differs = "it cannot be read" if measured is None else other
    return ScrubFinding(record, Condition.DAMAGED, f"{differs}; {why_not}" if why_not else differs, marked=marked)


def overtaken(record: PartitionRecord) -> ScrubFinding:
    """The finding that another record had replaced this one by the time that it would have been marked."""
    return ScrubFinding(record, Condition.SKIPPED, "it changed while it was read")


def to_heal(results: Sequence[StageScrub]) -> Mapping[Place, Mapping[str, frozenset[int]]]:
    """Partitions to compute again by pipeline and interval, and then by stage name, without those that are
    `left_alone`.
    """
    wanted: dict[Place, dict[str, frozenset[int]]] = defaultdict(dict)
    others = left_alone(results)
    for result in results:
        if result.open and _place(result) not in others:
            wanted[_place(result)][result.target.stage.name] = _partitions(result.open)
    return wanted


def left_alone(results: Sequence[StageScrub]) -> Mapping[Place, str]:
    """Intervals to heal that somebody works on, and who: computing them would wait for that."""
    wanted = {_place(result) for result in results if result.open}
    targets = {_place(result): result.target for result in results if result.target.busy}
    return {place: f"{target.busy} works on {target.region}" for place, target in targets.items() if place in wanted}


def found_in(results: Iterable[StageScrub]) -> Draw:
    return only({result.target.cell: _partitions(result.open) for result in results if result.open})


def after_healing(before: Iterable[StageScrub], again: Iterable[StageScrub]) -> tuple[StageScrub, ...]:
    """The first results; findings are healed that were looked at again and equal their records."""
    sound = {
        (result.target.cell, record.partition)
        for result in again
        for record in result.target.records
        if record.partition not in _partitions(result.findings)
    }
    return tuple(
        replace(result, findings=tuple(_told(finding, sound) for finding in result.findings)) for result in before
    )


def next_command(results: Iterable[StageScrub]) -> str | None:
    """The command that computes damaged and missing partitions again; None if there are none."""
    places = list(dict.fromkeys(_place(result) for result in results if result.open))
    pipelines = {pipeline for pipeline, _ in places}
    if not places:
        return None
    if len(places) == 1:
        return f"stagehold verify {places[0][0]} --interval {shlex.quote(places[0][1])} --heal"
    return " ".join(("stagehold verify", *(pipelines if len(pipelines) == 1 else ()), "--heal"))


def _at_first_sight(record: PartitionRecord, target: ScrubTarget) -> ScrubFinding | None:
    change = target.removed.get(record.partition)
    if target.busy:
        return ScrubFinding(record, Condition.SKIPPED, f"{target.busy} works on {target.region}")
    if record.state is PartitionState.DAMAGED:
        return ScrubFinding(
            record, Condition.DAMAGED, f"marked at {record.recorded_at:%Y-%m-%d %H:%M:%S} UTC", marked=True
        )
    if change and target.stage.output.on_foreign_change is OnForeignChange.FAIL:
        return ScrubFinding(record, Condition.SKIPPED, str(change))
    if change and target.stage.output.on_foreign_change is OnForeignChange.HEAL:
        return ScrubFinding(record, Condition.MISSING, str(change))
    if record.partition in target.gone:
        return ScrubFinding(record, Condition.MISSING, _what_is_gone(record, target.gone[record.partition]))
    return None


def _what_is_gone(record: PartitionRecord, sizes: Mapping[str, int | None]) -> str:
    other = {file.path: (sizes.get(file.path), file.bytes) for file in record.all_files}
    told = [
        f"{path} is gone" if now is None else f"{path} has {now} bytes, and {recorded} on record"
        for path, (now, recorded) in other.items()
        if now != recorded
    ]
    return ", ".join(told) or f"its table no longer has it as version {record.version} published it"


def _told(finding: ScrubFinding, sound: Collection[tuple[Cell, int]]) -> ScrubFinding:
    return replace(finding, healed=finding.open and (finding.record.cell, finding.record.partition) in sound)


def _place(result: StageScrub) -> Place:
    return result.target.cell.pipeline, result.target.cell.interval


def _partitions(findings: Iterable[ScrubFinding]) -> frozenset[int]:
    return frozenset(finding.record.partition for finding in findings)
