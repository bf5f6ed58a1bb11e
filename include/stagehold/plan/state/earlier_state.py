"""The state that a stage kept in the interval before, and the part of it that each partition of the next interval
begins with, also when it is cut into another number of partitions now, by Flink's rules.

Keyed state is found again by key group, so only the ranges move. List state has no keys; its kind says how the elements
are dealt out anew. Nothing here reads state.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from stagehold.model.keys.compute_key import digest
from stagehold.model.keys.key_groups import index_of_group, range_of
from stagehold.model.partition_set import NO_PARTITIONS, PartitionSet
from stagehold.model.records import PartitionRecord, StatePart
from stagehold.model.stage_state import StateKind, StateShape


@dataclass(frozen=True)
class Gap:
    """An interval that has to run first. ``partitions`` are those of the stage that it lacks; none if it lacks all."""

    interval: str
    partitions: PartitionSet = NO_PARTITIONS

    def __str__(self) -> str:
        if not self.partitions:
            return f"{self.interval} has to run first: it kept nothing yet"
        return f"{self.interval} has to run first: it lacks what partitions {self.partitions} kept"


@dataclass(frozen=True)
class Piece:
    """The state that one partition kept under one name; its files are in ``table``."""

    table: str
    part: StatePart


@dataclass(frozen=True)
class Given:
    """What a partition begins with of one state: all rows of ``pieces``, without those of other partitions.

    For keyed state, the key group tells those if it is ``regrouped``. For a list, whose elements are numbered through
    all pieces, ``elements`` are the partition's own, or all of them for None. ``content`` is equal for equal pieces.
    """

    pieces: tuple[Piece, ...] = ()
    content: str = ""
    regrouped: bool = False
    elements: range | None = None

    @property
    def identity(self) -> str:
        """Equal for the same rows."""
        return digest((self.content, str(self.regrouped), str(self.elements)))


@dataclass(frozen=True)
class Cut:
    """Into how many partitions a stage is cut now."""

    partitions: int
    max_parallelism: int


@dataclass(frozen=True)
class Earlier:
    """``records`` are those of all partitions of ``interval``; there are none if the stage begins with nothing. With a
    ``gap`` it is not known yet what it begins with.
    """

    interval: str | None = None
    records: tuple[PartitionRecord, ...] = ()
    gap: Gap | None = None

    def given(self, shape: StateShape, partition: int, cut: Cut) -> Given:
        kept = self._by_name.get(shape.name)
        if kept is None:
            return Given()
        if shape.kind is StateKind.KEYED:
            return _keyed(kept, partition, cut)
        old = len(kept.pieces)
        read = old_lists_read(shape.kind, partition, partitions=cut.partitions, old_partitions=old)
        anew = shape.kind is StateKind.SPLIT and cut.partitions != old
        return kept.given(read, elements=slice_of(kept.rows, partition, cut.partitions) if anew else None)

    def identity(self, shapes: Sequence[StateShape], partition: int, cut: Cut, record: PartitionRecord | None) -> str:
        """What the partition's key says of it: content alone, so that an interval which comes out equal though other
        code made it leaves the next one as it is. With a gap it is what ``record`` was made from, so that everything
        else can still be compared.
        """
        if self.gap:
            return digest(f"{shape.name}:{began(record, shape.name)}" for shape in shapes)
        return digest(f"{shape.name}:{self.beginning(shape, shapes, partition, cut)}" for shape in shapes)

    def beginning(self, shape: StateShape, shapes: Sequence[StateShape], partition: int, cut: Cut) -> str:
        """Equal for equal content that the partition begins with; empty with a gap. What was kept in other shapes is
        made into ``shapes`` by a function of the author's, which may make any row of any other.
        """
        if self.gap:
            return ""
        if self.is_of_other(shapes):
            return digest((shape.name, *(kept.content for kept in self._by_name.values())))
        return self.given(shape, partition, cut).identity

    def is_of_other(self, shapes: Sequence[StateShape]) -> bool:
        """Whether it was kept in other shapes than these, as far as that is known."""
        kept = {name: kept.shape for name, kept in self._by_name.items()}
        return any(kept.values()) and kept != {shape.name: shape.written for shape in shapes}

    @property
    def pieces(self) -> Mapping[str, tuple[Piece, ...]]:
        """Everything that was kept, by name."""
        return {name: kept.pieces for name, kept in self._by_name.items()}

    def changed_since(self, record: PartitionRecord, shapes: Sequence[StateShape], cut: Cut) -> bool:
        """Whether the record's partition began with other content."""
        now = (self.beginning(shape, shapes, record.partition, cut) for shape in shapes)
        return not self.gap and any(
            began(record, shape.name) != content for shape, content in zip(shapes, now, strict=True)
        )

    @cached_property
    def _by_name(self) -> Mapping[str, _Kept]:
        found: dict[str, list[Piece]] = {}
        for record in self.records:
            for part in record.states:
                found.setdefault(part.name, []).append(Piece(record.table, part))
        return {name: _Kept(tuple(pieces)) for name, pieces in found.items()}


