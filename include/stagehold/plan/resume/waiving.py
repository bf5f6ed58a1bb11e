"""Which data may be read though its gate refuses it, because somebody said so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from stagehold.errors import NothingToWaive
from stagehold.model.records import PartitionRecord, PartitionState, RefusedData, StageVerdict, Waiver
from stagehold.plan.resume.reasons import Detail, Reason, because, partition_ranges


def held(words: Iterable[Waiver], now: datetime) -> tuple[Waiver, ...]:
    """Those that hold now: of the same data and expectation the one that was said last, unless it has ended."""
    return tuple(one for one in _newest(words) if one.until is None or one.until > now)


def no_longer_held(words: Iterable[Waiver], now: datetime) -> tuple[Waiver, ...]:
    """Those that held once: of the same data and expectation nobody has said another one since that does."""
    newest = _newest(words)
    return tuple(one for one in newest if one.until is not None and one.until <= now)


def _newest(words: Iterable[Waiver]) -> tuple[Waiver, ...]:
    return tuple({(one.partition, one.stage, one.fingerprint, one.expectation): one for one in words}.values())


def waivers_of(data: RefusedData, words: Sequence[Waiver]) -> tuple[Waiver, ...]:
    """Those for what the recorded data does not meet."""
    return tuple(one for one in words if one.holds_for(data) and one.expectation in data.refused)


def is_waived(data: RefusedData, words: Sequence[Waiver]) -> bool:
    """Whether somebody waived each expectation that the data does not meet."""
    return {one.expectation for one in waivers_of(data, words)} >= {*data.refused}


def who_waived(words: Sequence[Waiver]) -> Reason:
    """Who said so, and why."""
    said = "; ".join(dict.fromkeys(f"{one.waived_by} waived {one.expectation}: {one.reason}" for one in words))
    return because(Detail(said))


def refused_data(records: Iterable[PartitionRecord], verdict: StageVerdict | None) -> tuple[RefusedData, ...]:
    """What a gate refuses of a stage: partitions, and all of them together.

    :param records: the newest of the stage.
    :param verdict: what was said of just these together, if anything.
    """
    refused = (one for one in records if one.refused and one.state is not PartitionState.DAMAGED)
    return (*refused, *([verdict] if verdict and verdict.refused else ()))


@dataclass(frozen=True)
class WaiverWish:
    """What somebody wants to let through, of one stage for one interval.

    ``partitions`` are None for all that its gate refuses. ``expectation`` is how the text of what is waived begins;
    None for the only one that these partitions do not meet. A word that ends at once takes back an earlier one.
    """

    partitions: frozenset[int] | None
    expectation: str | None
    waived_by: str
    reason: str
    until: datetime | None = None


def wished(wish: WaiverWish, stage: str, data: Iterable[RefusedData], now: datetime) -> tuple[Waiver, ...]:
    """A word for each partition and expectation that is meant.

    :param data: what the gate refuses, see `refused_data`.
    :raises NothingToWaive: the gate refuses none of that, or it is not clear which expectation is meant.
    """
    refused = {one.partition: one for one in data}
    others = sorted((wish.partitions or frozenset()) - refused.keys())
    if others or not refused:
        which = f"[{partition_ranges(others)}]" if others else ""
        raise NothingToWaive(stage, f"its gate does not refuse {stage}{which}", _offers(refused.values()))
    chosen = [one for number, one in sorted(refused.items()) if wish.partitions is None or number in wish.partitions]
    unmet = list(dict.fromkeys(expectation for one in chosen for expectation in one.refused))
    meant = [one for one in unmet if wish.expectation is None or one.startswith(wish.expectation)]
    if not meant:
        raise NothingToWaive(stage, f"none of them fails {wish.expectation}", _offers(chosen))
    if len(meant) > 1:
        raise NothingToWaive(stage, "more than one expectation may be meant; name it", _offers(chosen))
    return tuple(_word(wish, one, meant[0], now) for one in chosen if meant[0] in one.refused)


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
    for one in data:
        for expectation in one.refused:
            found.setdefault(expectation, []).append(one.partition)
    return [f"[{partition_ranges(sorted(some))}] {expectation}" for expectation, some in found.items()]
