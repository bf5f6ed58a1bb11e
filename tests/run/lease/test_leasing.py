"""A region that somebody else works on, against a real ledger and without Spark: waited for, given up, cancelled."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.run.attempt.places import workplace

from stagehold.errors import LeaseHeld, LeaseNotFreed, SourceMissing
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import AttemptState, FailureClass, RunState
from stagehold.model.states import AttemptEvent
from stagehold.plan.split.regions import stage_regions
from stagehold.run.here.region import run_region, work_on
from stagehold.run.journal import journal
from stagehold.run.journal.journal import verdict_of
from stagehold.run.lease.leasing import LeaseWait
from stagehold.run.planning.planning import RunRequest
from stagehold.run.planning.task import RegionTask
from stagehold.settings import Settings
from stagehold.spec.loading.loader import build_pipeline

OTHER = "cli/the other run|another-host|42|7"


@pytest.fixture
def settings(tmp_path, ledger_file):
    (tmp_path / "work.py").write_text("def first(ctx, source): ...\n")
    return Settings(
        home=str(tmp_path / "home"),
        ledger=f"sqlite:///{ledger_file}",
        project=str(tmp_path),
        suites=str(tmp_path),
        lease_wait_seconds=60,
    )


@pytest.fixture
def ledger(settings):
    with Ledger.open(settings.ledger_url) as opened:
        yield opened


@pytest.fixture
def task(settings, tmp_path):
    stages = {"first": {"job": "work:first", "source": {"kind": "parquet", "path": "x", "splits": 4}}}
    pipeline = build_pipeline({"pipeline": "p", "stages": stages}, project=tmp_path, suites=tmp_path)
    return RegionTask(RunRequest(pipeline, "r1", "day", {}), stage_regions(pipeline)[0], "me", "cli")


@pytest.fixture
def held(settings, ledger, task):
    """The lease, in the hands of a run that has begun an attempt."""
    other = replace(task, request=replace(task.request, run_id="the other run"))
    lease = ledger.leases.take(task.lease_name, None, OTHER, 60, lambda holder: False)
    waiting = journal.create_attempt(other, ledger)
    journal.schedule_attempt(other, waiting, ledger, settings)
    journal.begin_attempt(other, waiting, lease.epoch, ledger)
    return lease


def end(ledger, lease):
    for attempt in ledger.attempts.of_run("the other run"):
        ledger.attempts.apply(attempt.attempt_id, AttemptEvent.REPORTED_FINISHED)
    ledger.leases.release(lease)


def test_what_somebody_works_on_is_waited_for_and_then_attempted(settings, ledger, task, held):
    said, ended = [], []

    def attempt_it():
        with pytest.raises(SourceMissing) as raised:  # what an attempt of this task ends with
            run_region(task, settings, said.append)
        ended.append(raised.value)

    waiting = threading.Thread(target=attempt_it, daemon=True)
    waiting.start()
    while not ledger.events.of_run("r1"):
        assert waiting.is_alive()
    (attempt,) = ledger.attempts.of_run("r1")
    assert (attempt.state, attempt.began) == (AttemptState.SCHEDULED, False)
    end(ledger, held)
    waiting.join(10)
    assert len(ended) == 1
    event, *_ = ledger.events.of_run("r1")
    assert event.kind == "waiting"
    assert event.text.startswith("waits for cli/the other run (process 42 on another-host), who works on first, since ")
    assert [line for line in said if " waits for " in line] == said[:1]
    (attempt,) = ledger.attempts.of_run("r1")
    assert attempt.epoch == held.epoch + 1


def test_the_wait_ends_at_its_limit_with_a_reason_that_is_recorded(settings, ledger, task, held):
    with pytest.raises(LeaseNotFreed) as raised:
        run_region(task, replace(settings, lease_wait_seconds=0), lambda line: None)
    assert verdict_of(raised.value).decision.restart is False
    (attempt,) = ledger.attempts.of_run("r1")
    assert (attempt.state, attempt.began) == (AttemptState.FAILED, False)
    assert (attempt.failure_class, attempt.failure_rule) == (FailureClass.NON_RECOVERABLE, "lease_wait")
    assert "cli/the other run (process 42 on another-host) since 20" in attempt.failure
    assert ledger.runs.get("r1").state is RunState.FAILED
    assert [event.kind for event in ledger.events.of_run("r1")] == ["failed"]
    (newest,) = ledger.attempts.newest("p", "day", "first")
    assert newest.run_id == "the other run"  # whoever fences and buries never sees the one that did not begin


def test_a_cancel_while_waiting_is_recorded(settings, ledger, task, held):
    def interrupted(seconds):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work_on(task, workplace(ledger, settings, lambda line: None, interrupted))
    (attempt,) = ledger.attempts.of_run("r1")
    assert (attempt.state, ledger.runs.get("r1").state) == (AttemptState.CANCELED, RunState.CANCELED)


def test_it_is_said_less_and_less_often_who_is_waited_for(settings, ledger, task):
    now = [0.0]
    journal.create_attempt(task, ledger)
    said = []
    patient = replace(settings, lease_wait_seconds=3600)
    sleep = lambda seconds: now.__setitem__(0, now[0] + seconds)  # noqa: E731
    wait = LeaseWait(task, workplace(ledger, patient, lambda line: said.append(now[0]), sleep), lambda: now[0])

    def wait_in_vain():
        while True:
            wait.pause(LeaseHeld("p/day/first", OTHER, 5))

    with pytest.raises(LeaseNotFreed):
        wait_in_vain()
    assert len(said) == 8
    assert now[0] == pytest.approx(3600)


def test_a_failure_before_the_attempt_is_recorded_and_has_another_try(settings, ledger, task, held):
    def lost(seconds):
        raise ConnectionResetError("x")

    for number in range(1, 6):
        with pytest.raises(ConnectionResetError) as raised:
            work_on(task, workplace(ledger, settings, lambda line: None, lost))
        assert verdict_of(raised.value).decision.restart is (number < 5)
        assert ledger.runs.get("r1").state is (RunState.RESTARTING if number < 5 else RunState.FAILED)
    assert {attempt.failure_rule for attempt in ledger.attempts.of_run("r1")} == {"connection"}
    assert ledger.attempts.of_run("r1")[0].started_at <= datetime.now(UTC)
