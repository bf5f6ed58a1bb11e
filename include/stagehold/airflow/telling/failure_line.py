"""The end of a failed task's log: one line with what a person needs to know, and everything else folded below it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from stagehold.errors.gate_errors import GateBlocked
from stagehold.errors.stage_errors import StageFailed
from stagehold.model.partition_set import PartitionSet
from stagehold.run.delivery.wave import place_of

LONGEST_CAUSE = 500  # characters

Say = Callable[[str], None]


@contextmanager
def ending_in_one_line(subject: str, link: str, error_line: Say, line: Say) -> Iterator[None]:
    """Airflow folds a group of lines. This group is left open, so that Airflow's own report of the error, with its
    frames and ours, becomes part of it.
    """
    try:
        yield
    except Exception as error:
        error_line(failure_line(subject, error, link))
        line("::group::The whole trace")
        if isinstance(error, StageFailed):
            for each in error.trace.splitlines():
                line(each)
            raise error.with_traceback(None) from None  # its trace has just been written
        raise


def failure_line(subject: str, error: Exception, link: str) -> str:
    """The line that says where the task failed and why.

    :param subject: the task, as users know it.
    """
    return f"Failed: {_where(subject, error)}: {_cause(error)} -- {link}"


def _where(subject: str, error: Exception) -> str:
    place = place_of(error)
    if place is not None:
        return f"stage {place.stage}, wave {place.wave}, partitions {PartitionSet(place.partitions)}"
    match error:
        case StageFailed():
            partitions = f", partitions {PartitionSet(error.partitions)}" if error.partitions else ""
            return f"stage {error.stage}, before its first wave{partitions}"
        case GateBlocked():
            return f"stage {error.stage}, gate, partitions {PartitionSet(error.reasons)}"
    return f"task {subject}"


def _cause(error: Exception) -> str:
    if isinstance(error, StageFailed):
        return f"{error.problem} at {error.place}"
    if isinstance(error, GateBlocked):
        return _shortened(next(iter(error.reasons.values()), str(error)))
    first = next((line for line in str(error).splitlines() if line.strip()), "")
    return _shortened(f"{type(error).__name__}: {first}" if first else type(error).__name__)


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_CAUSE else f"{line[: LONGEST_CAUSE - 3]}..."
