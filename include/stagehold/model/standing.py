"""How something stands: the words for a partition, a stage, an interval, a run and a pipeline, and what is counted of
them, out of how many. Planner, commands, pages and API all ask here.

The larger is told by the smaller. `PartitionState` is what the ledger keeps of a partition; a `Tally` says how much
there is in each of these states, and a `Standing` how many of the declared partitions that is, from which follows the
state of the interval. The other words add what the ledger alone does not know: what a plan would do
(`CellStanding`, `CellState`), who is at work (`StageStanding`, `RunWord`, `PipelineStanding`), what a run did
(`StageOutcome`), who waived what (`RefusalStanding`). A word that several of them have means the same in all.

Totals come from what is declared, with the numbers that were decided for the interval, and not from what is recorded: a
run that stops half-way has no rows for what it never began.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


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


class CellState(StrEnum):
    """What a partition is now, in one word; those that people should see first come first."""

    FAILED = "failed"  # whoever was to make it failed, and nobody tries again by himself
    BLOCKED = "blocked"
    LOST = "lost"  # recorded, and its data is gone
    RUNNING = "running"  # in the hands of an attempt
    ADMITTED = "admitted"  # blocked, and waived since: the next run or resume publishes it
    HELD = "held"  # computed, and judged together with all of its stage
    WAITING = "waiting"  # not there yet
    STALE = "stale"  # consumable, and computed or judged again by the next run or resume
    WAIVED = "waived"  # consumable, though its gate refuses it
    RESTORED = "restored"  # consumable, as the checkpoint has it that the run begins with
    CONSUMABLE = "consumable"
    RELEASED = "released"
    UNNEEDED = "unneeded"  # no reader runs that would have it stored

    @property
    def readable(self) -> bool:
        """Whether anybody may read it."""
        return self in (CellState.CONSUMABLE, CellState.RESTORED, CellState.WAIVED)


class RefusalStanding(StrEnum):
    """What it means for its partitions that they do not meet an expectation."""

    BLOCKED = "blocked"
    WAIVED = "waived"  # and blocked by another expectation
    TO_PUBLISH = "to_publish"  # all that blocked them is waived, so that the next run or resume publishes them
    PUBLISHED = "published"
    OUTDATED = "outdated"  # the next run or resume computes them anew
    ENDED = "ended"  # published by a word that holds no more, so that the next run or resume takes them out
    OUTSTAYING = "outstaying"  # likewise, and they stay where they are


class StageStanding(StrEnum):
    """What there is of a stage for an interval. Whether it would run again, as its code changed, a plan alone can tell.

    Of several that are true the first one is told.
    """

    RUNNING = "running"
    BLOCKED = "blocked"
    FAILED = "failed"
    HELD = "held"
    DAMAGED = "damaged"
    MISSING = "missing"
    PARTIAL = "partial"
    RELEASED = "released"
    CONSUMABLE = "consumable"


class StageOutcome(StrEnum):
    """What a run did about a stage, or left undone. Of several that are true the first one is told."""

    RUNNING = "running"
    BLOCKED = "blocked"  # its gate said no to some of it
    FAILED = "failed"  # the run's last attempt failed, and not all of it is there
    HELD = "held"
    DAMAGED = "damaged"
    MISSING = "missing"  # the run ended, and some of it is not there
    HEALED = "healed"  # some of it was computed again since its data was gone
    RAN = "ran"
    JUDGED = "judged"  # its data was there, and was judged again
    REUSED = "reused"  # as earlier runs had left it
    RELEASED = "released"  # it had been released before, and nobody needed it
    NONE = "none"  # not asked for, or computed along with its reader


class CellStanding(StrEnum):
    """How a stage of an interval stands: by what a run would do about it now, whatever a backfill does."""

    GOOD = "good"
    MISSING = "missing"  # something is not there
    FAILED = "failed"  # the last attempt of the interval's newest run failed in it
    STALE = "stale"  # it is there, and would be made from something else now
    BLOCKED = "blocked"  # its gate, or what keeps an input of it back, says no


class IntervalState(StrEnum):
    """What there is of an interval."""

    COMPLETE = "complete"  # it is whole
    INCOMPLETE = "incomplete"  # some of it is there
    EMPTY = "empty"  # nothing can be read: it was deleted, or released, or nothing was ever published


class RunWord(StrEnum):
    """What became of a run; Airflow's word counts for those that it started."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"
    CANCELED = "canceled"
    SUSPENDED = "suspended"
    SILENT = "silent"  # it has not ended, and nobody works on it

    @property
    def active(self) -> bool:
        return self in (RunWord.QUEUED, RunWord.RUNNING)

    @property
    def ended_badly(self) -> bool:
        """Whether it did not come to its end, and nobody wanted that to wait."""
        return self in (RunWord.FAILED, RunWord.CANCELED, RunWord.SILENT)


