"""Who holds a lease, and whether a newcomer may take it over before it expires."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

SEPARATOR = "|"


@dataclass(frozen=True)
class Holder:
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
    def parse(text: str) -> Holder | None:
        parts = text.split(SEPARATOR)
        if len(parts) != 4 or not parts[2].isdigit():
            return None
        return Holder(parts[0], parts[1], int(parts[2]), parts[3])

    def may_seize(self, held_by: str) -> bool:
        """True when the other is an earlier try for the same owner, or a process of this host that has ended.

        An earlier try may still be alive (a zombie): it is fenced, so it cannot harm.
        """
        other = Holder.parse(held_by)
        if other is None:
            return False
        return other.owner == self.owner or (other.host == self.host and _started(other.pid) != other.started)


def this_process(owner: str) -> Holder:
    return Holder(owner, platform.node(), os.getpid(), _started(os.getpid()))


def _started(pid: int) -> str:
    """Start time of a process in clock ticks since boot; empty when there is none, so a reused pid is not mistaken."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""
