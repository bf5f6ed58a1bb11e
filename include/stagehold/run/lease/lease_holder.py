"""The holder of a lease, as it is written in the ledger: the owner that an attempt works for, and its process."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass

from stagehold.spark.processes import identify

SEPARATOR = "|"


@dataclass(frozen=True)
class LeaseHolder:
    """``owner`` is whom an attempt works for; host, pid and start time distinguish one process from all others."""

    owner: str
    host: str
    pid: int
    started: str

    def __str__(self) -> str:
        return SEPARATOR.join((self.owner, self.host, str(self.pid), self.started))

    @property
    def described(self) -> str:
        """The holder, for people."""
        return f"{self.owner} (process {self.pid} on {self.host})"

    @staticmethod
    def parse(text: str) -> LeaseHolder | None:
        parts = text.split(SEPARATOR)
        if len(parts) != 4 or not parts[2].isdigit():
            return None
        return LeaseHolder(parts[0], parts[1], int(parts[2]), parts[3])

    def may_seize(self, held_by: str) -> bool:
        """True if the other holder is an earlier try for the same owner, or a process of this host that has ended.

        An earlier try may still be alive (a zombie): it is fenced, so it can do no harm.
        """
        other = LeaseHolder.parse(held_by)
        if other is None:
            return False
        return other.owner == self.owner or (other.host == self.host and _started(other.pid) != other.started)


def described(holder: str) -> str:
    """The holder of a lease, for people."""
    known = LeaseHolder.parse(holder)
    return known.described if known else holder


def owner_of(holder: str) -> str:
    """Whom the holder of a lease works for."""
    known = LeaseHolder.parse(holder)
    return known.owner if known else holder


def this_process(owner: str) -> LeaseHolder:
    return LeaseHolder(owner, platform.node(), os.getpid(), _started(os.getpid()))


def _started(pid: int) -> str:
    """When the process with this pid was started, so that a reused pid is not mistaken for it; empty if there is
    none.
    """
    found = identify(pid)
    return str(found.started) if found else ""
