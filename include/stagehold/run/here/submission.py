"""Has a driver of its own compute a region (`launcher: submit`), and stays with it to its end.

The driver lives on when this process is killed or told to end. The next try finds it again, says so, and stays with it
in its turn, in place of starting another one beside it. A driver on another machine is not seen from here: one that is
started waits for its lease, and then finds what it has made.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import IO

from stagehold.chronicle.chronicle import open_ledger
from stagehold.errors import LedgerUnavailable, ProcessLost, ProcessTerminated, UnknownName
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Attempt
from stagehold.plan.restart.replay import TRIES_TO_BEGIN, first_delay
from stagehold.run.equipment.timings import TIMINGS
from stagehold.run.equipment.workplace import Progress
from stagehold.run.here.driver import DriverFolder
from stagehold.run.here.process_end import Done, Failed, Interrupted
from stagehold.run.here.region import run_region
from stagehold.run.journal import journal
from stagehold.run.planning.task import RegionOutcome, RegionTask
from stagehold.run.stopping.stopping import sigterms_told_apart
from stagehold.secrets import masked
from stagehold.settings import SECRET_PREFIX, Settings
from stagehold.spark.ports import free_port
from stagehold.spark.processes import python_environment
from stagehold.spark.server.server_record import read_state
from stagehold.spec.pipeline import Pipeline
from stagehold.spec.settings.launch_settings import Launcher

POLL_SECONDS = 0.3
ASK_SECONDS = 1.0  # between two words to a driver that is to cancel its work
FOUND = "reconciling"  # the run's event that a driver was found again: Flink's word for a master that finds its tasks


def region_runner(pipeline: Pipeline) -> Callable[..., RegionOutcome]:
    """What computes a region of the pipeline."""
    return submit_region if pipeline.launcher is Launcher.SUBMIT else run_region


def needs_server(pipeline: Pipeline, settings: Settings) -> bool:
    """Whether what computes the pipeline is the server of this home."""
    return pipeline.launcher is Launcher.SERVER and not settings.spark_remote


def submit_region(
    task: RegionTask, settings: Settings, progress: Progress, waiting: Attempt | None = None
) -> RegionOutcome:
    """Do what `run_region` promises, in a driver with a Spark application of its own.

    A driver of an earlier try that is still at work is stayed with first: what fails there fails here, and what it has
    made is reused. A driver that is killed is followed by another one, which asks the restart strategy about it.
    """
    folder, idle = DriverFolder.of(task, settings), 0
    while True:
        with _cancelling(task, settings, folder, progress) as ledger:
            begun, found = _attempts(task, ledger), folder.at_work
            if found:
                _tell_found(task, ledger, folder, progress)
            driver = None if found else _start(task, settings, folder, waiting)
            _stay(folder, progress)
            idle = idle + 1 if _attempts(task, ledger) == begun else 0
        match folder.end():
            case Done(outcome, seconds) if not found:
                TIMINGS.add(seconds)
                shutil.rmtree(folder.path, ignore_errors=True)
                return outcome
            case Failed(error):
                raise error
            case Interrupted():
                raise KeyboardInterrupt
            case None:
                task = _after_loss(task, ProcessLost(task.subject, driver.wait() if driver else None), idle, progress)
        waiting = None


def _attempts(task: RegionTask, ledger: Ledger) -> int:
    return len(ledger.attempts.of_run(task.request.run_id))


def _after_loss(task: RegionTask, lost: ProcessLost, idle: int, progress: Progress) -> RegionTask:
    """The task for the next driver, which finds the lost attempt on record.

    :param idle: drivers in a row that died before they had begun an attempt.
    :raises ProcessLost: those are too many.
    """
    if idle >= TRIES_TO_BEGIN:
        raise lost
    pause = first_delay(task.pipeline.restart).total_seconds()
    progress(f"{task.subject}: {lost} Another driver goes on in {pause:.1f} s.")
    time.sleep(pause)
    return replace(task, again=True)


def _tell_found(task: RegionTask, ledger: Ledger, folder: DriverFolder, progress: Progress) -> None:
    text = f"the driver of an earlier try is still at work, and is waited for; its log is {folder.log}"
    progress(f"{task.subject}: {FOUND}: {text}")
    journal.tell(task, ledger, FOUND, text)


def _start(
    task: RegionTask, settings: Settings, folder: DriverFolder, waiting: Attempt | None
) -> subprocess.Popen[bytes] | None:
    """A new driver; None if somebody was quicker to start one."""
    folder.forget_others()
    with suppress(BlockingIOError), folder.take() as lock, folder.log.open("wb") as log:
        own = application_settings(task, settings, folder)
        folder.give((_for_driver(task), own, waiting))
        return subprocess.Popen(
            [sys.executable, "-m", "stagehold.run.here.driver", str(folder.path)],
            env={**python_environment(own), **_secrets(task)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(lock.fileno(),),
        )
    return None


def _for_driver(task: RegionTask) -> RegionTask:
    """The task as the driver is given it: an owner of its own, whose lease no other driver takes over, and none of what
    only this process can ask.
    """
    owner = f"{task.owner}/driver-{os.urandom(4).hex()}"
    return replace(task, owner=owner, redact=masked, secret_places=())


def _secrets(task: RegionTask) -> Mapping[str, str]:
    """The secrets that this process finds, where the driver looks first; it says which are missing."""
    found = {}
    for name in task.pipeline.secrets:
        for _, read in task.secret_places:
            with suppress(PermissionError):
                if (value := read(name)) is not None:
                    found[f"{SECRET_PREFIX}{name.upper()}"] = value
                    break
    return found


def application_settings(task: RegionTask, settings: Settings, folder: DriverFolder) -> Settings:
    """The settings of the driver's own application. One that was left warm is found by its port."""
    resources = task.pipeline.resources_of(task.region.stages)
    name = f"stagehold {task.pipeline.name} {task.subject} of {task.request.run_id}"
    conf = {"spark.app.name": name, **json.loads(settings.spark_conf or "{}"), **resources.settings}
    own = replace(
        settings,
        spark_remote="",
        spark_token_file="",
        spark_folder=str(folder.spark),
        spark_cores=resources.cores or settings.spark_cores,
        spark_conf=json.dumps(conf),
    )
    left = read_state(own)
    return replace(own, spark_port=left.port if left and left.process.alive else free_port())


