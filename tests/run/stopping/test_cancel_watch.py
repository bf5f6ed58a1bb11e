"""What `stagehold cancel` asks for reaches the process that drives the run, in processes of their own."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.ledger.samples import attempt, run

from stagehold.ledger import Ledger
from stagehold.model.records import AttemptState, RunState
from stagehold.model.states import UNTIL_RUNNING, RunEvent
from stagehold.run.stopping.stopping import cancel_run_here
from stagehold.settings import PROJECT, Settings

pytestmark = pytest.mark.slow

RUN = run("sales/r")
DRIVER = """\
import sys, threading, time
from datetime import timedelta
from stagehold.run.stopping.cancel_watch import cancel_watch
from stagehold.settings import load_settings
from stagehold.spec.settings.run_settings import CancellationSettings

interrupts = 0
cancellation = CancellationSettings(interval=timedelta(seconds=0.3), timeout=timedelta(seconds={timeout}))
with cancel_watch("sales/r", cancellation, load_settings()):
    print("works", flush=True)
    while interrupts < {ignores} + 1:
        try:
            time.sleep({sleeps})
            break
        except KeyboardInterrupt:
            interrupts += 1
            print("interrupted", flush=True)
print("ended after", interrupts, flush=True)
"""


@pytest.fixture
def home(tmp_path, monkeypatch) -> Settings:
    monkeypatch.setenv("STAGEHOLD_HOME", str(tmp_path))
    return Settings(home=str(tmp_path))


@pytest.fixture
def ledger(home):
    with Ledger.open(home.ledger_url) as opened:
        opened.runs.start(RUN)
        yield opened


def driver(**facts: float) -> subprocess.Popen[str]:
    """A process in a group of its own, as a shell gives it to a command, that works for the run."""
    code = DRIVER.format(**{"timeout": 0, "ignores": 0, "sleeps": 60, **facts})
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=PROJECT, process_group=0
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "works\n"
    return process


def test_it_is_interrupted_once(ledger):
    works = driver()
    cancel_run_here(RUN.run_id, ledger)
    assert works.communicate(timeout=30)[0] == "interrupted\nended after 1\n"


def test_it_is_interrupted_again_while_it_does_not_react(ledger):
    works = driver(ignores=2)
    cancel_run_here(RUN.run_id, ledger)
    assert works.communicate(timeout=30)[0] == "interrupted\n" * 3 + "ended after 3\n"


def test_it_is_killed_after_the_time_out_and_the_reason_recorded_with_its_place(ledger):
    """Its lease lives, as that of a process that hangs does: a thread renews it."""
    working = attempt(1, run_id=RUN.run_id)
    ledger.attempts.create(working, *UNTIL_RUNNING)
    lease = f"{working.pipeline}/{working.interval}/{working.region}"
    ledger.leases.acquire(lease, "it", 60)
    works = driver(ignores=1_000_000, timeout=1)
    cancel_run_here(RUN.run_id, ledger)
    assert ledger.runs.get(RUN.run_id).state is RunState.CANCELLING
    works.communicate(timeout=30)
    (ended,) = ledger.attempts.of_run(RUN.run_id)
    assert (works.returncode, ended.state) == (-9, AttemptState.CANCELED)
    reason = "it had not reacted after 1 s (cancellation.timeout), so its process was killed"
    assert ended.failure == f"cancelled; {reason}"
    assert 'File "<string>", line ' in ledger.events.traces(RUN.run_id)[working.attempt_id]
    assert ledger.runs.get(RUN.run_id).state is RunState.CANCELED


def test_a_run_that_cancels_itself_is_not_interrupted(ledger):
    """As one that Ctrl-C was pressed for: it says so in the ledger while it cleans up."""
    works = driver(sleeps=3)
    ledger.runs.apply(RUN.run_id, RunEvent.CANCEL)
    assert works.communicate(timeout=30)[0] == "ended after 0\n"


def test_what_was_asked_of_an_earlier_life_is_no_concern_of_this_one(ledger):
    cancel_run_here(RUN.run_id, ledger)
    ledger.runs.begin_life(RUN.run_id)
    assert driver(sleeps=3).communicate(timeout=30)[0] == "ended after 0\n"


def test_nobody_is_at_work_so_it_has_ended_at_once(ledger):
    cancel_run_here(RUN.run_id, ledger)
    assert ledger.runs.get(RUN.run_id).state is RunState.CANCELED
