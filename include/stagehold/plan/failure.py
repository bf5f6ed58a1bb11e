"""What kind of failure an error is, from its whole chain of causes.

class                   found in the chain                                    consequence
non_recoverable         an error that trying again cannot help                the run fails at once
partition_data_missing  recorded data that is gone                            its producers run again too
environment             machine, storage, network, Spark or another attempt   restarts
recoverable             anything else                                         restarts
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from stagehold.errors import PartitionDataMissing, Terminal, Transient


class FailureClass(StrEnum):
    """Classes of failures, the one that decides first."""

    NON_RECOVERABLE = "non_recoverable"
    PARTITION_DATA_MISSING = "partition_data_missing"
    ENVIRONMENT = "environment"
    RECOVERABLE = "recoverable"

    @property
    def may_restart(self) -> bool:
        return self is not FailureClass.NON_RECOVERABLE


# The first line that fits an error is its class, so an error's own class comes before that of its base.
_CLASSES: tuple[tuple[type[BaseException], FailureClass], ...] = (
    (Terminal, FailureClass.NON_RECOVERABLE),
    (PartitionDataMissing, FailureClass.PARTITION_DATA_MISSING),
    (Transient, FailureClass.ENVIRONMENT),
    (OSError, FailureClass.ENVIRONMENT),
    (MemoryError, FailureClass.ENVIRONMENT),
    (BaseException, FailureClass.RECOVERABLE),
)


@dataclass(frozen=True)
class Diagnosis:
    """``decided_by`` is the error whose class counts; ``missing`` is the data that the chain names as gone, if any."""

    kind: FailureClass
    decided_by: BaseException
    missing: PartitionDataMissing | None


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error and all that caused it, each once: causes, contexts that are not suppressed, and members of groups."""
    seen: set[int] = set()
    rest: list[BaseException | None] = [error]
    while rest:
        found = rest.pop()
        if found is None or id(found) in seen:
            continue
        seen.add(id(found))
        yield found
        rest.extend(reversed(found.exceptions) if isinstance(found, BaseExceptionGroup) else ())
        rest.append(found.__cause__ if found.__suppress_context__ else found.__cause__ or found.__context__)


def diagnose(error: BaseException) -> Diagnosis:
    """The weightiest class in the chain, and the first missing data it names."""
    chain = tuple(causes(error))
    decided_by = min(chain, key=lambda cause: list(FailureClass).index(_class_of(cause)))
    missing = next((cause for cause in chain if isinstance(cause, PartitionDataMissing)), None)
    return Diagnosis(_class_of(decided_by), decided_by, missing)


def _class_of(error: BaseException) -> FailureClass:
    return next(kind for known, kind in _CLASSES if isinstance(error, known))
