"""How a run is stopped: behind the waves that are under way (suspended), or at once (cancelled).

A SIGTERM tells a process to end and not who wants that: somebody who asked for it, or whatever runs the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

from stagehold.errors import LedgerUnavailable, ProcessTerminated, RunNotUnderWay, RunSuspended, UnknownName
from stagehold.ledger.leases import lease_of
from stagehold.ledger.ledger import Ledger
from stagehold.model.checkpoint_records import CheckpointTrigger
from stagehold.model.records import Attempt, Run, RunState
from stagehold.model.states import ATTEMPT, GLOBALLY_TERMINAL, RUN, RunEvent, newest_life
from stagehold.run.planning.task import RegionTask

POLL_SECONDS = 0.5


def suspend_run(run_id: str, ledger: Ledger) -> None:
    """Suspend the run: from now on nothing begins in it, and whoever is at work ends behind its wave. Its partitions
    stay as they are, and whoever resumes the run goes on from there.

    :raises RunNotUnderWay: it has ended.
    """
    _refuse_ended(ledger.runs.get(run_id))
    ledger.runs.apply(run_id, RunEvent.SUSPEND)


def refuse_over(run: Run) -> None:
    """:raises RunNotUnderWay: nobody can go on with the run but by a new life of it."""
    if run.state in GLOBALLY_TERMINAL:
        raise RunNotUnderWay(run.run_id, run.state)


def cancel_run_here(run_id: str, ledger: Ledger) -> None:
    """Ask the process that drives the run to interrupt it. Where none is left that could, the run has ended with this.

    :raises RunNotUnderWay: it has ended.
    """
    _refuse_ended(ledger.runs.get(run_id))
    ledger.runs.ask_to_cancel(run_id)
    settle_cancelled(run_id, ledger)


def end_run(run_id: str, event: RunEvent, ledger: Ledger) -> None:
    """Have the run end by the event, at once if nobody is at work for it; a run that has ended stays as it is. Who is
    still at work records its own end.
    """
    with ledger.together():
        run = ledger.runs.lock(run_id)
        if run.state is RunState.CANCELLING:  # asked for before, and a failure is what that looks like to a launcher
            event = RunEvent.CANCEL
        idle = not at_work(ledger.attempts.of_run(run_id), ledger)
        ledger.runs.apply(run_id, event, *([RunEvent.ALL_ENDED] if idle else []))


def settle_cancelled(run_id: str, ledger: Ledger) -> None:
    """A run that is cancelled has ended when nobody is at work for it any more."""
    with ledger.together():
        run = ledger.runs.lock(run_id)
        if run.state is RunState.CANCELLING and not at_work(ledger.attempts.of_run(run_id), ledger):
            ledger.runs.apply(run_id, RunEvent.ALL_ENDED)


def await_stop(
    run_id: str, ledger: Ledger, waiting_for: Callable[[Attempt], None], sleep: Callable[[float], None]
) -> Run:
    """Wait until nobody is at work for the run; ``waiting_for`` is told each attempt that is, once. Gives the run as it
    is then.
    """
    told: set[str] = set()
    while working := at_work(ledger.attempts.of_run(run_id), ledger):
        for attempt in working:
            if attempt.attempt_id not in told:
                told.add(attempt.attempt_id)
                waiting_for(attempt)
        sleep(POLL_SECONDS)
    settle_cancelled(run_id, ledger)
    return ledger.runs.get(run_id)


def _refuse_ended(run: Run) -> None:
    if RUN.is_terminal(run.state):
        raise RunNotUnderWay(run.run_id, run.state)


def at_work(attempts: Iterable[Attempt], ledger: Ledger) -> tuple[Attempt, ...]:
    """Attempts that have begun and not ended, and whose lease lives. An attempt that waits has nothing to end, and an
    attempt whose lease has ended is dead.
    """
    begun = (attempt for attempt in attempts if attempt.began and not ATTEMPT.is_terminal(attempt.state))
    return tuple(attempt for attempt in begun if ledger.leases.alive(lease_of(attempt)))


def refuse_suspended(run_id: str, ledger: Ledger) -> None:
    """:raises RunSuspended: the run is, with the savepoint that it was stopped with, if it was."""
    if ledger.runs.get(run_id).state is RunState.SUSPENDED:
        raise RunSuspended(run_id, _savepoint_of(run_id, ledger))


def _savepoint_of(run_id: str, ledger: Ledger) -> str | None:
    """The savepoint of this life of the run: a run that was suspended before may have had a savepoint then."""
    began = newest_life(ledger.transitions.of_run(run_id))[0].recorded_at
    stopped = [
        record
        for record in ledger.checkpoints.of_run(run_id)
        if record.trigger is CheckpointTrigger.STOP and record.ended_at is not None and record.ended_at >= began
    ]
    return stopped[-1].savepoint if stopped else None


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
