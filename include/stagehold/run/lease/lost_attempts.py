"""Which attempts ended without a word, who noticed, and when. An attempt works as long as it has its lease; one that
has not ended and whose lease is over is lost, whether anybody has said so in the ledger or not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from stagehold.ledger.across.intervals import LastTries
from stagehold.ledger.leases import lease_of, region_lease
from stagehold.ledger.ledger import Ledger
from stagehold.model.partition_set import overlap
from stagehold.model.records import Attempt, Run, RunState
from stagehold.model.states import ATTEMPT, RUN
from stagehold.plan.restart.rules import WORKER_LOST
from stagehold.plan.split.shares import share_of
from stagehold.run.lease.lease_holder import described

NOT_RENEWED = "its lease, which nobody renewed"


@dataclass(frozen=True)
class Loss:
    """Who ``noticed`` that an attempt was lost, in words, and when that was known."""

    noticed: str
    at: datetime

    def __str__(self) -> str:
        return f"noticed by {self.noticed}"


def losses(attempts: Sequence[Attempt], ledger: Ledger) -> Mapping[str, Loss]:
    """The losses by attempt id.

    :param attempts: of one run.
    """
    found = ((attempt.attempt_id, _loss(attempt, attempts, ledger)) for attempt in attempts)
    return {attempt_id: loss for attempt_id, loss in found if loss is not None}


def region_losses(tries: Iterable[LastTries], ledger: Ledger) -> Mapping[tuple[str, str], Loss]:
    """By run and region, the last loss of those in which somebody may have been lost."""
    runs = dict.fromkeys(one.run_id for one in tries if one.may_be_lost)
    found: dict[tuple[str, str], Loss] = {}
    for run_id in runs:
        attempts = ledger.attempts.of_run(run_id)
        regions = {attempt.attempt_id: attempt.region for attempt in attempts}
        told = losses(attempts, ledger).items()
        found |= {(run_id, regions[attempt]): loss for attempt, loss in sorted(told, key=lambda one: one[1].at)}
    return found


def goes_on(run: Run, ledger: Ledger) -> bool:
    """Whether somebody works on the interval of a run that has not ended, as far as the ledger tells."""
    if RUN.is_terminal(run.state):
        return False
    return bool(ledger.leases.alive_among((), [f"{run.pipeline}/{run.interval}/"], 1))


def has_stopped(run: Run, ledger: Ledger) -> bool:
    """Whether a run that did not finish may be resumed: it ended, or nobody works on it.

    A command that was killed could not say so; its run still counts as running. Airflow tries again by itself, so a run
    of its has not stopped while it runs; one that is failing or being cancelled has when nobody works on it any more.
    A command that is between two attempts at this moment cannot be told from one that was killed there.
    """
    if RUN.is_terminal(run.state):
        return run.state is not RunState.FINISHED
    airflow_goes_on = run.launcher == "airflow" and run.state not in (RunState.FAILING, RunState.CANCELLING)
    return not airflow_goes_on and not goes_on(run, ledger)


def run_loss(run: Run, ledger: Ledger) -> Loss | None:
    """The last loss of a run that nobody ended and that has stopped in the middle of an attempt: it was killed."""
    if RUN.is_terminal(run.state) or not has_stopped(run, ledger):
        return None
    attempts = ledger.attempts.of_run(run.run_id)
    going = {attempt.attempt_id for attempt in attempts if not ATTEMPT.is_terminal(attempt.state)}
    found = (loss for attempt, loss in losses(attempts, ledger).items() if attempt in going)
    return max(found, key=lambda loss: loss.at, default=None)


def _loss(attempt: Attempt, attempts: Iterable[Attempt], ledger: Ledger) -> Loss | None:
    if attempt.failure_rule == WORKER_LOST and attempt.ended_at:
        follower = _follower(attempt, attempts)
        return Loss(follower.named if follower else "whoever came after it", attempt.ended_at)
    if ATTEMPT.is_terminal(attempt.state) or not attempt.began:
        return None
    lease = ledger.leases.get(lease_of(attempt))
    if lease is None or (lease.epoch == attempt.epoch and ledger.leases.alive(lease.name)):
        return None
    if lease.epoch == attempt.epoch:
        return Loss(NOT_RENEWED, lease.expires_at)
    follower = _follower(attempt, attempts)
    return Loss(described(lease.holder), follower.started_at if follower else lease.expires_at)


def works(pipeline: str, interval: str, tries: Sequence[LastTries], leases: Collection[str], *, active: bool) -> bool:
    """Whether tries of a run that have not ended go on: the run does, and they have their lease or wait for it.

    :param leases: the names of those that somebody has.
    :param active: the run goes on.
    """
    if not active:
        return False
    begun = [same_parts for same_parts in tries if same_parts.going]
    own = {region_lease(pipeline, interval, tries.region) for tries in begun}
    return not begun or any(name == lease or name.startswith(f"{lease}/") for name in leases for lease in own)


def _follower(attempt: Attempt, attempts: Iterable[Attempt]) -> Attempt | None:
    """The next one for the same partitions that had a lease."""
    later = (
        other
        for other in attempts
        if other.region == attempt.region
        and other.epoch > attempt.epoch
        and overlap(share_of(other), share_of(attempt))
    )
    return min(later, key=lambda attempt: attempt.epoch, default=None)