def _stay(folder: DriverFolder, progress: Progress) -> None:
    """Pass on what the driver says until it has ended."""
    with folder.log.open(errors="replace") as log:
        while True:
            at_work = folder.at_work
            for line in _lines(log, whole=at_work):
                progress(line)
            if not at_work:
                return
            time.sleep(POLL_SECONDS)


def _lines(log: IO[str], *, whole: bool) -> Iterator[str]:
    """What the log has since it was read last; without a line that is being written, if only ``whole`` ones count."""
    while True:
        place, line = log.tell(), log.readline()
        if not line or (whole and not line.endswith("\n")):
            log.seek(place)
            return
        yield line.rstrip("\n")


@contextmanager
def _cancelling(task: RegionTask, settings: Settings, folder: DriverFolder, progress: Progress) -> Iterator[Ledger]:
    """Have the driver cancel its work when this process is interrupted because somebody wants that, and wait until it
    has. If nobody wants it, the driver goes on, and so does the next try with it.
    """
    try:
        with open_ledger(settings) as ledger, sigterms_told_apart(task, ledger):
            yield ledger
    except ProcessTerminated:
        progress(f"{task.subject}: its driver goes on, and the next try stays with it")
        raise
    except KeyboardInterrupt:
        while folder.at_work:
            with suppress(UnknownName, LedgerUnavailable), open_ledger(settings) as ledger:
                ledger.runs.ask_to_cancel(task.request.run_id)
            time.sleep(ASK_SECONDS)
        raise
