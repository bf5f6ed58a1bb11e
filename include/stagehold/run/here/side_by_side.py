"""Attempts side by side: each in a process of its own, begun when the pipeline's scheduling strategy says so.

A region that fails is run again as the restart strategy says, while the others go on. After a failure that allows no
restart nothing else begins; what is under way goes on to its end, as its work is kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from multiprocessing.connection import wait

from stagehold.chronicle.chronicle import open_ledger
from stagehold.errors import LedgerUnavailable, ProcessLost, UnknownName
from stagehold.model.records import AttemptState
from stagehold.model.states import RunEvent
from stagehold.plan.restart.replay import TRIES_TO_BEGIN, first_delay
from stagehold.plan.split.task_graph import task_topology
from stagehold.run.equipment.timings import TIMINGS
from stagehold.run.equipment.workplace import Progress
from stagehold.run.here.child_process import ChildProcess, attempts
from stagehold.run.here.process_end import Done, Failed
from stagehold.run.here.submission import needs_server
from stagehold.run.journal.endings import Restarts
from stagehold.run.journal.journal import verdict_of
from stagehold.run.planning.task import RegionOutcome, RegionTask
from stagehold.run.stopping.stopping import end_run
from stagehold.settings import Settings
from stagehold.spark.server.server import start_server
from stagehold.spec.pipeline import Pipeline
from stagehold.spec.settings.run_settings import ScheduleMode
from stagehold.topology.partition_regions import partition_regions
from stagehold.topology.scheduling import Deployments, SchedulingStrategy, scheduling_strategy


def run_side_by_side(
    tasks: Sequence[RegionTask], settings: Settings, progress: Progress, parallel: int
) -> list[RegionOutcome]:
    """Run the tasks of a pipeline, ``parallel`` of them at a time; lines of progress say whose they are.

    :raises KeyboardInterrupt: after every process has cancelled its attempt.
    :raises Exception: of the first task that may not restart, when all that was under way has ended.
    """
    pipeline = tasks[0].pipeline
    eager = pipeline.schedule_mode is ScheduleMode.EAGER and len(tasks) <= parallel

    def begin(task: RegionTask) -> ChildProcess:
        return ChildProcess(task.subject, partial(attempts, task, settings, eager))

    return _SideBySide(tasks, _strategy(pipeline, parallel, eager=eager), begin, settings, progress).run()


def _strategy(pipeline: Pipeline, parallel: int, *, eager: bool) -> SchedulingStrategy:
    """An eager pipeline with too few processes has its tasks follow each other."""
    mode = ScheduleMode.EAGER if eager else ScheduleMode.LAZY_FROM_SOURCES
    return scheduling_strategy(mode, partition_regions(task_topology(pipeline)), slots=parallel)


class _SideBySide:
    def __init__(
        self,
        tasks: Sequence[RegionTask],
        strategy: SchedulingStrategy,
        begin: Callable[[RegionTask], ChildProcess],
        settings: Settings,
        progress: Progress,
    ) -> None:
        self._tasks = {task.subject: task for task in tasks}
        self._strategy, self._begin, self._settings, self._progress = strategy, begin, settings, progress
        self._width = max(map(len, self._tasks))
        self._restarts = {name: Restarts(task, partial(self._tell, name)) for name, task in self._tasks.items()}
        self._silent = dict.fromkeys(self._tasks, 0)  # processes in a row that died before they said a word
        self._running: dict[object, ChildProcess] = {}  # by what they say
        self._due: dict[str, float] = {}  # when a task begins again
        self._done: dict[str, RegionOutcome] = {}
        self._failure: Exception | None = None

    def run(self) -> list[RegionOutcome]:
        try:
            self._deploy(self._strategy.start_scheduling())
            while self._running or self._due:
                self._listen()
                self._begin_again()
        except KeyboardInterrupt:
            self._cancel()
            raise
        finally:
            for process in self._running.values():
                process.kill()
        if self._failure is not None:
            if not _is_overtaken(self._failure):
                self._end_run()
            raise self._failure
        return [self._done[name] for name in self._tasks]

    def _end_run(self) -> None:
        """An attempt that began when another one had just ended the run counts as its resume, which nobody goes on
        with.
        """
        run_id = next(iter(self._tasks.values())).request.run_id
        with suppress(LedgerUnavailable, UnknownName), open_ledger(self._settings) as ledger:
            end_run(run_id, RunEvent.FAIL, ledger)

    def _tell(self, name: str, line: str) -> None:
        self._progress(f"{name:<{self._width}} | {line}")

    def _deploy(self, deployments: Deployments) -> None:
        for (name,) in deployments if self._failure is None else ():
            process = self._begin(self._tasks[name])
            self._running[process.said] = process

    def _listen(self) -> None:
        """Hear what is said until the next task is due; at most one word of each."""
        soonest = min(self._due.values(), default=None)
        timeout = None if soonest is None else max(0.0, soonest - time.monotonic())
        for said in wait([process.said for process in self._running.values()], timeout):
            process = self._running[said]
            if not process.hear(partial(self._tell, process.name)):
                del self._running[said]
                self._end(process)

    def _end(self, process: ChildProcess) -> None:
        name = process.name
        match process.end:
            case Done(outcome, seconds):
                self._done[name] = outcome
                TIMINGS.add(seconds)
                self._deploy(self._strategy.on_execution_state_change(name, AttemptState.FINISHED))
            case Failed(error):
                self._after_failure(name, error, self._restarts[name].pause)
            case None:
                self._silent[name] = 0 if process.spoke else self._silent[name] + 1
                lost = ProcessLost(name, process.exit_code)
                self._after_failure(name, lost, partial(self._pause_after_loss, name))
            case _:
                raise KeyboardInterrupt

    def _after_failure(self, name: str, error: Exception, pause: Callable[[Exception], float]) -> None:
        try:
            if self._failure is None:
                self._due[name] = time.monotonic() + pause(error)
        except Exception as failure:  # noqa: BLE001 - raised when the others have ended
            self._failure = failure
            self._due.clear()
            if self._running:
                others = ", ".join(process.name for process in self._running.values())
                self._tell(name, f"ends the run, so nothing else begins; goes on to its end: {others}")
        self._deploy(self._strategy.on_execution_state_change(name, AttemptState.FAILED))

    def _pause_after_loss(self, name: str, lost: Exception) -> float:
        """The next attempt finds the lost one on record, and asks the restart strategy about it."""
        if self._silent[name] >= TRIES_TO_BEGIN:
            raise lost
        task = self._tasks[name] = replace(self._tasks[name], again=True)
        pause = first_delay(task.pipeline.restart).total_seconds()
        self._tell(name, f"{lost} Another process goes on in {pause:.1f} s.")
        return pause

    def _begin_again(self) -> None:
        for name in [name for name, due in self._due.items() if due <= time.monotonic()]:
            del self._due[name]
            if needs_server(self._tasks[name].pipeline, self._settings):
                start_server(self._settings)
            self._deploy(self._strategy.restart_tasks([name]))

    def _cancel(self) -> None:
        """Cancel what is under way, and hear it out. Who interrupts once more, interrupts them once more."""
        while self._running:
            try:
                for process in self._running.values():
                    process.interrupt()
                self._hear_out()
            except KeyboardInterrupt:
                continue

    def _hear_out(self) -> None:
        while self._running:
            for said in wait([process.said for process in self._running.values()]):
                process = self._running[said]
                if not process.hear(partial(self._tell, process.name)):
                    del self._running[said]


def _is_overtaken(failure: Exception) -> bool:
    """Whether a newer attempt goes on with the run."""
    verdict = verdict_of(failure)
    return verdict is not None and verdict.decision is None
