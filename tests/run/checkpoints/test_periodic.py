"""Checkpoints that are taken while a run goes on: who is asked, who answers, and what follows when one fails."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

import pytest
from tests.run.checkpoints.paper_run import INTERVAL, LEFT, PARTITIONS, PIPELINE, RIGHT, RUN, PaperRun

from stagehold.errors import CheckpointsFailed
from stagehold.model.checkpoint_records import Answer, CheckpointFailure, CheckpointState, CheckpointTrigger
from stagehold.model.records import AttemptState, RunState
from stagehold.run.checkpoints import coordination
from stagehold.run.faults import CheckpointPoint, FaultAction, inject
from stagehold.run.journal.journal import verdict_of

pytestmark = pytest.mark.slow

OFTEN = {"interval": "50ms", "retained": 100}


def periodic(run: PaperRun):
    return [record for record in run.records if record.trigger is CheckpointTrigger.PERIODIC]


def completed(run: PaperRun):
    return [checkpoint for checkpoint in periodic(run) if checkpoint.state is CheckpointState.COMPLETED]


def open_asks(run: PaperRun, stage: str = LEFT):
    in_progress = {record.number for record in run.records if record.state is CheckpointState.IN_PROGRESS}
    return [
        acknowledgement
        for acknowledgement in run.acknowledgements
        if acknowledgement.number in in_progress and acknowledgement.region == stage and acknowledgement.answer is None
    ]


def test_what_waves_recorded_is_in_the_checkpoints_that_are_taken_meanwhile(tmp_path):
    run = PaperRun.make(tmp_path, (LEFT,), **OFTEN)
    run.work()
    taken = completed(run)
    assert len(taken) >= 2
    assert [record.number for record in run.records] == list(range(1, len(run.records) + 1))
    assert (run.records[-1].trigger, run.records[-1].kept) == (CheckpointTrigger.END_OF_RUN, True)
    counts = [
        len(run.stored.read_checkpoint(checkpoint.number).stages[0].partitions)
        for checkpoint in (*taken, run.records[-1])
    ]
    assert counts == sorted(counts)
    asked = {acknowledgement.number for acknowledgement in run.acknowledgements}
    first = next(count for one, count in zip(taken, counts, strict=False) if one.number in asked)
    assert first >= 2, "an attempt acknowledges when its wave is recorded"
    assert counts[-1] == PARTITIONS
    assert {
        acknowledgement.answer
        for acknowledgement in run.acknowledgements
        if acknowledgement.number in {each.number for each in taken}
    } == {Answer.ACKNOWLEDGED}


def test_completion_is_told_to_attempts_that_acknowledged_and_to_the_runs_history(tmp_path):
    run = PaperRun.make(tmp_path, (LEFT,), **OFTEN)
    run.work()
    asked = {acknowledgement.number for acknowledgement in run.acknowledgements}
    first = next(checkpoint.number for checkpoint in completed(run) if checkpoint.number in asked)
    assert f"checkpoint {first} of run {RUN} is complete" in run.said
    assert f"{LEFT}: checkpoint {first} is complete" in run.said
    with run.ledger() as ledger:
        events = [(event.subject, event.text) for event in ledger.events.of_run(RUN) if event.kind == "checkpoint"]
    assert (f"checkpoint {first}", f"checkpoint {first} of run {RUN} is complete") in events


def test_without_an_interval_nobody_is_asked_and_the_end_leaves_one(tmp_path):
    run = PaperRun.make(tmp_path, (LEFT,))
    run.work()
    assert [(record.number, record.trigger) for record in run.records] == [(1, CheckpointTrigger.END_OF_RUN)]
    assert run.acknowledgements == ()


def test_older_ones_are_replaced_and_their_files_go(tmp_path):
    run = PaperRun.make(tmp_path, (LEFT,), interval="50ms")
    run.work()
    assert len(completed(run)) >= 2
    assert run.stored.numbers() == (run.records[-1].number,)
    assert len(run.stored.read_checkpoint(run.records[-1].number).stages[0].partitions) == PARTITIONS


# Failures


LATE = {"interval": "50ms", "timeout": "500ms"}


def slow_wave(stage: str, wave: int) -> None:
    time.sleep(1.3 if wave <= 2 else 0)


def test_a_wave_that_is_longer_than_the_timeout_fails_the_attempt_and_the_strategy_goes_on(tmp_path):
    run = PaperRun.make(tmp_path, (LEFT,), **LATE)
    with pytest.raises(CheckpointsFailed, match="raise checkpoint") as caught:
        run.work(pace=slow_wave)
    (late,) = [record for record in run.records if record.fails_run]
    assert (late.state, late.reason) == (CheckpointState.FAILED, CheckpointFailure.CHECKPOINT_EXPIRED)
    assert late.failure == f"not acknowledged within 500ms by {LEFT}"
    verdict = verdict_of(caught.value)
    assert (verdict.rule, verdict.decision.restart) == ("checkpoints", True)
    with run.ledger() as ledger:
        assert ledger.runs.get(RUN).state is RunState.RESTARTING
    outcome = run.work(pace=lambda stage, wave: None)
    assert outcome.reused >= 2, "the wave before the boundary is consumable"
    assert [attempt.state for attempt in run.attempts] == [AttemptState.FAILED, AttemptState.FINISHED]


def test_every_attempt_that_is_under_way_fails_when_the_run_does(tmp_path):
    run = PaperRun.make(tmp_path, **LATE)
    errors = []

    def work(stage):
        try:
            run.work(stage, pace=slow_wave)
        except CheckpointsFailed as error:
            errors.append(error)

    both = [threading.Thread(target=work, args=(stage,)) for stage in (LEFT, RIGHT)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert len(errors) == 2


@pytest.mark.parametrize("tolerable", [100, "unlimited"])
def test_as_many_may_fail_as_the_pipeline_tolerates(tmp_path, tolerable):
    run = PaperRun.make(tmp_path, (LEFT,), **LATE, tolerable_failures=tolerable)
    run.work(pace=slow_wave)
    late = [checkpoint for checkpoint in periodic(run) if checkpoint.reason is CheckpointFailure.CHECKPOINT_EXPIRED]
    assert len(late) >= 2
    assert not any(record.fails_run for record in run.records)
    assert run.records[-1].kept


def test_an_attempt_that_closes_declines_and_nobody_waits_for_it(tmp_path):
    run = PaperRun.make(tmp_path, (LEFT,), **OFTEN)

    def fail(stage, wave):
        if wave == 2:
            run.until(lambda: open_asks(run))
            raise RuntimeError("the function failed")

    with pytest.raises(RuntimeError):
        run.work(pace=fail)
    closing = CheckpointFailure.CHECKPOINT_DECLINED_TASK_CLOSING
    (declined,) = [
        acknowledgement for acknowledgement in run.acknowledgements if acknowledgement.answer is Answer.DECLINED
    ]
    assert declined.reason is closing
    (failed,) = [record for record in run.records if record.number == declined.number]
    assert (failed.reason, failed.fails_run) == (closing, False)
    assert failed.failure == f"{LEFT} declined: checkpoint declined task closing"


def test_a_lake_that_takes_no_checkpoint_fails_the_checkpoint_and_a_tolerant_run_goes_on(tmp_path):
    run = PaperRun.make(tmp_path, (LEFT,), **OFTEN, tolerable_failures="unlimited")
    place = Path(run.stored.uri)
    place.parent.mkdir(parents=True)

    place.write_text("a file is in the way")
    run.work()
    failed = [
        checkpoint for checkpoint in periodic(run) if checkpoint.reason is CheckpointFailure.FINALIZE_CHECKPOINT_FAILURE
    ]
    assert failed
    assert "cannot be used: [Errno 20] Not a directory" in str(failed[0].failure)
    assert run.attempts[-1].state is AttemptState.FINISHED


def test_a_listener_that_fails_harms_nothing(tmp_path, monkeypatch, caplog):
    def broken(record, workplace):
        raise RuntimeError("nobody listens")

    told = []
    monkeypatch.setattr(
        coordination.Coordination.__init__, "__defaults__", ((broken, lambda record, place: told.append(record)),)
    )
    run = PaperRun.make(tmp_path, (LEFT,), **OFTEN)
    with caplog.at_level(logging.WARNING):
        run.work()
    assert [one.number for one in told] == [checkpoint.number for checkpoint in periodic(run)]
    assert "was not told of checkpoint 1" in caplog.text


# Several regions


def test_one_region_that_has_not_acknowledged_holds_the_checkpoint_up(tmp_path):
    run = PaperRun.make(tmp_path, **OFTEN)
    go_on = threading.Event()

    def gated(stage, wave):
        if stage == LEFT and wave == 2:
            run.until(lambda: open_asks(run, LEFT))
            assert go_on.wait(30)
        time.sleep(0.05)

    left = threading.Thread(target=run.work, args=(LEFT, gated))
    left.start()
    run.until(lambda: open_asks(run, LEFT) and run.attempts)
    right = threading.Thread(target=run.work, args=(RIGHT, lambda stage, wave: time.sleep(0.1)))
    right.start()
    right.join(30)
    held = [record for record in run.records if record.state is CheckpointState.IN_PROGRESS]
    go_on.set()
    left.join(30)
    assert len(held) == 1
    (then,) = [record for record in run.records if record.number == held[0].number]
    assert then.state is CheckpointState.COMPLETED


def test_a_region_that_finishes_counts_at_once(tmp_path):
    run = PaperRun.make(tmp_path, **OFTEN)
    begun = threading.Event()

    def gated(stage, wave):
        if wave == 1:
            begun.set()
        time.sleep(0.05)

    left = threading.Thread(target=run.work, args=(LEFT, gated))
    left.start()
    assert begun.wait(30)
    run.work(RIGHT, pace=lambda stage, wave: time.sleep(0.5))
    left.join(30)
    asked = [
        {acknowledgement.region for acknowledgement in run.acknowledgements if acknowledgement.number == each.number}
        for each in completed(run)
    ]
    alone = [each.number for each, regions in zip(completed(run), asked, strict=True) if regions == {RIGHT}]
    assert len(run.stored.read_checkpoint(alone[-1]).stages[0].partitions) == PARTITIONS


# The end of a run


@pytest.mark.parametrize(("on_cancel", "kept"), [("retain", True), ("delete", False)])
def test_a_cancelled_run_leaves_its_checkpoints_if_its_author_wants_that(tmp_path, on_cancel, kept):
    run = PaperRun.make(tmp_path, (LEFT,), **OFTEN, on_cancel=on_cancel)

    def cancel(stage, wave):
        if wave == 4:
            assert completed(run)
            raise KeyboardInterrupt
        time.sleep(0.15)

    with pytest.raises(KeyboardInterrupt):
        run.work(pace=cancel)
    with run.ledger() as ledger:
        assert ledger.runs.get(RUN).state is RunState.CANCELED
    assert bool(run.stored.numbers()) is kept
    assert any(record.trigger is CheckpointTrigger.END_OF_RUN for record in run.records) is kept
    assert any(record.kept for record in run.records) is kept


# Who takes them


def test_an_error_of_who_takes_checkpoints_fails_no_attempt_and_the_next_ones_are_taken(tmp_path):
    run = PaperRun.make(tmp_path, (LEFT,), **OFTEN)
    inject(run.settings.home_path, CheckpointPoint.TRIGGERED, PIPELINE, 1, FaultAction.RAISE)
    run.work(pace=lambda stage, wave: time.sleep(0.5))
    assert run.records[0].reason is CheckpointFailure.CHECKPOINT_COORDINATOR_SUSPEND
    assert run.records[0].failure == "whoever took it died before its end"
    assert completed(run)
    assert [attempt.state for attempt in run.attempts] == [AttemptState.FINISHED]


def test_who_lost_the_lease_takes_no_more_checkpoints(tmp_path):
    run = PaperRun.make(tmp_path, (LEFT,), **OFTEN)
    name = f"{PIPELINE}/{INTERVAL}/{RUN}/coordinator"
    known = []

    def robbed(stage, wave):
        if wave == 2:
            with run.ledger() as ledger:
                ledger.leases.take(name, None, "somebody else", 3, lambda _: True)
                known.extend(ledger.checkpoints.of_run(RUN))
        time.sleep(0.3)

    run.work(pace=robbed)
    assert [attempt.state for attempt in run.attempts] == [AttemptState.FINISHED]
    *periodic_ones, last = run.records
    assert [one.number for one in periodic_ones] == [one.number for one in known], "the robber has taken none"
    assert last.trigger is CheckpointTrigger.END_OF_RUN
