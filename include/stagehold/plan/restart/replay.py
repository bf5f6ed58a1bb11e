"""Whether a run goes on after a failure, replayed from the attempts in the ledger, so that any process decides the
same: may it restart, and when; and does the failure take a restart of its own, or belong to one that is planned
already.

A failure that is allowed no restart, or a cancel, ends one life of the run. If an attempt began after that, somebody
resumed the run: a new life, in which the strategy starts from nothing, as with a new job in Flink.

A try that ended before it had a lease has computed nothing that could be lost, so the strategy is not told of it. The
number of such tries is limited.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random

from stagehold.model.partition_set import Share
from stagehold.model.records import Attempt, AttemptState, FailureClass, RunState
from stagehold.model.units import write_duration
from stagehold.plan.restart.rules import FENCED
from stagehold.plan.restart.strategy import RestartDecider, restart_strategy
from stagehold.plan.split.shares import all_finished, newest_covering
from stagehold.spec.settings.restart import RestartSettings, RestartStrategy

MISSING_DATA_RESTARTS = 3

TRIES_TO_BEGIN = 5
GROWTH = 4  # of the pause between tries to begin: five of them last some minutes, in which most outages end


@dataclass(frozen=True)
class RestartDecision:
    """What follows from one attempt's failure; ``delay`` counts from its end, ``reason`` is for people."""

    restart: bool
    delay: timedelta
    reason: str


@dataclass(frozen=True)
class RestartRules:
    """The pipeline's strategy. ``limit`` is how often one region, or share of one, restarts in a life if the strategy
    sets no limit.
    """

    settings: RestartSettings
    limit: int
    run_id: str

    @property
    def unlimited(self) -> bool:
        match self.settings.strategy:
            case RestartStrategy.FAILURE_RATE:
                return True
            case RestartStrategy.EXPONENTIAL_DELAY:
                return self.settings.attempts is None
            case _:
                return False

    def history(self, life: int) -> RestartHistory:
        """A history in which nothing has happened yet. Its random numbers have a seed, so that every replay of a life
        draws the same delays.
        """
        return RestartHistory(restart_strategy(self.settings, random=Random(f"{self.run_id}/{life}")))  # noqa: S311 - jitter


@dataclass
class _Replay:
    """The state of the replay between two attempts. ``ended_at`` is when the life ended, None while it goes on."""

    rules: RestartRules
    life: int = 0
    ended_at: datetime | None = None
    unbegun: dict[str, int] = field(default_factory=dict)
    restarts: dict[str, int] = field(default_factory=dict)
    history: RestartHistory = field(init=False)

    def __post_init__(self) -> None:
        self.history = self.rules.history(0)

    def decide(self, attempt: Attempt, at: datetime) -> RestartDecision:
        self._begin_life_of(attempt)
        kind = attempt.failure_class or FailureClass.RECOVERABLE
        decision = (
            self._after_attempt(attempt, kind, at) if attempt.began else self._after_unbegun(attempt.subject, kind)
        )
        if not decision.restart:
            self.ended_at = at
        return decision

    def begun(self, attempt: Attempt) -> None:
        """Note that an attempt has begun: only tries to begin that follow each other directly are counted together."""
        self.unbegun.pop(attempt.subject, None)

    def cancel(self, attempt: Attempt, at: datetime) -> None:
        self._begin_life_of(attempt)
        self.ended_at = at

    def _begin_life_of(self, attempt: Attempt) -> None:
        """An attempt that was under way when the life ended still belongs to it."""
        if self.ended_at is not None and attempt.started_at > self.ended_at:
            self.life, self.ended_at, self.restarts, self.unbegun = self.life + 1, None, {}, {}
            self.history = self.rules.history(self.life)

    def _after_attempt(self, attempt: Attempt, kind: FailureClass, at: datetime) -> RestartDecision:
        restart, delay, self.history = handle_failure(attempt.subject, kind, at, self.history)
        return self._decision(attempt.subject, kind, delay, restart=restart)

    def _after_unbegun(self, subject: str, kind: FailureClass) -> RestartDecision:
        tries = self.unbegun[subject] = self.unbegun.get(subject, 0) + 1
        if not kind.may_restart:
            return self._refused("trying again cannot help")
        if self._strategy is RestartStrategy.NONE:
            return self._refused(f"strategy {self._strategy} allows no further try")
        if tries >= TRIES_TO_BEGIN:
            return self._refused(f"{subject} could not even begin {tries} times in a row")
        delay = pause_before_try(tries + 1, self.rules.settings)
        return RestartDecision(True, delay, f"try {tries + 1} of {TRIES_TO_BEGIN} to begin, in {write_duration(delay)}")

    def _decision(self, subject: str, kind: FailureClass, delay: timedelta, *, restart: bool) -> RestartDecision:
        if not kind.may_restart:
            return self._refused("trying again cannot help")
        if not restart:
            return self._refused(f"strategy {self._strategy} allows no further restart after {self.history.restarts}")
        if kind is FailureClass.PARTITION_DATA_MISSING and not delay:
            return RestartDecision(True, delay, "what is missing is computed again at once")
        restarted = self.restarts.get(subject, 0)
        if self.rules.unlimited and restarted >= self.rules.limit:
            return self._refused(
                f"{subject} has restarted {restarted} times, as often as STAGEHOLD_ATTEMPT_RETRIES allows"
            )
        self.restarts[subject] = restarted + 1
        reason = f"restart {self.history.restarts} of the run, in {write_duration(delay)} ({self._strategy})"
        return RestartDecision(True, delay, reason)

    def _refused(self, reason: str) -> RestartDecision:
        return RestartDecision(False, timedelta(0), reason)

    @property
    def _strategy(self) -> RestartStrategy:
        return self.rules.settings.strategy


