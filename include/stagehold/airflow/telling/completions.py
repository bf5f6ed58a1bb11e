"""When all tasks of a region had ended well. Of several tasks, each sees exactly one of itself and others end last."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from stagehold.model.records import Attempt, AttemptState

BEFORE_ALL = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Completion:
    """The end of ``attempt`` made its region complete; ``since`` is when it was so before, in the same run."""

    attempt: Attempt
    since: datetime


def completion_by(share: str | None, attempts: Sequence[Attempt], shares: Collection[str | None]) -> Completion | None:
    """Whether the newest attempt of a share ended last, of all that had started by then.

    :param attempts: of one region in one run.
    :param shares: all that the region has; None alone if it is not split.
    """
    ends = sorted((one for one in attempts if _finished(one) and one.share in shares), key=_end)
    complete = [one for one in ends if _is_complete(one, attempts, shares)]
    own = max((one for one in attempts if one.share == share), key=lambda one: one.started_at, default=None)
    if own is None or own not in complete:
        return None
    earlier = [one.ended_at for one in complete[: complete.index(own)] if one.ended_at is not None]
    return Completion(own, max(earlier, default=BEFORE_ALL))


def _is_complete(end: Attempt, attempts: Sequence[Attempt], shares: Collection[str | None]) -> bool:
    """Of every share, the newest attempt that had started had ended well."""
    for share in shares:
        began = [one for one in attempts if one.share == share and one.started_at <= _end(end)[0]]
        newest = max(began, key=lambda one: one.started_at, default=None)
        if newest is None or not _finished(newest) or _end(newest) > _end(end):
            return False
    return True


def _finished(attempt: Attempt) -> bool:
    return attempt.state is AttemptState.FINISHED and attempt.ended_at is not None


def _end(attempt: Attempt) -> tuple[datetime, str]:
    """Two may end in the same moment."""
    return attempt.ended_at or BEFORE_ALL, attempt.attempt_id
