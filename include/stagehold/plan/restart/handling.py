"""One failure of a run: may it restart, when, and is it a new root cause or the follow-up of the last one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from stagehold.model.records import FailureClass
from stagehold.plan.restart.strategy import RestartDecider

# Computing lost data again is no failure of the work, so no strategy counts it. Data that is gone again and again is
# one.
MISSING_DATA_RESTARTS = 3


@dataclass(frozen=True)
class FailureEntry:
    """What happened, for the record. ``subject`` is the vertex or region that failed,
    None for a failure of the whole run.
    """

    subject: str | None
    kind: FailureClass
    text: str
    at: datetime


@dataclass(frozen=True)
class RootCause:
    """A failure that took a restart, or ended the run, with the failures that came before that restart."""

    failure: FailureEntry
    follow_ups: tuple[FailureEntry, ...] = ()


@dataclass(frozen=True)
class RestartHistory:
    """A run's failures so far; ``restarts`` counts root causes that were allowed a restart by the strategy.

    :param missing: how often in a row each subject has missed recorded data.
    """

    strategy: RestartDecider
    root_causes: tuple[RootCause, ...] = ()
    restarts: int = 0
    missing: Mapping[str | None, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Handling:
    """What to do about a failure. ``delay`` counts only if ``restart``; ``history`` replaces the one that was given."""

    restart: bool
    delay: timedelta
    root_cause: bool
    history: RestartHistory


def handle_failure(failure: FailureEntry, *, history: RestartHistory) -> Handling:
    """Decide about a failure and file it.

    One that cannot be recovered from ends the run without telling the strategy, and is always a root cause. Missing
    data is computed again at once and costs nothing, as long as the strategy would still allow a restart.
    """
    if not failure.kind.may_restart:
        return Handling(False, timedelta(0), True, _with_failure(history, failure, root_cause=True))
    missed = history.missing.get(failure.subject, 0) + 1
    if failure.kind is FailureClass.PARTITION_DATA_MISSING and missed <= MISSING_DATA_RESTARTS:
        filed = replace(
            _with_failure(history, failure, root_cause=True), missing={**history.missing, failure.subject: missed}
        )
        return Handling(history.strategy.can_restart(failure.at), timedelta(0), True, filed)
    return _counted(failure, replace(history, missing={**history.missing, failure.subject: 0}))


def _counted(failure: FailureEntry, history: RestartHistory) -> Handling:
    counted = history.strategy.after_failure(failure.at)
    restart = counted.strategy.can_restart(failure.at)
    # what a strategy merges may be with what no history tells of
    root_cause = counted.new_attempt or not history.root_causes
    filed = replace(_with_failure(history, failure, root_cause=root_cause), strategy=counted.strategy)
    if restart and counted.new_attempt:
        filed = replace(filed, restarts=filed.restarts + 1)
    return Handling(restart, counted.strategy.delay(failure.at), root_cause, filed)


def _with_failure(history: RestartHistory, entry: FailureEntry, *, root_cause: bool) -> RestartHistory:
    if root_cause:
        return replace(history, root_causes=(*history.root_causes, RootCause(entry)))
    last = history.root_causes[-1]
    return replace(
        history, root_causes=(*history.root_causes[:-1], replace(last, follow_ups=(*last.follow_ups, entry)))
    )
