"""A run that is suspended ends behind its wave and goes on from there; Spark alone is not real."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from tests.made_records import savepoint_request
from tests.run.checkpoints.paper_run import LEFT, PARTITIONS, RIGHT, RUN, PaperRun
from typer.testing import CliRunner

from stagehold.cli.main import app
from stagehold.errors import RunNotUnderWay, RunSuspended
from stagehold.model.records import AttemptState, RunState
from stagehold.model.states import RunEvent
from stagehold.run.checkpoints.savepoint_creation import create_savepoint
from stagehold.run.stopping.stopping import await_stop, suspend_run

pytestmark = pytest.mark.slow


class Paused:
    """A pace that stands still in a wave until the test lets it go on."""

    def __init__(self, wave: int) -> None:
        self.wave, self.there, self.go_on = wave, Event(), Event()

    def __call__(self, stage: str, wave: int) -> None:
        if wave == self.wave:
            self.there.set()
            assert self.go_on.wait(30)


def state_of(run: PaperRun) -> RunState:
    with run.ledger() as ledger:
        return ledger.runs.get(RUN).state


def suspended_in_wave(run: PaperRun, wave: int) -> None:
    """Suspend it while that wave is computed, and see the attempt end behind it."""
    pace = Paused(wave)
    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(run.work, LEFT, pace)
        assert pace.there.wait(30)
        with run.ledger() as ledger:
            suspend_run(RUN, ledger)
        assert state_of(run) is RunState.SUSPENDED
        pace.go_on.set()
        with pytest.raises(RunSuspended, match=r"Run r was suspended\. What is consumable is kept"):
            work.result(30)


def resumed(run: PaperRun, stage: str = LEFT) -> tuple[int, int]:
    with run.ledger() as ledger:
        ledger.runs.begin_life(RUN)
    outcome = run.work(stage)
    return outcome.reused, outcome.computed


@pytest.mark.parametrize("wave", [1, 2, 3])
def test_it_ends_behind_its_wave_and_goes_on_from_there(wave, tmp_path):
    run = PaperRun.make(tmp_path, (LEFT,))
    suspended_in_wave(run, wave)
    (attempt,) = run.attempts
    assert (attempt.state, attempt.failure) == (AttemptState.CANCELED, "suspended")
    assert state_of(run) is RunState.SUSPENDED
    assert resumed(run) == (2 * wave, PARTITIONS - 2 * wave)
    assert state_of(run) is RunState.FINISHED


@pytest.mark.parametrize(("launcher", "again"), [("cli", False), ("airflow", False), ("airflow", True)])
def test_nothing_begins_until_somebody_resumes_it(launcher, again, tmp_path):
    run = PaperRun.make(tmp_path)
    suspended_in_wave(run, 2)
    with pytest.raises(RunSuspended):
        run.work(RIGHT, launcher=launcher, again=again)
    assert [attempt.state for attempt in run.attempts] == [AttemptState.CANCELED, AttemptState.FAILED]
    assert resumed(run, RIGHT) == (0, PARTITIONS)


def test_only_the_savepoint_of_this_life_is_told(tmp_path):
    """The run was stopped with one, went on, and is suspended without one."""
    run = PaperRun.make(tmp_path, (LEFT,))
    with run.ledger() as ledger:
        with pytest.raises(ZeroDivisionError):
            run.work(LEFT, lambda _, wave: 1 // (2 - wave))
        place = run.workplace(ledger)
        ledger.runs.begin_life(RUN)
        ledger.runs.apply(RUN, RunEvent.START)
        create_savepoint(savepoint_request("mine", RUN, stop=True), run.pipeline, place)
    with pytest.raises(RunSuspended) as stopped:
        run.work(LEFT)
    assert stopped.value.savepoint == "mine"
    with run.ledger() as ledger:
        ledger.runs.begin_life(RUN)
    suspended_in_wave(run, 2)
    with pytest.raises(RunSuspended) as stopped:
        run.work(LEFT)
    assert stopped.value.savepoint is None


def test_whoever_waits_is_told_once_of_who_is_at_work(tmp_path):
    run, told = PaperRun.make(tmp_path, (LEFT,)), []
    pace = Paused(2)
    with ThreadPoolExecutor(1) as pool, run.ledger() as ledger:
        work = pool.submit(run.work, LEFT, pace)
        assert pace.there.wait(30)
        suspend_run(RUN, ledger)
        looks = iter(range(3))

        def look_again(_: float) -> None:
            if next(looks) == 2:
                pace.go_on.set()
                assert work.exception(30)

        after = await_stop(RUN, ledger, lambda attempt: told.append(attempt.subject), look_again)
    assert (told, after.state) == ([LEFT], RunState.SUSPENDED)


@pytest.mark.parametrize("ended", [RunState.FINISHED, RunState.SUSPENDED])
def test_a_run_that_goes_on_no_more_cannot_be_suspended(ended, tmp_path):
    run = PaperRun.make(tmp_path, (LEFT,))
    run.work(LEFT)
    with run.ledger() as ledger:
        if ended is RunState.SUSPENDED:
            ledger.runs.begin_life(RUN)
            suspend_run(RUN, ledger)
        with pytest.raises(RunNotUnderWay, match=f"Run r is {ended}, so there is nothing to stop"):
            suspend_run(RUN, ledger)


def test_the_commands_say_what_became_of_the_run(tmp_path, monkeypatch):
    run = PaperRun.make(tmp_path, (LEFT,))
    monkeypatch.setenv("STAGEHOLD_HOME", run.settings.home)
    with run.ledger() as ledger:
        suspended_in_wave(run, 2)
        refused = CliRunner().invoke(app, ["suspend", RUN])
        assert (refused.exit_code, "Run r is suspended" in refused.stderr) == (1, True)
        ledger.runs.begin_life(RUN)
        told = CliRunner().invoke(app, ["suspend", RUN])
        assert told.stdout == "r is suspended. What is consumable is kept; `stagehold resume r` goes on from there.\n"
        ledger.runs.begin_life(RUN)
        told = CliRunner().invoke(app, ["cancel", RUN, "--json"])
        assert json.loads(told.stdout)["run"]["state"] == "canceled"
        ledger.runs.begin_life(RUN)
        assert ledger.runs.get(RUN).cancel_asked_at is None
