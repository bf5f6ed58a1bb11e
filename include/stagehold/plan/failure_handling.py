"""One failure of a run: may it restart, when, and is it a new root cause or the follow-up of the last one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from stagehold.plan.failure import Diagnosis, diagnose
from stagehold.plan.restart_strategy import RestartDecider


@dataclass(frozen=True)
class FailureEntry:
    """What happened, for the record. ``subject`` is the vertex or stage that failed, None for a failure of the whole run."""

    subject: str | None
    text: str
    at: datetime


@dataclass(frozen=True)
class RootCause:
    """A failure that took a restart, or ended the run, with the failures that came before that restart."""

    failure: FailureEntry
    follow_ups: tuple[FailureEntry, ...] = ()


@dataclass(frozen=True)
class RestartHistory:
    """A run's failures so far; ``restarts`` counts root causes that were allowed a restart."""

    strategy: RestartDecider
    root_causes: tuple[RootCause, ...] = ()
    restarts: int = 0


@dataclass(frozen=True)
class Handling:
    """What to do about a failure. ``delay`` counts only if ``restart``; ``history`` replaces the one that was given."""

    restart: bool
    delay: timedelta
    root_cause: bool
    diagnosis: Diagnosis
    history: RestartHistory


def handle_failure(error: BaseException, *, subject: str | None, history: RestartHistory, now: datetime) -> Handling:
    """Decide about a failure and file it.

    A failure that cannot be recovered from ends the run without telling the strategy, and is always a root cause.
    """
    diagnosis = diagnose(error)
    entry = FailureEntry(subject, f"{type(diagnosis.decided_by).__name__}: {diagnosis.decided_by}", now)
    if not diagnosis.kind.may_restart:
        return Handling(False, timedelta(0), True, diagnosis, _filed(history, entry, root_cause=True))
    counted = history.strategy.after_failure(now)
    restart = counted.strategy.can_restart(now)
    filed = replace(_filed(history, entry, root_cause=counted.new_attempt), strategy=counted.strategy)
    if restart and counted.new_attempt:
        filed = replace(filed, restarts=filed.restarts + 1)
    return Handling(restart, counted.strategy.delay(now), counted.new_attempt, diagnosis, filed)


def _filed(history: RestartHistory, entry: FailureEntry, *, root_cause: bool) -> RestartHistory:
    if root_cause:
        return replace(history, root_causes=(*history.root_causes, RootCause(entry)))
    last = history.root_causes[-1]
    return replace(history, root_causes=(*history.root_causes[:-1], replace(last, follow_ups=(*last.follow_ups, entry))))