class PipelineStanding(StrEnum):
    """How a pipeline stands: the first that is true, in this order."""

    HIDDEN = "hidden"  # the reader may not see runs of the DAG
    FAILING = "failing"  # some interval that is shown needs somebody
    RUNNING = "running"  # a run waits or goes on
    OVERDUE = "overdue"  # Airflow should have started a run a while ago
    NEVER_RUN = "never_run"
    CURRENT = "current"  # each interval that is shown is whole


class Need(StrEnum):
    """Why an interval on which nobody works needs somebody: the first that is true, in this order."""

    BLOCKED = "blocked"  # a gate refused some of it, and somebody has to mend or waive that
    FAILED = "failed"  # its newest run did not come to its end
    SUSPENDED = "suspended"  # its newest run waits for somebody to go on with it
    INCOMPLETE = "incomplete"  # its newest run succeeded, and it is not whole


StateCounts = Mapping[PartitionState, int]
_NAMED = (PartitionState.BLOCKED, PartitionState.HELD, PartitionState.DAMAGED)


class Sized(Protocol):
    """A partition whose state, rows and bytes are known."""

    @property
    def state(self) -> PartitionState: ...
    @property
    def rows(self) -> int: ...
    @property
    def bytes(self) -> int: ...


@dataclass(frozen=True)
class Amount:
    """A number of partitions, with their rows and bytes."""

    partitions: int = 0
    rows: int = 0
    bytes: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.partitions + other.partitions, self.rows + other.rows, self.bytes + other.bytes)


class Counting(Protocol):
    """A partition with the counters of its author."""

    @property
    def state(self) -> PartitionState: ...
    @property
    def counted(self) -> tuple[tuple[str, int], ...]: ...


def counted_in_all(partitions: Iterable[Counting]) -> tuple[tuple[str, int], ...]:
    """The sum of each counter over all partitions that count, by name; a damaged one is as good as gone."""
    sums: Counter[str] = Counter()
    for partition in partitions:
        if partition.state is not PartitionState.DAMAGED:
            sums.update(dict(partition.counted))
    return tuple(sorted(sums.items()))


@dataclass(frozen=True)
class Tally:
    """How much there is of partitions in each state; ``amounts`` has those in which some partition is."""

    amounts: Mapping[PartitionState, Amount]

    @staticmethod
    def of(partitions: Iterable[Sized]) -> Tally:
        amounts: dict[PartitionState, Amount] = {}
        for partition in partitions:
            amounts[partition.state] = amounts.get(partition.state, Amount()) + Amount(
                1, partition.rows, partition.bytes
            )
        return Tally(amounts)

    @property
    def counts(self) -> StateCounts:
        return {state: amount.partitions for state, amount in self.amounts.items()}

    @property
    def readable(self) -> Amount:
        return self._sum(lambda state: state.readable)

    def count(self, state: PartitionState) -> int:
        return self.amounts.get(state, Amount()).partitions

    def _sum(self, counts: Callable[[PartitionState], bool]) -> Amount:
        return sum((amount for state, amount in self.amounts.items() if counts(state)), Amount())


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
        """Partitions of inner stages whose data nobody needs any more."""
        return self.done - self.consumable

    @property
    def recorded(self) -> int:
        return sum(self.counts.values())

    @property
    def missing(self) -> int:
        """Partitions that are declared and have no record."""
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


def need_of(word: RunWord | None, standing: Standing) -> Need | None:
    """Why an interval needs somebody, if it does.

    :param word: what became of its newest run; None if there was none.
    """
    if word is not None and word.active:
        return None
    true = {
        Need.BLOCKED: bool(standing.counts.get(PartitionState.BLOCKED)),
        Need.FAILED: word is not None and word.ended_badly,
        Need.SUSPENDED: word is RunWord.SUSPENDED,
        Need.INCOMPLETE: not standing.whole,
    }
    return next((need for need, is_so in true.items() if is_so), None)


def together(standings: Iterable[Standing]) -> Standing:
    """All that there is of an interval, of its declared stages together."""
    counts: Counter[PartitionState] = Counter()
    done, total = 0, 0
    for standing in standings:
        counts.update(standing.counts)
        done, total = done + standing.done, total + standing.total
    return Standing(dict(counts), done, total)
