"""Failures that a pipeline's runs met and how they went on: what was reused, and how long it took. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from stagehold.ledger.across.intervals import LONGEST_FAILURE
from stagehold.ledger.across.recoveries import LeftBehind
from stagehold.model.records import Attempt, AttemptState

LOST = "The attempt ended without a word: its process was killed or its machine was lost."


@dataclass(frozen=True)
class Recovery:
    """A region, or a share of it, that failed in a run and was tried again, ``attempts`` times in all.

    ``failed_at`` is when its first failure was known, ``recovered_at`` when a try after the last failure finished; None
    is not yet. ``reused`` partitions had been made by tries that failed, in ``saved_seconds``, and were not computed
    again.
    """

    interval: str
    run_id: str
    subject: str
    attempts: int
    cause: str | None
    failure: str
    failed_at: datetime
    recovered_at: datetime | None
    reused: int
    saved_seconds: float


@dataclass(frozen=True)
class PipelineRecoveries:
    """The newest first."""

    recoveries: tuple[Recovery, ...]


def recoveries(tried: Sequence[Sequence[Attempt]], left: Mapping[str, LeftBehind]) -> PipelineRecoveries:
    """:param tried: tries of the same partitions in one run, in the order in which they began.
    :param left: by attempt.
    """
    return PipelineRecoveries(tuple(_recoveries(tried, left)))


def _recoveries(tried: Sequence[Sequence[Attempt]], left: Mapping[str, LeftBehind]) -> Iterator[Recovery]:
    for tries in tried:
        lost = [one for one in tries[:-1] if one.state is not AttemptState.FINISHED]
        if not lost:
            continue  # the last try failed, and none has followed it
        first, last = lost[0], tries[-1]
        kept = [left[one.attempt_id] for one in lost if one.attempt_id in left]
        yield Recovery(
            interval=last.interval,
            run_id=last.run_id,
            subject=last.subject,
            attempts=len(tries),
            cause=first.cause,
            failure=(first.failure or LOST)[:LONGEST_FAILURE],
            failed_at=first.ended_at or tries[tries.index(first) + 1].started_at,
            recovered_at=last.ended_at if last.state is AttemptState.FINISHED else None,
            reused=sum(one.partitions for one in kept),
            saved_seconds=round(sum(one.seconds for one in kept), 1),
        )
