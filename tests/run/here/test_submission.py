"""`launcher: submit`: a driver outlives whoever submitted it, is found again, and none is there twice."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.run.here.paper_task import task_of

from stagehold.errors import ProcessLost, ProcessTerminated, SourceMissing
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import RunState
from stagehold.plan.restart.replay import TRIES_TO_BEGIN
from stagehold.run.equipment.timings import Lap
from stagehold.run.here import submission
from stagehold.run.here.driver import KEPT_SECONDS, DriverFolder
from stagehold.run.here.process_end import Done, End, Failed
from stagehold.run.here.submission import application_settings, region_runner, submit_region
from stagehold.run.journal import journal
from stagehold.run.planning.task import RegionOutcome
from stagehold.run.stopping.stopping import Sigterm
from stagehold.settings import Settings

OUTCOME = RegionOutcome(reused=1, computed=2, waves=1, seconds=0.5)
TASK = task_of("submit", executor_memory="4g", executor_cores=2, instances=3)
# Stands for the driver: it has its lock and its log, and does what the test says.
DRIVER = """
import os, pathlib, pickle, signal, sys, time
folder = pathlib.Path(sys.argv[-1])
(folder.parent / "started").open("a").write(f"{os.getpid()}\\n")
def end(): os.replace(folder.parent / "its-end", folder / "end")
print("said", flush=True)
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=str(tmp_path / "home"), spark_conf=json.dumps({"spark.memory.fraction": "0.7"}))


@pytest.fixture
def folder(settings: Settings) -> DriverFolder:
    return DriverFolder.of(TASK, settings)


@pytest.fixture
def drivers(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, End | None], None]:
    """Has drivers run a script, and end as they are told."""
    import pickle

    (settings.home_path / "drivers").mkdir(parents=True)

    def replaced(script: str, end: End | None = None) -> None:
        python = tmp_path / "python"
        (tmp_path / "driver.py").write_text(DRIVER + script)
        python.write_text(f'#!/bin/sh\nexec {sys.executable} {tmp_path}/driver.py "$@"\n')
        python.chmod(0o755)
        (settings.home_path / "drivers" / "its-end").write_bytes(pickle.dumps(end))
        monkeypatch.setattr(submission.sys, "executable", str(python))

    return replaced


def started(settings: Settings) -> list[int]:
    return [int(pid) for pid in (settings.home_path / "drivers" / "started").read_text().split()]


def test_what_computes_a_region_is_what_its_pipeline_says():
    assert region_runner(TASK.pipeline) is submit_region
    assert region_runner(task_of("server").pipeline) is not submit_region


def test_an_application_has_what_its_pipeline_gives_it_and_a_folder_and_port_of_its_own(settings, folder):
    own = application_settings(TASK, settings, folder)
    assert json.loads(own.spark_conf) == {
        "spark.app.name": "stagehold paper one of r1",
        "spark.memory.fraction": "0.7",
        "spark.executor.memory": "4g",
        "spark.executor.cores": "2",
        "spark.executor.instances": "3",
        "spark.cores.max": "6",
    }
    assert (own.spark_cores, own.spark_folder) == (6, str(folder.spark))
    assert own.spark_port != settings.spark_port
    assert own.lake_uri == settings.lake_uri


def test_a_driver_gives_its_outcome_and_its_log_and_leaves_nothing(settings, folder, drivers):
    drivers("print('and done', flush=True); end()", Done(OUTCOME, {Lap.END: 0.1}))
    said: list[str] = []
    assert submit_region(TASK, settings, said.append) == OUTCOME
    assert said == ["said", "and done"]
    assert not folder.path.exists()


def test_a_failure_of_the_driver_is_raised_and_its_log_is_kept_for_a_week(settings, folder, drivers):
    drivers("end()", Failed(SourceMissing("one", "x/*.parquet")))
    with pytest.raises(SourceMissing):
        submit_region(TASK, settings, print)
    assert folder.log.read_text() == "said\n"
    other = DriverFolder(folder.path.with_name("other"))
    ended = folder.path.with_name("ended") / "spark"
    ended.mkdir(parents=True)
    other.forget_others()
    assert folder.log.exists()
    assert not ended.parent.exists()
    os.utime(folder.path, (0, folder.path.stat().st_mtime - KEPT_SECONDS - 60))
    other.forget_others()
    assert not folder.path.exists()


def test_a_driver_that_is_at_work_is_stayed_with_and_what_it_left_is_planned_anew(settings, folder, drivers):
    drivers("end()", Done(OUTCOME, {}))
    said: list[str] = []
    with Ledger.open(settings.ledger_url) as ledger:
        ledger.runs.start(journal.run_of(TASK.request, "airflow"))
    folder.take().close()  # makes the folder
    lock = folder.take()
    folder.log.write_text("what it says\nhalf a li")

    def tell(line: str) -> None:
        said.append(line)
        if line == "what it says":  # it ends, well, behind its last word
            folder.log.write_text("what it says\nhalf a line\n")
            folder.keep(Done(RegionOutcome(0, 9, 9, 9.0), {}))
            lock.close()

    assert submit_region(TASK, settings, tell) == OUTCOME
    assert "reconciling: the driver of an earlier try is still at work" in said[0]
    assert said[1:] == ["what it says", "half a line", "said"]
    assert len(started(settings)) == 1
    with Ledger.open(settings.ledger_url) as ledger:
        assert [event.kind for event in ledger.events.of_run("r1")] == ["reconciling"]


def test_drivers_that_die_before_they_begin_are_followed_by_a_few_others_and_no_more(settings, drivers):
    drivers("os.kill(os.getpid(), signal.SIGKILL)")
    said: list[str] = []
    with pytest.raises(ProcessLost, match="signal 9"):
        submit_region(TASK, settings, said.append)
    assert len(started(settings)) == TRIES_TO_BEGIN
    assert "Another driver goes on in 0.0 s" in said[1]


def test_a_sigterm_that_nobody_asked_for_leaves_the_driver_at_work(settings, folder, drivers):
    drivers("time.sleep(60)")

    def tell(line: str) -> None:
        if line == "said":
            raise Sigterm(lambda: None)

    with pytest.raises(ProcessTerminated):
        submit_region(TASK, settings, tell)
    assert folder.at_work
    os.kill(started(settings)[0], signal.SIGKILL)


def test_an_interrupt_has_the_driver_cancel_the_run(settings, folder, drivers):
    """The driver of this test has no watch: it ends when the test sees that it was asked."""
    drivers("time.sleep(2); end()", Done(OUTCOME, {}))
    with Ledger.open(settings.ledger_url) as ledger:
        ledger.runs.start(journal.run_of(TASK.request, "airflow"))

    def tell(line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        submit_region(TASK, settings, tell)
    assert not folder.at_work
    with Ledger.open(settings.ledger_url) as ledger:
        run = ledger.runs.get("r1")
    assert (run.state, run.cancel_asked_at is not None) == (RunState.CANCELLING, True)


def test_secrets_that_only_the_submitter_finds_are_in_the_drivers_environment(settings, drivers, tmp_path):
    from dataclasses import replace

    drivers("print(os.environ.get('STAGEHOLD_SECRET_API_TOKEN')); end()", Done(OUTCOME, {}))
    place = (lambda name: f"the vault's {name}", {"api_token": "of the vault"}.get)
    said: list[str] = []
    submit_region(replace(TASK, secret_places=(place,)), settings, said.append)
    assert said == ["said", "of the vault"]
