"""Processes: how to tell who they are, how children end with whoever started them, and what another Python process
needs in its environment to find the same code and the same settings. Also how much memory this process uses. Rests on
Linux's prctl and /proc.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn

from stagehold.settings import LIBRARY, Settings

PR_SET_PDEATHSIG = 1
POLL_SECONDS = 0.05
DEAD = ("Z", "X")  # ended, but not yet reaped by its parent
CAUGHT_SIGNALS = re.compile(r"^SigCgt:\s+([0-9a-f]+)$", re.MULTILINE)

# Loaded here because a forked child must not load libraries: another thread may have held a lock at the fork.
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class ProcessIdentity:
    """A process. The start time, in clock ticks, tells it from a later process with the same pid."""

    pid: int
    started: int

    @property
    def alive(self) -> bool:
        """A process that has ended but was not yet reaped by its parent is not alive; one with another thread than the
        first still is, and holds its ports and files.
        """
        return identify(self.pid) == self


def resident_bytes(pid: int | None = None) -> int:
    """The memory of a process, or of this one, that is in use now; 0 when there is no such process."""
    fields = _read(os.getpid() if pid is None else pid, "statm").split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") if fields else 0


def give_memory_back() -> None:
    """Give freed memory back to the system, which the process would otherwise keep for later: once something large was
    made, that is far more than is needed. Does nothing where the C library has no such function.
    """
    trim = getattr(_libc, "malloc_trim", None)
    if trim is not None:
        trim(0)


def identify(pid: int) -> ProcessIdentity | None:
    """The process that has this pid now; None if no living one has it."""
    fields = _stat(pid)
    return None if _is_dead(fields) else ProcessIdentity(pid, int(fields[19]))


def own_process() -> ProcessIdentity:
    return identify(os.getpid()) or ProcessIdentity(os.getpid(), 0)


def process_table() -> str:
    """What tells the pids of this machine, or of this container of it, from those of every other; empty if it cannot be
    told.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().partition("-")[0]
        return f"{boot}.{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return ""


def is_java(pid: int) -> bool:
    return _read(pid, "comm").strip() == "java"


def catches(pid: int, number: signal.Signals) -> bool:
    """Whether the process has a handler for the signal, which would end it otherwise."""
    caught = CAUGHT_SIGNALS.search(_read(pid, "status"))
    return caught is not None and bool(int(caught[1], 16) >> (number - 1) & 1)


def die_with_parent() -> None:
    """Have the kernel kill this process, and only this one, when the thread that forked it ends.

    A parent that ended before this call is not noticed. Does nothing where the system is not Linux.
    """
    if sys.platform == "linux":
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _die_with(parent: int) -> None:
    """Let this process die with its parent, whose pid is known; if that is gone already, it ends here."""
    die_with_parent()
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def start_process(
    command: Sequence[str], *, environment: Mapping[str, str], folder: Path, log: Path
) -> subprocess.Popen[bytes]:
    """Start a command in a session and process group of its own; it is killed when the calling thread ends.

    What it prints goes to ``log``; the log of the start before is kept beside it with the suffix ``.1``.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists():
        log.replace(log.with_name(f"{log.name}.1"))
    with log.open("wb") as output:
        return subprocess.Popen(
            command,
            env=dict(environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=partial(_die_with, os.getpid()),
        )


def signal_group(pid: int, number: signal.Signals) -> None:
    """Signal the process group that ``pid`` leads; says nothing when it is gone."""
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return


def kill_own_group() -> NoReturn:
    """End this process by SIGKILL, and its group with it if it leads one, as a command of a shell does."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("nobody survives SIGKILL")


def stop_session(leader: ProcessIdentity, *, first: signal.Signals = signal.SIGTERM, seconds: float) -> None:
    """Signal the leader's group, give it ``seconds`` to end, then kill what is left of its session."""
    if leader.alive:
        signal_group(leader.pid, first)
        wait_until(lambda: not leader.alive, seconds)
    kill_session(leader)


def kill_session(leader: ProcessIdentity) -> None:
    """Kill every process in the leader's session, whether or not the leader is alive.

    Only a process that made a session of its own escapes.
    """
    if identify(leader.pid) not in (leader, None):
        return  # the pid has a new owner, which it can have only when the old session is empty
    while members := session_members(leader.pid):
        for member in members:
            _kill(member)
        time.sleep(POLL_SECONDS)


def session_members(session: int) -> tuple[int, ...]:
    """Pids of the living processes of a session."""
    pids = (int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit())
    return tuple(pid for pid in pids if not _is_dead(fields := _stat(pid)) and int(fields[3]) == session)


def wait_until(condition: Callable[[], bool], seconds: float, poll_seconds: float = POLL_SECONDS) -> bool:
    """Poll until the condition holds; False when it does not within ``seconds``."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(poll_seconds)
    return True


def _stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat from the state on; empty when there is no such process."""
    # The command's name may hold spaces and brackets; what follows the last bracket never does.
    return _read(pid, "stat").rpartition(")")[2].split()


def _is_dead(fields: Sequence[str]) -> bool:
    """A killed Java is a zombie for as long as the last of its threads takes to end."""
    return not fields or (fields[0] in DEAD and int(fields[17]) <= 1)


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except OSError:
        return ""


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


OUR_CREDENTIALS = frozenset(
    f"STAGEHOLD_{name}"
    for name in ("ADMIN_PASSWORD", "AIRFLOW_CREDENTIALS", "AIRFLOW_PASSWORD", "AIRFLOW_TOKEN", "LEDGER")
)


def python_environment(settings: Settings) -> Mapping[str, str]:
    """This process's environment, with ``settings`` spelled out and the library and the project on the Python path."""
    paths = (*_own_paths(settings), *_inherited_paths())
    return {**os.environ, **settings.environment, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}


def foreign_environment(settings: Settings) -> Mapping[str, str]:
    """The environment for Spark's server, which must not find our code: its workers are sent whatever they import. Nor
    do they find what would let their functions into Airflow or the ledger, which Spark has no need of.
    """
    paths = [path for path in _inherited_paths() if path not in _own_paths(settings)]
    known = {**os.environ, **settings.environment, "PYTHONPATH": os.pathsep.join(paths)}
    return {name: text for name, text in known.items() if name not in OUR_CREDENTIALS}


def _own_paths(settings: Settings) -> tuple[str, ...]:
    from stagehold.code.project import code_folders  # `stagehold status` starts none

    return str(LIBRARY), *map(str, code_folders(Path(settings.project)))


def _inherited_paths() -> list[str]:
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
