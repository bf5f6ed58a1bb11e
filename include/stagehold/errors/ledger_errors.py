"""Errors: the ledger cannot be used, or not for this."""

from __future__ import annotations

from collections.abc import Sequence

from stagehold.errors.base import StageholdError, Terminal, Transient, first_of
from stagehold.errors.lake_errors import StorageProblem


class LedgerError(StageholdError):
    """The ledger cannot be used, or not for what it should record."""


class LedgerTooNew(LedgerError, Terminal):
    """The ledger's schema is one that this code does not know, so reading it might misjudge what is safe."""

    def __init__(self, ledger: str, version: str, known: str) -> None:
        self.ledger, self.version, self.known = ledger, version, known
        super().__init__(
            f"The ledger {ledger} has schema {version}; this Stagehold knows schemas up to {known}. Nothing was read "
            "or changed. Use the Stagehold that migrated it (`pip install --upgrade stagehold`), or name another "
            "ledger in STAGEHOLD_LEDGER."
        )


class LedgerUnavailable(LedgerError, Transient):
    """``ledger`` is the address without its password. ``problem`` is that of the place where it lies, if it has one."""

    remedy = "Make the database reachable, or name another in STAGEHOLD_LEDGER"

    def __init__(self, ledger: str, reason: str, problem: StorageProblem | None = None) -> None:
        self.ledger, self.reason, self.problem = ledger, reason, problem
        remedy = f"{problem.remedy}, or name another in STAGEHOLD_LEDGER" if problem else self.remedy
        super().__init__(
            f"The ledger {ledger} cannot be used now: {reason}. Nothing is half written, and repeating the call is "
            f"safe. {remedy}; `stagehold status` tells when it answers."
        )


class LedgerCrowded(LedgerUnavailable):
    """More write SQLite's file, one after the other, than it can take."""

    remedy = (
        "Run less at once, or name a database of PostgreSQL in STAGEHOLD_LEDGER: many can write that side by side, and "
        "`stagehold reconcile` fills it from the lake"
    )

    def __init__(self, ledger: str, seconds: float) -> None:
        super().__init__(ledger, f"it is a file that one at a time can write, and others did for {seconds:.0f} s")


class LedgerLost(LedgerError, Terminal):
    """The ledger knows nothing of an interval that was worked on, as the logs of its tables say."""

    def __init__(self, ledger: str, pipeline: str, interval: str, table: str) -> None:
        self.ledger, self.pipeline, self.interval, self.table = ledger, pipeline, interval, table
        super().__init__(
            f"The ledger {ledger} knows nothing of {pipeline} for {interval}, but the log of {table} says that it was "
            "worked on: the ledger was lost, or is another lake's. Nothing was begun, and all that was published "
            "stays. `stagehold reconcile` rebuilds the ledger from the lake (--dry-run shows what it would do); then "
            "run or resume again, and nothing is computed twice. If this is the wrong ledger, name the right one in "
            "STAGEHOLD_LEDGER."
        )


class LedgerBehind(LedgerError, Terminal):
    """Intervals have published rows of an incremental source,
    and neither the ledger nor the table's log says what they read of it.
    """

    def __init__(self, stage: str, table: str, intervals: Sequence[str], oldest: int) -> None:
        self.stage, self.table, self.intervals, self.oldest = stage, table, tuple(intervals), oldest
        super().__init__(
            f"The ledger does not know what {first_of(self.intervals)} read of source stage {stage}, as if it had "
            f"been lost. {table} has their rows, but its log, which would tell, begins with version {oldest}. Reading "
            "on would publish rows twice, so nothing was read; what is published stays safe. `stagehold reconcile` "
            "takes from the lake what was chronicled there; if that does not know them either, put a copy of the "
            "ledger back that does (STAGEHOLD_LEDGER names it). Then run `stagehold resume`. Without either, "
            "give the stage another name, uid and table, which begin anew with everything there is."
        )


class RecordsUnderName(LedgerError, Terminal):
    """What is on record of a stage is under a name that it had before, or has beside its id.

    ``was`` is what it has been called, in the order that its records ask for: they are under the last. ``again`` says
    what it would do as if nothing were on record.
    """

    def __init__(self, stage: str, now: str, was: Sequence[str], intervals: Sequence[str], again: str) -> None:
        self.stage, self.now, self.was, self.intervals = stage, now, tuple(was), tuple(intervals)
        written = was[0] if len(was) == 1 else f"[{', '.join(was)}]"
        super().__init__(
            f"Stage {stage} is recorded as {now} now, and what is on record of it is under {was[-1]}, of "
            f"{first_of(self.intervals)}: as {now} it would {again}. Nothing was run. Write `was: {written}`, with "
            "which it keeps its records, whatever it is called. To begin anew on purpose, give it a name and a uid "
            "that it never had, and another table if it has one. Then run the command again."
        )


class IllegalTransition(LedgerError, Terminal):
    """A state machine was told to do what its table does not have."""

    def __init__(self, *, machine: str, state: str, wanted: str, allowed: Sequence[str]) -> None:
        self.machine, self.state, self.wanted, self.allowed = machine, state, wanted, tuple(allowed)
        super().__init__(
            f"A {machine} that is {state} cannot become {wanted}; allowed: "
            f"{', '.join(self.allowed) or 'nothing, it has ended'}. Its state is unchanged. `stagehold status` shows "
            "it."
        )
