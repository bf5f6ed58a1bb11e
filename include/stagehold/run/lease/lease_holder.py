"""The holder of a lease, as it is written in the ledger: the owner that an attempt works for, and its process."""

from __future__ import annotations

import multiprocessing
import platform
from dataclasses import dataclass

from stagehold.spark.processes import identify, own_process, process_table

SEPARATOR = "|"
OF_TABLE = "@"  # between a host and its table of processes


@dataclass(frozen=True)
class LeaseHolder:
    """``owner`` is whom an attempt works for; host, pid and start time distinguish one process from all others.

    ``table`` is where the process has its pid: machines and containers may be called alike, and none sees the processes
    of another.

    ``command`` has start time and pid of the command that the process belongs to. All processes of a command are one
    try, and the command that was begun last is the newest.
    """

    owner: str
    host: str
    pid: int
    started: str
    command: tuple[int, ...] = ()
    table: str = ""

    def __str__(self) -> str:
        place = f"{self.host}{OF_TABLE}{self.table}" if self.table else self.host
        return SEPARATOR.join((self.owner, place, str(self.pid), self.started, *map(str, self.command)))

    @property
    def described(self) -> str:
        """The holder, for people."""
        return f"{self.owner} (process {self.pid} on {self.host})"

    @staticmethod
    def parse(text: str) -> LeaseHolder | None:
        owner, *process = text.split(SEPARATOR)
        if len(process) < 3 or not process[1].isdigit():
            return None
        place, pid, started, *command = process
        host, _, table = place.partition(OF_TABLE)
        return LeaseHolder(owner, host, int(pid), started, tuple(map(int, command)), table)

    def may_seize(self, held_by: str) -> bool:
        """True if the other holder is an earlier try for the same owner, or a process that has ended where this one can
        see it.

        An earlier try may still be alive (a zombie): it is fenced, so it can do no harm. Of two commands of a run that
        take several leases at once the newer gets them all: if each took one from the other, both would end fenced.
        """
        other = LeaseHolder.parse(held_by)
        if other is None:
            return False
        seen = (other.host, other.table) == (self.host, self.table)
        if seen and not other.lives_here:
            return True
        newer = seen and other.command > self.command
        return other.owner == self.owner and not newer

    @property
    def lives_here(self) -> bool:
        return _started(self.pid) == self.started


def described(holder: str) -> str:
    """The holder of a lease, for people."""
    known = LeaseHolder.parse(holder)
    return known.described if known else holder


def owner_of(holder: str) -> str:
    """Whom the holder of a lease works for."""
    known = LeaseHolder.parse(holder)
    return known.owner if known else holder


def this_process(owner: str) -> LeaseHolder:
    own, parent = own_process(), multiprocessing.parent_process()
    command = (identify(parent.pid) if parent and parent.pid else None) or own
    began = (command.started, command.pid)
    return LeaseHolder(owner, platform.node(), own.pid, _started(own.pid), began, process_table())


def _started(pid: int) -> str:
    """When the process with this pid was started, so that a reused pid is not mistaken for it; empty if there is
    none.
    """
    found = identify(pid)
    return str(found.started) if found else ""
