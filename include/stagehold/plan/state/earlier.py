"""What a stage kept in the interval before, and what of that each partition of the next interval begins with."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from stagehold.model.compute_key import digest
from stagehold.model.records import PartitionRecord, PartitionState, StatePart
from stagehold.model.stage_state import StateKind, StateShape
from stagehold.plan.resume.reasons import partition_ranges
from stagehold.plan.state.rescale import dealt, old_partitions_read, redistribute


@dataclass(frozen=True)
class Gap:
    """An interval that has to run first. ``partitions`` are those of the stage that it lacks; none if it lacks all."""

    interval: str
    partitions: tuple[int, ...] = ()

    def __str__(self) -> str:
        if not self.partitions:
            return f"{self.interval} has to run first: it kept nothing yet"
        return f"{self.interval} has to run first: it lacks what partitions {partition_ranges(self.partitions)} kept"


@dataclass(frozen=True)
class Piece:
    """What one partition kept under one name; its files lie in ``table``."""

    table: str
    part: StatePart


@dataclass(frozen=True)
class Given:
    """What a partition begins with of one state: all rows of ``pieces``, but for those of other partitions.

    Of keyed state those are told by key group, if ``regrouped``. Of a list, whose elements count on from piece to
    piece, ``elements`` are the partition's own, or all of them for None.
    """

    pieces: tuple[Piece, ...] = ()
    regrouped: bool = False
    elements: range | None = None

    @property
    def identity(self) -> str:
        """Equal for the same rows."""
        return digest((*(piece.part.fingerprint for piece in self.pieces), str(self.regrouped), str(self.elements)))


@dataclass(frozen=True)
class Cut:
    """Into what a stage is cut now."""

    partitions: int
    max_parallelism: int


@dataclass(frozen=True)
class Earlier:
    """``records`` are those of all partitions of ``interval``; there are none where the stage begins with nothing. With
    a ``gap`` nobody knows yet what it begins with.
    """

    interval: str | None = None
    records: tuple[PartitionRecord, ...] = ()
    gap: Gap | None = None

    def given(self, shape: StateShape, partition: int, cut: Cut) -> Given:
        pieces = self._pieces(shape.name)
        if not pieces:
            return Given()
        before = pieces[0].part
        if shape.kind is StateKind.KEYED:
            return _keyed(pieces, Cut(before.partitions, before.max_parallelism), partition, cut)
        if shape.kind is StateKind.SPLIT and before.partitions != cut.partitions:
            return Given(pieces, elements=dealt(sum(piece.part.rows for piece in pieces), cut.partitions)[partition])
        dealt_out = redistribute(shape.kind, [(piece,) for piece in pieces], cut.partitions)
        return Given(dealt_out[partition])

    def identity(self, shapes: Sequence[StateShape], partition: int, cut: Cut, record: PartitionRecord | None) -> str:
        """What the partition's key says of it: content alone, so that an interval which comes out equal though other
        code made it leaves the next one as it is. With a gap it is what ``record`` was made from, so that everything
        else can still be compared.
        """
        if self.gap:
            return digest(f"{shape.name}:{began(record, shape.name)}" for shape in shapes)
        return digest(f"{shape.name}:{self.given(shape, partition, cut).identity}" for shape in shapes)

    def changed_since(self, record: PartitionRecord, shapes: Sequence[StateShape], cut: Cut) -> bool:
        """Whether the record's partition began with other content."""
        now = (self.given(shape, record.partition, cut).identity for shape in shapes)
        return not self.gap and any(began(record, shape.name) != one for shape, one in zip(shapes, now, strict=True))

    def _pieces(self, name: str) -> tuple[Piece, ...]:
        """Of all partitions; none if the stage kept nothing under that name."""
        found = ((one.table, part) for one in self.records for part in one.kept if part.name == name)
        return tuple(Piece(table, part) for table, part in found)


def earlier_of(interval: str, records: Sequence[PartitionRecord], lost: Collection[int] = ()) -> Earlier:
    """What the newest records of a stage's partitions in an interval say, if all that it needs is there.

    :param lost: partitions whose files are gone.
    """
    newest = max(records, key=lambda one: (one.epoch, one.wave, one.recorded_at), default=None)
    if newest is None:
        return Earlier(interval, gap=Gap(interval))
    if not newest.kept:
        return Earlier(interval)  # it kept nothing then
    cut = _cut(newest)
    own = {one.partition: one for one in records if one.kept and _cut(one) == cut}
    there = {number for number, one in own.items() if one.state is PartitionState.CONSUMABLE} - set(lost)
    lacking = tuple(sorted(set(range(cut.partitions)) - there))
    if lacking:
        return Earlier(interval, gap=Gap(interval, lacking))
    return Earlier(interval, tuple(own[number] for number in range(cut.partitions)))


def _cut(record: PartitionRecord) -> Cut:
    return Cut(record.kept[0].partitions, record.kept[0].max_parallelism)


def began(record: PartitionRecord | None, name: str) -> str:
    """What the record's partition began with under this name."""
    return next((part.began for part in record.kept if part.name == name), "") if record else ""


def _keyed(pieces: tuple[Piece, ...], before: Cut, partition: int, now: Cut) -> Given:
    if before == now:
        return Given((pieces[partition],))
    if before.max_parallelism != now.max_parallelism:
        return Given(pieces, regrouped=True)  # a group means something else now, so any of them may have its keys
    read = old_partitions_read(
        partition, partitions=now.partitions, old_partitions=before.partitions, max_parallelism=now.max_parallelism
    )
    return Given(tuple(pieces[index] for index in read), regrouped=True)