def replay_failures(attempts: Iterable[Attempt], rules: RestartRules) -> Mapping[str, RestartDecision]:
    """What follows from each failed attempt, by attempt id. The failure of an attempt that was fenced says nothing
    about the run, and is left out.
    """
    replay, decisions = _Replay(rules), dict[str, RestartDecision]()
    ended = ((attempt.ended_at, attempt) for attempt in attempts if attempt.ended_at is not None)
    for at, attempt in sorted(ended, key=lambda pair: (pair[0], pair[1].attempt_id)):
        if attempt.began:
            replay.begun(attempt)
        if attempt.state is AttemptState.CANCELED:
            replay.cancel(attempt, at)
        elif attempt.state is AttemptState.FAILED and attempt.failure_rule != FENCED:
            decisions[attempt.attempt_id] = replay.decide(attempt, at)
    return decisions


def first_delay(settings: RestartSettings) -> timedelta:
    """How long to wait where no failure could be counted: the process died, or no attempt had begun."""
    return next(delay for delay in (settings.delay, settings.initial, timedelta(seconds=1)) if delay is not None)


def pause_before_try(number: int, settings: RestartSettings) -> timedelta:
    """How long to wait before the second, third ... try after tries that could not even begin."""
    return first_delay(settings) * int(GROWTH ** (number - 2))


def run_state_after(
    parts: Sequence[tuple[str, Share | None]], attempts: Sequence[Attempt], decisions: Mapping[str, RestartDecision]
) -> RunState:
    """The state of a run, from the newest attempts of its regions or their shares. Partitions that no attempt has begun
    are still to come.

    :param parts: every region with each of its shares.
    """
    by_region = {region: [attempt for attempt in attempts if attempt.region == region] for region, _ in parts}
    newest = [attempt for region, share in parts for attempt in newest_covering(by_region[region], share)]
    failed = [attempt for attempt in newest if attempt.state is AttemptState.FAILED]
    if any(attempt.state is AttemptState.CANCELED for attempt in newest):
        return RunState.CANCELED
    if any(attempt.attempt_id in decisions and not decisions[attempt.attempt_id].restart for attempt in failed):
        return RunState.FAILED
    if failed:
        return RunState.RESTARTING
    return (
        RunState.FINISHED
        if all(all_finished(by_region[region], share) for region, share in parts)
        else RunState.RUNNING
    )


# Computing lost data again is no failure of the work, so no strategy counts it. Data that is gone again and again is
# one.


@dataclass(frozen=True)
class RestartHistory:
    """A run's failures so far; ``restarts`` counts the restarts that the strategy allowed. Failures that come before a
    restart which is allowed already are merged into it.

    :param missing: how often in a row each subject has missed recorded data.
    """

    strategy: RestartDecider
    restarts: int = 0
    missing: Mapping[str, int] = field(default_factory=dict)


Handling = tuple[bool, timedelta, RestartHistory]  # whether to restart, after which delay, and the history from then on


def handle_failure(subject: str, kind: FailureClass, at: datetime, history: RestartHistory) -> Handling:
    """Decide about a failure of a region.

    A failure that cannot be recovered from ends the run without telling the strategy. Missing data is computed again at
    once and costs nothing, as long as the strategy would still allow a restart.
    """
    if not kind.may_restart:
        return False, timedelta(0), history
    missed = history.missing.get(subject, 0) + 1
    if kind is FailureClass.PARTITION_DATA_MISSING and missed <= MISSING_DATA_RESTARTS:
        history = replace(history, missing={**history.missing, subject: missed})
        return history.strategy.can_restart(at), timedelta(0), history
    return _counted(at, replace(history, missing={**history.missing, subject: 0}))


def _counted(at: datetime, history: RestartHistory) -> Handling:
    strategy, new_attempt = history.strategy.after_failure(at)
    restart = strategy.can_restart(at)
    restarts = history.restarts + bool(restart and new_attempt)
    return restart, strategy.delay(at), replace(history, strategy=strategy, restarts=restarts)
