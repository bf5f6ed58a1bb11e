"""Several intervals of a backfill at once, each in a process of its own, where none follows from another."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from multiprocessing.connection import wait

from stagehold.errors import ProcessLost
from stagehold.ledger.ledger import Ledger
from stagehold.model.backfill import Backfill
from stagehold.run.backfill.backfill_runs import IntervalOutcome, has_finished, request_of, run_id_of
from stagehold.run.equipment.workplace import Progress
from stagehold.run.here.child_process import ChildProcess
from stagehold.run.here.local_run import run_locally
from stagehold.run.here.process_end import Done, Failed
from stagehold.run.planning.planning import RunRequest
from stagehold.run.planning.task import RegionOutcome
from stagehold.settings import Settings
from stagehold.spec.pipeline import Pipeline


def run_intervals_at_once(
    backfill: Backfill, pipeline: Pipeline, ledger: Ledger, settings: Settings, progress: Progress, parallel: int
) -> Iterator[IntervalOutcome]:
    """Run what is planned and not done yet, ``parallel`` attempts at a time; what fails stops nothing else. Whoever is
    interrupted may call this again.

    :raises KeyboardInterrupt: after every process has cancelled its run.
    """
    begun: list[tuple[RunRequest, ChildProcess]] = []
    to_do = deque[str]()
    for interval in (each.interval for each in backfill.intervals):
        run_id = run_id_of(backfill, interval)
        if has_finished(run_id, ledger):
            yield IntervalOutcome(interval, run_id, finished_before=True)
        else:
            to_do.append(interval)
    of_each = max(1, parallel // max(1, len(to_do)))  # attempts of one interval, where there are few of them
    try:
        while to_do or begun:
            while to_do and len(begun) < parallel:
                request = request_of(backfill, to_do.popleft(), pipeline)
                begun.append((request, ChildProcess(request.interval, partial(_run, request, settings, of_each))))
            for request, process in _heard(begun, progress):
                begun.remove((request, process))
                yield _outcome(request, process)
    except KeyboardInterrupt:
        _cancel([process for _, process in begun], progress)
        raise
    finally:
        for _, process in begun:
            process.kill()


def _run(request: RunRequest, settings: Settings, parallel: int, progress: Progress) -> RegionOutcome:
    return run_locally(request, settings, progress, parallel=parallel)


def _heard(begun: list[tuple[RunRequest, ChildProcess]], progress: Progress) -> list[tuple[RunRequest, ChildProcess]]:
    """Those that have ended, after one word of each that has something to say."""
    ready = wait([process.said for _, process in begun])
    return [each for each in begun if each[1].said in ready and not each[1].hear(partial(_tell, progress, each[1]))]


def _tell(progress: Progress, process: ChildProcess, line: str) -> None:
    progress(f"{process.name} | {line}")


def _outcome(request: RunRequest, process: ChildProcess) -> IntervalOutcome:
    """:raises KeyboardInterrupt: somebody cancelled the run."""
    match process.end:
        case Done(outcome):
            return IntervalOutcome(request.interval, request.run_id, outcome)
        case Failed(error):
            return IntervalOutcome(request.interval, request.run_id, failure=str(error))
        case None:
            lost = ProcessLost(process.name, process.exit_code)
            return IntervalOutcome(request.interval, request.run_id, failure=str(lost))
        case _:
            raise KeyboardInterrupt


def _cancel(processes: list[ChildProcess], progress: Progress) -> None:
    """Cancel what is under way, and hear it out."""
    for process in processes:
        process.interrupt()
    for process in processes:
        while process.hear(partial(_tell, progress, process)):
            pass
