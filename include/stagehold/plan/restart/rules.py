"""The rules that say what class a failure is. The author's own come first, then this table; the first that fits counts.

A rule looks at single errors of a failure's chain of causes. What a user's data, query or function is to blame for is
told by the SQLSTATE that Spark gives it, or by the class that was raised: trying again gives the same. Errors of
Spark's own environment arrive over Connect as one class with the server's whole story as text, so most of their rules
are patterns in that text.

Of what a user's function raises, only this is tried again: OSError with all its kinds (a service or a disk that does
not answer), MemoryError, and what says in its text that storage, memory or network failed. Whoever knows better writes
a rule of his own.

    class                   consequence
    non_recoverable         the run fails at once
    partition_data_missing  its producers run again too
    environment             restarts
    recoverable             restarts
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stagehold.errors import PartitionDataMissing, StorageProblem
from stagehold.model.records import FailureClass
from stagehold.plan.restart.error_facts import WORKER_ERROR, ErrorFacts, facts_of

if TYPE_CHECKING:
    from stagehold.spec.settings.restart import FailureDeclaration

FENCED = "fenced"  # the one failure of an attempt that says nothing about its run
WORKER_LOST = "worker_lost"  # given to attempts that ended without a word; no error shows it
TERMINATED = "terminated"  # by a SIGTERM that nobody asked for
LEDGER_UNAVAILABLE = "ledger_unavailable"
ANYTHING = "anything_else"


@dataclass(frozen=True)
class FailureRule:
    """Fits an error that is of one of ``errors``, or has a Spark condition or SQLSTATE that begins with one of
    ``conditions`` or ``states`` (where all three are empty, any error), and in whose text all of ``texts`` are found,
    in either case.

    :param errors: classes as ``module:Class``; their subclasses count.
    :param storage: what such an error says of a place where something is kept.
    """

    name: str
    kind: FailureClass
    errors: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    storage: StorageProblem | None = None

    def fits(self, error: ErrorFacts) -> bool:
        return self._fits_kind(error) and all(
            re.search(text, error.text, re.IGNORECASE | re.MULTILINE) for text in self.texts
        )

    def _fits_kind(self, error: ErrorFacts) -> bool:
        if not (self.errors or self.conditions or self.states):
            return True
        if not error.classes.isdisjoint(self.errors):
            return True
        return any(condition.startswith(self.conditions) for condition in error.conditions) or any(
            state.startswith(self.states) for state in error.states
        )


_TERMINAL, _MISSING, _ENVIRONMENT = (
    FailureClass.NON_RECOVERABLE,
    FailureClass.PARTITION_DATA_MISSING,
    FailureClass.ENVIRONMENT,
)
_DISK_FULL = r"no space left on device|disk quota exceeded|file too large"
# As the system says it, Java, delta-rs and S3. Java's file systems only say that they made no folder.
_DENIED = (
    r"read-only file system|\(permission denied\)|permission denied \(os error|mkdirs failed to create|"
    r"AccessControlException|Access_?Denied|InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|InvalidToken|"
    r"Unable to locate credentials"
)
_BROKEN = r"input/output error|stale file handle|not a directory \(os error|\(not a directory\)"

RULES: tuple[FailureRule, ...] = (
    FailureRule(FENCED, _TERMINAL, errors=("stagehold.errors:Fenced",)),
    FailureRule("gate", _TERMINAL, errors=("stagehold.errors:GateError",)),
    FailureRule("lease_wait", _TERMINAL, errors=("stagehold.errors:LeaseNotFreed",)),
    FailureRule("terminal", _TERMINAL, errors=("stagehold.errors:Terminal",)),
    FailureRule("partition_data_missing", _MISSING, errors=("stagehold.errors:PartitionDataMissing",)),
    FailureRule(TERMINATED, _ENVIRONMENT, errors=("stagehold.errors:ProcessTerminated",)),
    FailureRule("stalled", _ENVIRONMENT, errors=("stagehold.errors:CallStalled",)),
    FailureRule("out_of_memory", _ENVIRONMENT, errors=("builtins:MemoryError",)),
    FailureRule(LEDGER_UNAVAILABLE, _ENVIRONMENT, errors=("stagehold.errors:LedgerUnavailable",)),
    FailureRule(
        "disk_full", _ENVIRONMENT, errors=("builtins:OSError",), texts=(_DISK_FULL,), storage=StorageProblem.FULL
    ),
    FailureRule("storage_denied", _ENVIRONMENT, errors=("builtins:PermissionError",), storage=StorageProblem.DENIED),
    FailureRule("storage_broken", _ENVIRONMENT, errors=("builtins:NotADirectoryError",), storage=StorageProblem.BROKEN),
    FailureRule("connection", _ENVIRONMENT, errors=("builtins:ConnectionError", "builtins:TimeoutError")),
    FailureRule(
        "user_data",
        _TERMINAL,
        conditions=("MALFORMED_CSV_RECORD", "FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH"),
        states=("21", "22", "23", "P0"),  # cardinality, data, constraint, raised by the query itself
    ),
    # Files come and go, and storage has its moods; the next attempt lists what there is then.
    FailureRule(
        "file_unreadable", FailureClass.RECOVERABLE, conditions=("PATH_NOT_FOUND", "FAILED_READ_FILE.FILE_NOT_EXIST")
    ),
    # parameters, features, names and types, limits
    FailureRule("user_query", _TERMINAL, states=("07", "0A", "42", "46", "54")),
    FailureRule("disk_full", _ENVIRONMENT, texts=(_DISK_FULL,), storage=StorageProblem.FULL),
    FailureRule("storage_denied", _ENVIRONMENT, texts=(_DENIED,), storage=StorageProblem.DENIED),
    FailureRule("storage_broken", _ENVIRONMENT, texts=(_BROKEN,), storage=StorageProblem.BROKEN),
    FailureRule(
        "out_of_memory",
        _ENVIRONMENT,
        texts=(
            r"OutOfMemoryError|OUT_OF_MEMORY|UNABLE_TO_ACQUIRE_MEMORY|exceeding (physical )?memory "
            r"limits|OOMKilled|cannot allocate memory",
        ),
    ),
    FailureRule(
        "executor_lost",
        _ENVIRONMENT,
        texts=(
            r"ExecutorLostFailure|executor heartbeat timed out|remote RPC client disassociated|worker "
            r"lost|FetchFailed|Checkpoint block \S+ not found",  # rows that an executor kept are lost with it
        ),
    ),
    FailureRule(
        "storage_throttled",
        _ENVIRONMENT,
        texts=(
            r"SlowDown|reduce your request rate|status code: 503|503 service "
            r"unavailable|RequestLimitExceeded|TooManyRequests|throttl",
        ),
    ),
    FailureRule(
        "spark_gone", _ENVIRONMENT, errors=("stagehold.errors:SparkUnavailable", "stagehold.errors:SessionClosed")
    ),
    FailureRule("session_gone", _ENVIRONMENT, texts=(r"stream '/artifacts/[^']+' was not found",)),
    FailureRule("database_locked", _ENVIRONMENT, texts=(r"database (table )?is locked|could not obtain lock",)),
    FailureRule("checkpoints", _ENVIRONMENT, errors=("stagehold.errors:CheckpointsFailed",)),
    FailureRule("lease", _ENVIRONMENT, errors=("stagehold.errors:LeaseHeld", "stagehold.errors:LeaseLost")),
    FailureRule("transient", _ENVIRONMENT, errors=("stagehold.errors:Transient",)),
    FailureRule(
        "connection",
        _ENVIRONMENT,
        texts=(
            r"connection (was )?(refused|reset|timed out)|UnknownHostException|NoRouteToHost|StatusCode\.UNAVAILABLE",
        ),
    ),
    FailureRule("system", _ENVIRONMENT, errors=("builtins:OSError",)),
    FailureRule("file_unreadable", FailureClass.RECOVERABLE, conditions=("FAILED_READ_FILE",)),
    FailureRule("user_query", _TERMINAL, errors=("pyspark.errors.exceptions.base:AnalysisException",)),
    FailureRule(
        "user_function", _TERMINAL, errors=("stagehold.errors:FunctionFailed", WORKER_ERROR), states=("38", "39")
    ),
    FailureRule(ANYTHING, FailureClass.RECOVERABLE),
)


def rules_of(declared: Sequence[FailureDeclaration]) -> tuple[FailureRule, ...]:
    """The author's rules, then ours; but no rule of his can make an attempt that was overtaken go on."""
    own = (
        FailureRule(
            f"failures[{number}]",
            declaration.kind,
            errors=(declaration.error,) if declaration.error else (),
            texts=(declaration.text,) if declaration.text else (),
        )
        for number, declaration in enumerate(declared, 1)
    )
    return (RULES[0], *own, *RULES[1:])


@dataclass(frozen=True)
class Diagnosis:
    """``rule`` fits ``decided_by``, the error that counts; ``missing`` is the data that the chain names as gone, if
    any.
    """

    rule: FailureRule
    decided_by: BaseException
    missing: PartitionDataMissing | None

    @property
    def kind(self) -> FailureClass:
        return self.rule.kind


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error and all its causes, each once: causes, contexts that are not suppressed, and members of groups."""
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


def diagnose(error: BaseException, rules: Sequence[FailureRule] = RULES) -> Diagnosis:
    """The first rule that fits any error in the chain decides, so the order of the rules is their weight; the last one
    fits every error.
    """
    chain = tuple((cause, facts_of(cause)) for cause in causes(error))
    rule, decided_by = next((rule, cause) for rule in rules for cause, facts in chain if rule.fits(facts))
    missing = next((cause for cause, _ in chain if isinstance(cause, PartitionDataMissing)), None)
    return Diagnosis(rule, decided_by, missing)
