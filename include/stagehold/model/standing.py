"""How an interval, or a stage of it, stands: what is counted, and out of how many. Everybody who tells a number of
partitions asks here.

Totals come from what is declared, with the numbers that were decided for the interval, and not from what is recorded: a
run that stops half-way has no rows for what it never began.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class PartitionState(StrEnum):
    """The last thing known about a partition of a stage."""

    CONSUMABLE = "consumable"  # committed, gated and recorded: safe to read
    HELD = "held"  # it passes by itself; nobody reads it before its gate lets all of the stage, or what it rests on
    BLOCKED = "blocked"  # the gate said no: nobody reads it
    RELEASED = "released"  # it was consumable, nobody needed its data any more, and that may be deleted
    DAMAGED = "damaged"  # its content no longer matches its fingerprint: as good as gone

    @property
    def readable(self) -> bool:
        """Whether anybody may read it."""
        return self is PartitionState.CONSUMABLE

    @property
    def kept_back(self) -> bool:
        """Whether its data is there, and nobody may read it yet."""
        return self in (PartitionState.HELD, PartitionState.BLOCKED)

    @property
    def has_data(self) -> bool:
        """Whether its data is there and can be counted on, whoever may read it. Rows and bytes are sums over these."""
        return self.readable or self.kept_back

    @property
    def keeps_files(self) -> bool:
        """Whether its record names files that must not be deleted for want of a reader: those of damaged data, too."""
        return self is not PartitionState.RELEASED

    @property
    def counts_as_done(self) -> bool:
        """Whether what was computed counts, even if its data is there no more."""
        return self in (PartitionState.CONSUMABLE, PartitionState.RELEASED)


StateCounts = Mapping[PartitionState, int]
_NAMED = (PartitionState.BLOCKED, PartitionState.HELD, PartitionState.DAMAGED)


class IntervalState(StrEnum):
    """What there is of an interval."""

    COMPLETE = "complete"  # it is whole
    INCOMPLETE = "incomplete"  # some of it is there
    EMPTY = "empty"  # nothing can be read: it was deleted, or released, or nothing was ever published


@dataclass(frozen=True)
class DeclaredStage:
    """What an interval is to have of a stored stage, by its id. ``partitions`` is None as long as nobody has decided
    how many. A ``result`` is published, or kept for the next interval; all else is inner, and released in the end.
    """

    stage: str
    partitions: int | None
    result: bool


@dataclass(frozen=True)
class Standing:
    """Partitions by the state in which they are now, out of ``total``. ``done`` ones are consumable or, of inner
    stages, were released. Unless it is ``declared``, the total is what is on record, and nobody can say that it is
    whole.
    """

    counts: StateCounts = field(default_factory=dict)
    done: int = 0
    total: int = 0
    declared: bool = True

    @staticmethod
    def of(declared: DeclaredStage, counts: StateCounts) -> Standing:
        """:param counts: those of partitions that are declared, and of no others."""
        recorded = sum(counts.values())
        released = 0 if declared.result else counts.get(PartitionState.RELEASED, 0)
        # One that is missing stands for all whose number nobody has decided.
        total = recorded + 1 if declared.partitions is None else declared.partitions
        return Standing(counts, counts.get(PartitionState.CONSUMABLE, 0) + released, total)

    @staticmethod
    def on_record(counts: StateCounts) -> Standing:
        """Where nobody knows any more what is declared, nor which stages are published."""
        consumable = counts.get(PartitionState.CONSUMABLE, 0)
        return Standing(counts, consumable, sum(counts.values()), declared=False)

    @property
    def consumable(self) -> int:
        return self.counts.get(PartitionState.CONSUMABLE, 0)

    @property
    def released(self) -> int:
        """Of inner stages: nobody needs their data any more."""
        return self.done - self.consumable

    @property
    def recorded(self) -> int:
        return sum(self.counts.values())

    @property
    def missing(self) -> int:
        """Those that are declared and have no record."""
        return self.total - self.recorded

    @property
    def whole(self) -> bool:
        return self.declared and self.done == self.total > 0

    @property
    def state(self) -> IntervalState:
        if not self.consumable:
            return IntervalState.EMPTY
        return IntervalState.COMPLETE if self.whole else IntervalState.INCOMPLETE

    @property
    def amount(self) -> str:
        """What is good, out of how many."""
        of = f"of {self.total:,}" if self.declared else f"of {self.total:,} on record"
        return f"{self.done:,} {of} consumable{' or released' if self.released else ''}"

    def __str__(self) -> str:
        return ", ".join((self.amount, *self._lacking()))

    def _lacking(self) -> Iterator[str]:
        yield from (f"{self.counts[state]:,} {state}" for state in _NAMED if self.counts.get(state))
        gone = self.counts.get(PartitionState.RELEASED, 0) - self.released
        if gone:
            yield f"{gone:,} {'published and ' if self.declared else ''}released"
        if self.missing:
            yield f"{self.missing:,} missing"


def together(standings: Iterable[Standing]) -> Standing:
    """Of declared stages, all that there is of an interval."""
    counts: Counter[PartitionState] = Counter()
    done, total = 0, 0
    for one in standings:
        counts.update(one.counts)
        done, total = done + one.done, total + one.total
    return Standing(dict(counts), done, total)
