"""Pins intervals, so that they keep their outputs whatever `retain` says, and unpins them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from stagehold.errors import UnknownName
from stagehold.ledger.ledger import Ledger
from stagehold.model.choices import Pin
from stagehold.model.standing import PartitionState

SHOWN = 10  # intervals that an error names


def pin_intervals(pipeline: str, intervals: Sequence[str], who: str, why: str, ledger: Ledger) -> tuple[Pin, ...]:
    """Pin intervals from now on; a release that is under way at this moment may still finish.

    :raises UnknownName: nothing is on record of one of them, and none is pinned.
    """
    known = ledger.intervals.known(pipeline)
    for interval in intervals:
        if interval not in known:
            raise UnknownName(f"interval on record of {pipeline}", interval, sorted(known, reverse=True)[:SHOWN])
    return _record(pipeline, intervals, who, why, ledger, pinned=True)


def unpin_intervals(pipeline: str, intervals: Sequence[str], who: str, why: str, ledger: Ledger) -> tuple[Pin, ...]:
    """Unpin intervals. `stagehold gc` then releases what `retain` does not keep; runs that finish look only at the
    newest intervals.

    :raises UnknownName: one of them is not pinned, and all stay as they are.
    """
    pinned = ledger.pins.holding(pipeline)
    for interval in intervals:
        if interval not in pinned:
            raise UnknownName(f"pinned interval of {pipeline}", interval, sorted(pinned, reverse=True)[:SHOWN])
    return _record(pipeline, intervals, who, why, ledger, pinned=False)


def released_before(pipeline: str, interval: str, ledger: Ledger) -> int:
    """How many partitions had been released before the pin."""
    counts = ledger.partitions.counts(pipeline, interval).values()
    return sum(states.get(PartitionState.RELEASED, 0) for states in counts)


def _record(
    pipeline: str, intervals: Sequence[str], who: str, why: str, ledger: Ledger, *, pinned: bool
) -> tuple[Pin, ...]:
    now = datetime.now(UTC)
    words = tuple(Pin(pipeline, interval, pinned, who, why, now) for interval in dict.fromkeys(intervals))
    ledger.pins.record(words)
    return words
