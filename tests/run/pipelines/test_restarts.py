"""Failures of the toy pipeline: which ones are tried again, when, and what the ledger says of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.run.workbench import Workbench, killed

from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Attempt, AttemptState, FailureClass
from stagehold.run.faults import FaultAction, Point

pytestmark = pytest.mark.spark


@pytest.fixture
def bench(tmp_path, spark_remote):
    return Workbench.make(tmp_path, spark_remote)


def attempts_of(bench: Workbench, region: str, run_id: str = "r1") -> list[Attempt]:
    with Ledger.open(bench.settings.ledger_url) as ledger:
        return [attempt for attempt in ledger.attempts.of_run(run_id) if attempt.region == region]


def history_of(bench: Workbench, attempt: Attempt | None = None, run_id: str = "r1") -> str:
    """The states of an attempt, or of the run itself, one after the other."""
    attempt_id = attempt and attempt.attempt_id
    with Ledger.open(bench.settings.ledger_url) as ledger:
        return " ".join(
            transition.after for transition in ledger.transitions.of_run(run_id) if transition.attempt_id == attempt_id
        )


def test_a_region_that_fails_is_run_again_after_the_strategys_delay_and_keeps_its_waves(bench):
    bench.declare("restart: {strategy: fixed-delay, attempts: 1, delay: 700ms}")
    bench.inject(Point.BEFORE_PUBLISH, "by_wave", 2, FaultAction.RAISE)
    assert bench.run("--run-id", "r1").counts[1] == 13 - 2
    first, second = attempts_of(bench, "doubled__by_wave")
    assert (first.state, first.failure_class, first.failure_rule) == (
        AttemptState.FAILED,
        FailureClass.RECOVERABLE,
        "anything_else",
    )
    assert second.state is AttemptState.FINISHED
    assert (second.started_at - first.ended_at).total_seconds() >= 0.7
    assert history_of(bench) == "created running restarting running finished"
    assert history_of(bench, first) == "created scheduled deploying initializing running failed"
    assert history_of(bench, second) == "created scheduled deploying initializing running finished"
    assert bench.epochs("by_wave") == [1, 1, 2, 2]
    assert bench.published() == bench.expected()


def test_the_authors_rule_fails_the_run_at_once_and_a_resume_is_a_new_life(bench):
    bench.declare('failures: [{error: "stagehold.run.faults:InjectedFault", class: non_recoverable}]')
    bench.inject(Point.BEFORE_WRITE, "by_colour", 1, FaultAction.RAISE)
    failed = bench.run("--run-id", "r1")
    assert failed.code == 1
    assert "non_recoverable failure (rule failures[1]): trying again cannot help" in failed.err
    (attempt,) = attempts_of(bench, "by_colour")
    assert (attempt.failure_class, attempt.failure_rule) == (FailureClass.NON_RECOVERABLE, "failures[1]")
    assert history_of(bench) == "created running failing failed"
    assert bench.run("--run-id", "r1").counts == (8, 5)
    assert history_of(bench) == "created running failing failed created running finished"
    reused = attempts_of(bench, "numbers")[-1]
    assert history_of(bench, reused) == "created scheduled deploying initializing finished"


def test_a_killed_attempt_is_recorded_as_such_by_the_next_one(bench):
    bench.inject(Point.BEFORE_WRITE, "numbers", 1, FaultAction.KILL)
    assert killed(bench.run("--run-id", "r1"))
    resumed = bench.run("--run-id", "r1")
    assert resumed.code == 0
    assert "epoch 1 ended without a word" in resumed.err
    lost, second = attempts_of(bench, "numbers")
    assert (lost.state, lost.failure_class, lost.failure_rule) == (
        AttemptState.FAILED,
        FailureClass.ENVIRONMENT,
        "worker_lost",
    )
    assert second.state is AttemptState.FINISHED
    assert history_of(bench, lost) == "created scheduled deploying initializing running failed"
    assert history_of(bench) == "created running finished"


def test_a_strategy_for_all_pipelines_holds_where_a_pipeline_declares_none(bench):
    bench = replace(bench, settings=replace(bench.settings, restart="none"))
    bench.inject(Point.BEFORE_PUBLISH, "by_wave", 2, FaultAction.RAISE)
    assert bench.run("--run-id", "r1").code == 1
    (attempt,) = attempts_of(bench, "doubled__by_wave")
    assert attempt.state is AttemptState.FAILED
    assert bench.epochs("by_wave") == [1, 1], "the wave before it stays"
    bench.declare("restart: {strategy: fixed-delay, attempts: 1, delay: 10ms}")
    bench.inject(Point.BEFORE_PUBLISH, "by_wave", 1, FaultAction.RAISE)
    assert bench.run("--run-id", "r2").code == 0
    assert len(attempts_of(bench, "doubled__by_wave", "r2")) == 2
