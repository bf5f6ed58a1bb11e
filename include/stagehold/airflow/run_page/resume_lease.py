"""Lets one user press Resume at a time; all others are told who that is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

from fastapi import HTTPException, status

from stagehold.airflow.context.dag_places import DagPlace
from stagehold.airflow.run_page.run_facts import RESUMED
from stagehold.errors.ledger_errors import LedgerUnavailable
from stagehold.errors.request_errors import ResumeUnderWay
from stagehold.errors.run_errors import LeaseHeld
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Event, Lease
from stagehold.run.lease.held_leases import RESUME_OF

RESUME_SECONDS = 60.0  # a resume that takes longer may be overtaken by another one
SEPARATOR = "|"


@dataclass(frozen=True)
class Presser:
    """A user who presses the button; ``call`` tells two presses of one user apart."""

    user: str
    at: datetime
    call: str

    @staticmethod
    def now(user: str) -> Presser:
        return Presser(user, datetime.now(UTC), uuid4().hex)

    def __str__(self) -> str:
        return SEPARATOR.join((self.call, self.at.isoformat(), self.user))

    @staticmethod
    def described(holder: str) -> str:
        """The holder of the lease, for people; a holder that is not one of these users is called somebody else."""
        _, at, user = (*holder.split(SEPARATOR, 2), "", "")[:3]
        if not user:
            return "somebody else"
        return f"{user}, who pressed at {datetime.fromisoformat(at):%Y-%m-%d %H:%M:%S} (UTC)"

    def put_on_record(self, run_id: str, note: str, ledger: Ledger) -> None:
        """Record who pressed Resume, for users who press it while the run goes on."""
        ledger.events.append(Event(run_id, RESUMED, self.user, note, datetime.now(UTC)))


def resume_lease(ledger: Ledger, place: DagPlace, run_id: str, presser: Presser) -> Lease:
    """The lease for resuming a run; if it is taken, the answer says who has it."""
    name = f"{RESUME_OF}{place.run(run_id)}"
    try:
        return ledger.leases.acquire(name, str(presser), RESUME_SECONDS)
    except LeaseHeld as held:
        error = ResumeUnderWay(f"{place} {run_id}", Presser.described(held.holder))
        raise HTTPException(status.HTTP_409_CONFLICT, str(error)) from held
    except LedgerUnavailable as error:
        raise HTTPException(status.HTTP_503_SERVICE_UNAVAILABLE, str(error)) from error
