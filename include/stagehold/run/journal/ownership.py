"""Who works on a share: who holds its lease, who may take that over, and who waits for whom."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass

from stagehold.errors import LeaseLost
from stagehold.model.records import Lease
from stagehold.plan.resume.decisions import ResumePlan
from stagehold.run.equipment.workplace import Workplace
from stagehold.spark.processes import identify

SEPARATOR = "|"
POLL_SECONDS = 1.0


@dataclass(frozen=True)
class LeaseHolder:
    """``owner`` is who an attempt works for; host, pid and start time tell one process from all others."""

    owner: str
    host: str
    pid: int
    started: str

    def __str__(self) -> str:
        return SEPARATOR.join((self.owner, self.host, str(self.pid), self.started))

    @property
    def described(self) -> str:
        """For people."""
        return f"{self.owner} (process {self.pid} on {self.host})"

    @staticmethod
    def parse(text: str) -> LeaseHolder | None:
        parts = text.split(SEPARATOR)
        if len(parts) != 4 or not parts[2].isdigit():
            return None
        return LeaseHolder(parts[0], parts[1], int(parts[2]), parts[3])

    def may_seize(self, held_by: str) -> bool:
        """True when the other is an earlier try for the same owner, or a process of this host that has ended.

        An earlier try may still be alive (a zombie): it is fenced, so it cannot harm.
        """
        other = LeaseHolder.parse(held_by)
        if other is None:
            return False
        return other.owner == self.owner or (other.host == self.host and _started(other.pid) != other.started)


def described(holder: str) -> str:
    """The holder of a lease, for people."""
    known = LeaseHolder.parse(holder)
    return known.described if known else holder


def this_process(owner: str) -> LeaseHolder:
    return LeaseHolder(owner, platform.node(), os.getpid(), _started(os.getpid()))


def _started(pid: int) -> str:
    """When whoever has this pid was started, so that a reused pid is not mistaken; empty when nobody has it."""
    found = identify(pid)
    return str(found.started) if found else ""


def wait_for_faster(lease: Lease, workplace: Workplace, done: Callable[[], ResumePlan | None]) -> ResumePlan:
    """Wait until the attempt that has taken the share over has left nothing to compute; gives the plan that says so.

    :raises LeaseLost: it ended before that, so another try has to do the rest.
    """
    while True:
        others_at_work = workplace.ledger.leases.alive(lease.name)
        if (plan := done()) is not None:
            return plan
        if not others_at_work:
            raise LeaseLost(lease.name, lease.epoch, "a faster attempt took the work over and ended before it was done")
        workplace.sleep(POLL_SECONDS)
