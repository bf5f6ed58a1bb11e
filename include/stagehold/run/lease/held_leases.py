"""Who leads: every lease that somebody has, what it is for, who has it, and what its last heartbeat said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from stagehold.ledger.leases import lease_of
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Attempt, Lease
from stagehold.model.states import ATTEMPT
from stagehold.plan.restart.left_out_hosts import WITHIN, LeftOutHost, left_out_hosts
from stagehold.run.lease.lease_holder import LeaseHolder
from stagehold.run.planning.task import SPECULATION

COORDINATOR = "coordinator"  # ends the name of the lease without which nobody takes a checkpoint of a run
RESUME_OF = "resume of "  # and the run: the name of the lease of who presses Resume
MOST_LEASES = 500


class LeaseKind(StrEnum):
    """What somebody has a lease for."""

    REGION = "region"
    COORDINATOR = "coordinator"  # takes checkpoints of a run
    HELPER = "helper"  # computes what a slow share has left
    OTHER = "other"  # a resume, a sweep, what is done to all of the lake, or an attempt that has not begun yet


@dataclass(frozen=True)
class HeldLease:
    """A lease that has not ended, or that ended while its ``attempt`` has not: then its holder is gone or has lost the
    ledger, and whoever comes next takes it over. ``attempt`` is whose region it is; of a coordinator, some attempt of
    its run that goes on. ``seconds_left`` are counted by the ledger's clock.
    """

    lease: Lease
    kind: LeaseKind
    attempt: Attempt | None
    seconds_left: float

    @property
    def ended(self) -> bool:
        return self.seconds_left <= 0

    @property
    def holder(self) -> LeaseHolder | None:
        """Owner, host and process; None of a holder that is no process."""
        return LeaseHolder.parse(self.lease.holder)

    @property
    def run_id(self) -> str | None:
        return self.attempt.run_id if self.attempt else None

    @property
    def attempt_id(self) -> str | None:
        """The attempt that it lets work; a coordinator works for all of its run."""
        return self.attempt.attempt_id if self.attempt and self.kind is LeaseKind.REGION else None

    @property
    def subject(self) -> str:
        """What it is for, for people."""
        if self.attempt is None:
            return self.lease.name
        return self.attempt.subject if self.kind is LeaseKind.REGION else f"{self.kind} of {self.attempt.run_id}"


def hosts_left_out(ledger: Ledger) -> tuple[LeftOutHost, ...]:
    """The hosts that get no tasks now, by the attempts of all pipelines."""
    now = ledger.leases.now()
    return left_out_hosts(ledger.attempts.ended_since(now - WITHIN), now)


def held_leases(
    ledger: Ledger, pipeline: str | None = None, run_id: str | None = None, place: str = ""
) -> tuple[HeldLease, ...]:
    """Leases of a pipeline, or of one run of it, or all leases; regions first, by name.

    :param place: of the pipeline in Airflow, if it is not in a DAG of its own.
    """
    going = ledger.attempts.going(pipeline) if run_id is None else _going_of(run_id, ledger)
    beginnings = ("",) if pipeline is None else (f"{pipeline}/", f"{RESUME_OF}{place or pipeline}/")
    alive = ledger.leases.alive_among((), beginnings, MOST_LEASES)
    ended = ledger.leases.named({lease_of(attempt) for attempt in going} - {lease.name for lease in alive})
    found = _described([*alive, *ended], going, ledger.leases.now())
    shown = (held for held in found if not held.ended or held.attempt_id)
    order = [*LeaseKind]
    return tuple(
        sorted(
            (held for held in shown if run_id in (None, held.run_id)),
            key=lambda held: (order.index(held.kind), held.lease.name),
        )
    )


def _going_of(run_id: str, ledger: Ledger) -> tuple[Attempt, ...]:
    """Attempts of a run that go on, found by its id: a page asks for them every other second."""
    own = ledger.attempts.of_run(run_id)
    return tuple(attempt for attempt in own if attempt.began and not ATTEMPT.is_terminal(attempt.state))


def _described(leases: Iterable[Lease], going: Iterable[Attempt], now: datetime) -> Iterator[HeldLease]:
    known = [*going]
    by_lease = {(lease_of(attempt), attempt.epoch): attempt for attempt in known}
    by_run = {f"{attempt.pipeline}/{attempt.interval}/{attempt.run_id}": attempt for attempt in known}
    for lease in leases:
        left = (lease.expires_at - now).total_seconds()
        if lease.name.endswith(f"/{COORDINATOR}"):
            run = lease.name.removesuffix(f"/{COORDINATOR}")
            yield HeldLease(lease, LeaseKind.COORDINATOR, by_run.get(run), left)
        elif f"/{SPECULATION}/" in lease.name:
            yield HeldLease(lease, LeaseKind.HELPER, _helped(lease, by_lease), left)
        else:
            attempt = by_lease.get((lease.name, lease.epoch))
            yield HeldLease(lease, LeaseKind.REGION if attempt else LeaseKind.OTHER, attempt, left)


def _helped(lease: Lease, by_lease: Mapping[tuple[str, int], Attempt]) -> Attempt | None:
    """An attempt of the region whose slow share it helps."""
    region, _, _ = lease.name.partition(f"/{SPECULATION}/")
    return next((attempt for (name, _), attempt in by_lease.items() if f"{name}/".startswith(f"{region}/")), None)
