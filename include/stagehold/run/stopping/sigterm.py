"""A SIGTERM tells a process to end and not who wants that: somebody who asked for it, or whatever runs the process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from stagehold.errors import LedgerUnavailable, ProcessTerminated, UnknownName
from stagehold.ledger.ledger import Ledger
from stagehold.run.planning.task import RegionTask
from stagehold.run.stopping.stopping import refuse_suspended


class Sigterm(KeyboardInterrupt):
    """Interrupts an attempt wherever it is, as Ctrl-C does; what it means is found out when that has let go of Spark.

    :param asked: asks the launcher who wants the end, and says it in words; None if nobody does.
    """

    def __init__(self, asked: Callable[[], str | None]) -> None:
        super().__init__()
        self.asked = asked


@contextmanager
def sigterms_told_apart(task: RegionTask, ledger: Ledger) -> Iterator[None]:
    """Raise in place of a Sigterm what it means. A launcher that cannot be asked was not asked by anybody.

    :raises RunSuspended: the run was suspended.
    :raises KeyboardInterrupt: it was cancelled, or its task was cleared or marked; with who did that.
    :raises ProcessTerminated: nobody asked for it.
    """
    try:
        yield
    except Sigterm as sigterm:
        asked = _asked_of_ledger(task.request.run_id, ledger) or sigterm.asked()
        if asked is None:
            raise ProcessTerminated(task.subject) from sigterm
        raise KeyboardInterrupt(asked) from None


def _asked_of_ledger(run_id: str, ledger: Ledger) -> str | None:
    """A ledger that is away knows nothing, as one that has not heard of the run."""
    with suppress(LedgerUnavailable, UnknownName):
        refuse_suspended(run_id, ledger)
        if ledger.runs.get(run_id).cancel_asked_at is not None:
            return "by `stagehold cancel`"
    return None
