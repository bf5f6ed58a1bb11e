"""How a process that works for another one ends, as that is told it."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn

from stagehold.errors import ProcessFailed, ProcessTerminated, StageholdError
from stagehold.run.equipment.timings import TIMINGS, Lap
from stagehold.run.journal.journal import attach, verdict_of
from stagehold.run.planning.task import RegionOutcome
from stagehold.run.stopping.stopping import Sigterm


@dataclass(frozen=True)
class Done:
    """The work is done; ``seconds`` are those of the process, by lap."""

    outcome: RegionOutcome
    seconds: Mapping[Lap, float]


@dataclass(frozen=True)
class Failed:
    """No attempt of the process went on; what follows from that is attached to the error."""

    error: StageholdError


class Interrupted:
    """Somebody wants the run to end."""


End = Done | Failed | Interrupted


def end_of(name: str, work: Callable[[], RegionOutcome]) -> End:
    """How the ``work`` on what is called ``name`` ends."""
    try:
        return Done(work(), TIMINGS.seconds)
    except Sigterm as sigterm:  # between two records
        return Failed(ProcessTerminated(name).with_traceback(sigterm.__traceback__))
    except KeyboardInterrupt:
        return Interrupted()
    except StageholdError as error:
        return Failed(error)
    except Exception as error:  # noqa: BLE001 - whatever it is, the other process has to hear of it
        return Failed(_as_text(name, error))


def be_interruptible() -> None:
    """Have SIGINT and SIGTERM interrupt this process, whatever it was started with."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _raise_sigterm)


def _raise_sigterm(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001
    raise Sigterm(lambda: None)


def _as_text(name: str, error: Exception) -> ProcessFailed:
    """An error of others may be anything, and not something that another process could be sent."""
    failed = ProcessFailed(name, "".join(traceback.format_exception(error)))
    if verdict := verdict_of(error):
        attach(failed, verdict)
    return failed
