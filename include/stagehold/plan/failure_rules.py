"""The rules that say what class a failure is. The author's own come first, then this table; the first that fits counts.

A rule looks at single errors of a failure's chain of causes. Errors of Spark arrive over Connect as one class with the
server's whole story as text, so most rules of the environment are patterns in that text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stagehold.model.records import FailureClass
from stagehold.model.spec import FailureDeclaration

FENCED = "fenced"  # the one failure of an attempt that says nothing about its run
WORKER_LOST = "worker_lost"  # given to attempts that ended without a word; no error shows it
LEDGER_UNAVAILABLE = "ledger_unavailable"
ANYTHING = "anything_else"


@dataclass(frozen=True)
class FailureRule:
    """Fits an error that is of one of ``errors``, or has a Spark condition that begins with one of ``conditions`` (where both
    are empty, any error), and in whose text all of ``texts`` are found, in either case.

    :param errors: classes as ``module:Class``; their subclasses count.
    """

    name: str
    kind: FailureClass
    errors: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()

    def fits(self, error: BaseException) -> bool:
        return self._fits_class(error) and all(re.search(text, str(error), re.IGNORECASE | re.MULTILINE) for text in self.texts)

    def _fits_class(self, error: BaseException) -> bool:
        if not self.errors and not self.conditions:
            return True
        return bool(_class_names(error).intersection(self.errors)) or _condition(error).startswith(self.conditions)


def _class_names(error: BaseException) -> frozenset[str]:
    return frozenset(f"{kind.__module__}:{kind.__qualname__}" for kind in type(error).__mro__)


def _condition(error: BaseException) -> str:
    """Spark's name for the error; empty for errors of others. Its class is not imported: planning works without Spark."""
    getter = getattr(error, "getCondition", None)
    return str(getter() or "") if callable(getter) else ""


_TERMINAL, _MISSING, _ENVIRONMENT = FailureClass.NON_RECOVERABLE, FailureClass.PARTITION_DATA_MISSING, FailureClass.ENVIRONMENT

RULES: tuple[FailureRule, ...] = (
    FailureRule(FENCED, _TERMINAL, errors=("stagehold.errors:Fenced",)),
    FailureRule("gate", _TERMINAL, errors=("stagehold.errors:GateBlocked", "stagehold.errors:GateErrored")),
    FailureRule("lease_wait", _TERMINAL, errors=("stagehold.errors:LeaseNotFreed",)),
    FailureRule("terminal", _TERMINAL, errors=("stagehold.errors:Terminal",)),
    FailureRule(
        "query_refused",
        _TERMINAL,
        conditions=("UNRESOLVED_COLUMN", "UNRESOLVED_ROUTINE", "PARSE_SYNTAX_ERROR", "DATATYPE_MISMATCH", "AMBIGUOUS_REFERENCE"),
    ),
    FailureRule("partition_data_missing", _MISSING, errors=("stagehold.errors:PartitionDataMissing",)),
    FailureRule("disk_full", _ENVIRONMENT, texts=(r"no space left on device|disk quota exceeded|file too large",)),
    FailureRule(
        "out_of_memory",
        _ENVIRONMENT,
        texts=(r"OutOfMemoryError|UNABLE_TO_ACQUIRE_MEMORY|exceeding (physical )?memory limits|OOMKilled|cannot allocate memory",),
    ),
    FailureRule("out_of_memory", _ENVIRONMENT, errors=("builtins:MemoryError",)),
    FailureRule(
        "executor_lost",
        _ENVIRONMENT,
        texts=(r"ExecutorLostFailure|executor heartbeat timed out|remote RPC client disassociated|worker lost|FetchFailed",),
    ),
    FailureRule(
        "storage_throttled",
        _ENVIRONMENT,
        texts=(r"SlowDown|reduce your request rate|status code: 503|503 service unavailable|RequestLimitExceeded|TooManyRequests|throttl",),
    ),
    FailureRule("spark_gone", _ENVIRONMENT, errors=("stagehold.errors:SparkUnavailable", "stagehold.errors:SessionClosed")),
    FailureRule(LEDGER_UNAVAILABLE, _ENVIRONMENT, errors=("stagehold.errors:LedgerUnavailable",)),
    FailureRule("database_locked", _ENVIRONMENT, texts=(r"database (table )?is locked|could not obtain lock",)),
    FailureRule("lease", _ENVIRONMENT, errors=("stagehold.errors:LeaseHeld", "stagehold.errors:LeaseLost")),
    FailureRule("transient", _ENVIRONMENT, errors=("stagehold.errors:Transient",)),
    FailureRule("connection", _ENVIRONMENT, errors=("builtins:ConnectionError", "builtins:TimeoutError")),
    FailureRule(
        "connection",
        _ENVIRONMENT,
        texts=(r"connection (was )?(refused|reset|timed out)|UnknownHostException|NoRouteToHost|StatusCode\.UNAVAILABLE",),
    ),
    FailureRule("system", _ENVIRONMENT, errors=("builtins:OSError",)),
    FailureRule(ANYTHING, FailureClass.RECOVERABLE),
)


def rules_of(declared: Sequence[FailureDeclaration]) -> tuple[FailureRule, ...]:
    """The author's rules, then ours; but no rule of his can make an attempt that was overtaken go on."""
    own = (rule for number, one in enumerate(declared, 1) for rule in _own(f"failures[{number}]", one))
    return (RULES[0], *own, *RULES[1:])


def _own(name: str, declared: FailureDeclaration) -> Iterator[FailureRule]:
    """A rule for a class also finds it in the traceback of a Python function that Spark ran, of which only the text comes back."""
    texts = (declared.text,) if declared.text else ()
    if declared.error is None:
        yield FailureRule(name, declared.kind, texts=texts)
        return
    raised = rf"^{re.escape(declared.error.replace(':', '.'))}(:|$)"
    yield FailureRule(name, declared.kind, errors=(declared.error,), texts=texts)
    yield FailureRule(name, declared.kind, errors=("pyspark.errors.exceptions.base:PySparkException",), texts=(raised, *texts))