@dataclass(frozen=True)
class _Kept:
    """Everything that the partitions kept under one name, in their order."""

    pieces: tuple[Piece, ...]

    @cached_property
    def rows(self) -> int:
        return sum(piece.part.rows for piece in self.pieces)

    def given(self, read: range, *, regrouped: bool = False, elements: range | None = None) -> Given:
        if len(read) == len(self.pieces):
            return Given(self.pieces, self.content, regrouped, elements)
        pieces = self.pieces[read.start : read.stop]
        return Given(pieces, _content_of(pieces), regrouped, elements)

    @cached_property
    def content(self) -> str:
        """The content. It is computed once, since each partition may be given all."""
        return _content_of(self.pieces)

    @property
    def shape(self) -> str:
        return self.pieces[0].part.shape


def _content_of(pieces: Sequence[Piece]) -> str:
    return digest(piece.part.fingerprint for piece in pieces)


def earlier_of(interval: str, records: Sequence[PartitionRecord], lost: Collection[int] = ()) -> Earlier:
    """The earlier state by the newest records of a stage's partitions in an interval, if all that it needs is there.

    :param lost: partitions whose files are gone.
    """
    newest = max(records, key=lambda record: (record.epoch, record.wave, record.recorded_at), default=None)
    if newest is None:
        return Earlier(interval, gap=Gap(interval))
    if not newest.states:
        return Earlier(interval)  # it kept nothing then
    cut = _cut(newest)
    own = {record.partition: record for record in records if record.states and _cut(record) == cut}
    there = PartitionSet(number for number, record in own.items() if record.state.readable) - set(lost)
    lacking = PartitionSet(range(cut.partitions)) - there
    if lacking:
        return Earlier(interval, gap=Gap(interval, lacking))
    return Earlier(interval, tuple(own[number] for number in range(cut.partitions)))


def _cut(record: PartitionRecord) -> Cut:
    return Cut(record.states[0].partitions, record.states[0].max_parallelism)


def began(record: PartitionRecord | None, name: str) -> str:
    """What the record's partition began with under this name."""
    return next((part.began for part in record.states if part.name == name), "") if record else ""


def _keyed(kept: _Kept, partition: int, now: Cut) -> Given:
    part = kept.pieces[0].part
    before = Cut(part.partitions, part.max_parallelism)
    if before == now:
        return kept.given(range(partition, partition + 1))
    if before.max_parallelism != now.max_parallelism:
        # A group means something else now, so any of them may have its keys.
        return kept.given(range(before.partitions), regrouped=True)
    read = old_partitions_read(
        partition, partitions=now.partitions, old_partitions=before.partitions, max_parallelism=now.max_parallelism
    )
    return kept.given(read, regrouped=True)


def old_partitions_read(index: int, *, partitions: int, old_partitions: int, max_parallelism: int) -> range:
    """The old partitions whose groups partition ``index`` of ``partitions`` needs; no other has to be opened."""
    own = range_of(index, partitions, max_parallelism)
    first, last = (index_of_group(group, old_partitions, max_parallelism) for group in (own[0], own[-1]))
    return range(first, last + 1)


def old_lists_read(kind: StateKind, index: int, *, partitions: int, old_partitions: int) -> range:
    """The old partitions whose lists partition ``index`` of ``partitions`` is given: its own, or everybody's;
    of a split list that is dealt anew, its `slice_of` them all.
    """
    if kind is StateKind.BROADCAST:
        return range(index % old_partitions, index % old_partitions + 1)
    if kind is StateKind.SPLIT and partitions == old_partitions:
        return range(index, index + 1)
    return range(old_partitions)


def slice_of(count: int, index: int, partitions: int) -> range:
    """Which of ``count`` elements partition ``index`` is dealt: contiguous slices, the first ones one element longer
    where the count does not divide.
    """
    size, longer = divmod(count, partitions)
    start = index * size + min(index, longer)
    return range(start, start + size + (index < longer))
