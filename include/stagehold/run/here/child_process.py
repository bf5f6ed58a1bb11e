"""A process that works on one task, or on all of one interval, for a command that has several go on side by side.

It tells its parent lines of progress, and last what came of it. A process that is killed tells nothing more.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection

from stagehold.run.equipment.workplace import Progress
from stagehold.run.here.awaited_inputs import await_inputs
from stagehold.run.here.process_end import End, be_interruptible, end_of
from stagehold.run.here.submission import region_runner
from stagehold.run.planning.task import RegionOutcome, RegionTask
from stagehold.settings import Settings

# Forks of a process that has imported what is slow, and has no threads: they begin in an instant.
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([__name__, "deltalake", "pyspark.sql.connect.session"])


Work = Callable[[Progress], RegionOutcome]


def attempts(task: RegionTask, settings: Settings, waits: bool, progress: Progress) -> RegionOutcome:
    """The work on a task.

    :param waits: whether it begins by waiting for what it reads, as tasks of an eager pipeline do.
    """
    waiting = await_inputs(task, settings, progress) if waits else None
    return region_runner(task.pipeline)(task, settings, progress, waiting)


class ChildProcess:
    """The process that works on what is called ``name``, from its start on; ``work`` can be pickled. ``end`` is None as
    long as it has told none.
    """

    def __init__(self, name: str, work: Work) -> None:
        self.name, self.spoke = name, False
        self.end: End | None = None
        self.said, told = _FORKS.Pipe(duplex=False)
        self._process = _FORKS.Process(target=_work, args=(name, work, dict(os.environ), told), name=name)
        self._process.start()
        told.close()

    def hear(self, tell: Progress) -> bool:
        """Wait for what it says next, and pass a line of progress on. False when the process has ended.

        An interrupt may come in the middle of a word. What is left of it is no word, and is passed over.
        """
        try:
            message = self.said.recv()
        except (EOFError, OSError):  # it may die in the middle of a word, too
            self._process.join()
            self.said.close()
            return False
        except Exception:  # noqa: BLE001 - half a pickle may raise anything
            return True
        self.spoke = True
        if isinstance(message, str):
            tell(message)
        else:
            self.end = message
        return True

    @property
    def exit_code(self) -> int | None:
        return self._process.exitcode

    def interrupt(self) -> None:
        """Cancel what it does, as Ctrl-C would: it is in no terminal's group itself."""
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)
        self._process.join()

    def _signal(self, number: signal.Signals) -> None:
        if self._process.pid is not None and self._process.is_alive():
            os.kill(self._process.pid, number)


class _Teller:
    """Heartbeats speak in threads of their own."""

    def __init__(self, told: Connection) -> None:
        self._told, self._lock = told, threading.Lock()

    def __call__(self, message: str | End) -> None:
        with self._lock:
            self._told.send(message)


def _work(name: str, work: Work, environment: Mapping[str, str], told: Connection) -> None:
    tell = _Teller(told)

    def done() -> RegionOutcome:
        _begin(environment)
        return work(tell)

    tell(end_of(name, done))


def _begin(environment: Mapping[str, str]) -> None:
    """Be a process that ends with its parent, and that a terminal's Ctrl-C does not reach but through its parent."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.setpgid(0, 0)
    os.environ.clear()
    os.environ.update(environment)
    be_interruptible()


def _end_with_parent() -> None:
    """The kernel does that for children only, and this one is a child of the server that forked it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGKILL)
