"""A process that makes the attempts of one task, for a command that has several go on side by side.

It tells its parent lines of progress, and last what came of it. A process that is killed tells nothing more.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import FrameType
from typing import NoReturn

from stagehold.errors import ProcessFailed, ProcessTerminated, StageholdError
from stagehold.run.equipment.timings import TIMINGS, Lap
from stagehold.run.equipment.workplace import Progress
from stagehold.run.here.awaited_inputs import await_inputs
from stagehold.run.here.region import run_region
from stagehold.run.journal.journal import attach, verdict_of
from stagehold.run.planning.task import RegionOutcome, RegionTask
from stagehold.run.stopping.stopping import Sigterm
from stagehold.settings import Settings

# Forks of a process that has imported what is slow, and has no threads: they begin in an instant.
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([__name__, "deltalake", "pyspark.sql.connect.session"])


@dataclass(frozen=True)
class Done:
    """The task's region is computed; ``seconds`` are those of the process, by lap."""

    outcome: RegionOutcome
    seconds: Mapping[Lap, float]


@dataclass(frozen=True)
class Failed:
    """No attempt of the process went on; what follows from that is attached to the error."""

    error: StageholdError


class Interrupted:
    """Somebody wants the run to end."""


End = Done | Failed | Interrupted


class AttemptProcess:
    """The process of a task, from its start on. ``end`` is None as long as it has told none."""

    def __init__(self, task: RegionTask, settings: Settings, *, waits: bool) -> None:
        """:param waits: whether it begins by waiting for what it reads, as tasks of an eager pipeline do."""
        self.task, self.spoke = task, False
        self.end: End | None = None
        self.said, told = _FORKS.Pipe(duplex=False)
        self._process = _FORKS.Process(
            target=_work, args=(task, settings, waits, dict(os.environ), told), name=task.subject
        )
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


def _work(task: RegionTask, settings: Settings, waits: bool, environment: Mapping[str, str], told: Connection) -> None:
    tell = _Teller(told)
    try:
        _begin(environment)
        waiting = await_inputs(task, settings, tell) if waits else None
        tell(Done(run_region(task, settings, tell, waiting), TIMINGS.seconds))
    except Sigterm as sigterm:  # between two records
        tell(Failed(ProcessTerminated(task.subject).with_traceback(sigterm.__traceback__)))
    except KeyboardInterrupt:
        tell(Interrupted())
    except StageholdError as error:
        tell(Failed(error))
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent has to hear of it
        tell(Failed(_as_text(task, error)))


def _begin(environment: Mapping[str, str]) -> None:
    """Be a process that ends with its parent, and that a terminal's Ctrl-C does not reach but through its parent."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.setpgid(0, 0)
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _raise_sigterm)


def _end_with_parent() -> None:
    """The kernel does that for children only, and this one is a child of the server that forked it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGKILL)


def _raise_sigterm(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001
    raise Sigterm(lambda: None)


def _as_text(task: RegionTask, error: Exception) -> ProcessFailed:
    """An error of others may be anything, and not something that another process could be sent."""
    failed = ProcessFailed(task.subject, "".join(traceback.format_exception(error)))
    if verdict := verdict_of(error):
        attach(failed, verdict)
    return failed
