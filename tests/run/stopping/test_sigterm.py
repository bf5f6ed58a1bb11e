"""What an attempt makes of a SIGTERM that Airflow passes on: whoever is asked says that. Spark alone is not real."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.run.checkpoints.paper_run import LEFT, PARTITIONS, RUN, PaperRun

from stagehold.errors import LedgerUnavailable, ProcessTerminated, RunSuspended
from stagehold.ledger.database.engine import Database
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import AttemptState, FailureClass, RunState
from stagehold.plan.restart.rules import diagnose
from stagehold.run.here.region import work_on
from stagehold.run.journal.journal import verdict_of
from stagehold.run.stopping.stopping import Sigterm, cancel_run_here, sigterms_told_apart, suspend_run

pytestmark = pytest.mark.slow

CLEARED = "in Airflow, where its task was cleared"


def nobody() -> None:
    return None


def interrupted(
    run: PaperRun, raises: type[BaseException], asked: Callable[[], str | None], before: Callable[[Ledger], None]
) -> BaseException:
    """An attempt of Airflow's that is told to end in its second wave, when ``before`` has happened."""

    def pace(stage: str, wave: int) -> None:
        if wave == 2:
            with run.ledger() as ledger:
                before(ledger)
            raise Sigterm(asked)

    with pytest.raises(raises) as raised:
        run.work(LEFT, pace, launcher="airflow")
    return raised.value


def ended(run: PaperRun) -> tuple[AttemptState, str | None, RunState]:
    with run.ledger() as ledger:
        (attempt,) = ledger.attempts.of_run(RUN)
        return attempt.state, attempt.failure, ledger.runs.get(RUN).state


def test_nobody_asked_so_it_is_a_failure_of_the_environment_and_the_next_try_goes_on(tmp_path):
    run = PaperRun.make(tmp_path, stages=(LEFT,))
    error = interrupted(run, ProcessTerminated, nobody, lambda ledger: None)
    verdict = verdict_of(error)
    assert (verdict.kind, verdict.rule, verdict.decision.restart) == (FailureClass.ENVIRONMENT, "terminated", True)
    state, failure, of_run = ended(run)
    assert (state, of_run) == (AttemptState.FAILED, RunState.RESTARTING)
    assert "left was told to end (SIGTERM), which nobody had asked for" in failure
    outcome = run.work(LEFT, launcher="airflow", again=True)
    assert (outcome.reused, outcome.computed) == (2, PARTITIONS - 2)


def test_what_airflow_was_asked_for_cancels_and_says_who_asked(tmp_path):
    run = PaperRun.make(tmp_path, stages=(LEFT,))
    interrupted(run, KeyboardInterrupt, lambda: CLEARED, lambda ledger: None)
    assert ended(run) == (AttemptState.CANCELED, f"cancelled {CLEARED}", RunState.CANCELED)


def test_what_the_ledger_was_asked_for_needs_no_answer_of_airflows(tmp_path):
    run = PaperRun.make(tmp_path, stages=(LEFT,))
    interrupted(run, KeyboardInterrupt, nobody, lambda ledger: cancel_run_here(RUN, ledger))
    assert ended(run) == (AttemptState.CANCELED, "cancelled by `stagehold cancel`", RunState.CANCELED)


def test_a_run_that_is_suspended_stays_so_and_its_task_ends_at_once(tmp_path):
    run = PaperRun.make(tmp_path, stages=(LEFT,))
    interrupted(run, RunSuspended, nobody, lambda ledger: suspend_run(RUN, ledger))
    assert ended(run) == (AttemptState.CANCELED, "suspended", RunState.SUSPENDED)


def test_an_old_cancel_does_not_count_in_a_new_life(tmp_path):
    run = PaperRun.make(tmp_path, stages=(LEFT,))
    interrupted(run, KeyboardInterrupt, nobody, lambda ledger: cancel_run_here(RUN, ledger))
    with pytest.raises(ProcessTerminated):
        run.work(LEFT, lambda stage, wave: (_ for _ in ()).throw(Sigterm(nobody)), launcher="airflow")


def test_it_is_told_apart_also_while_the_attempt_waits_for_its_lease(tmp_path):
    run = PaperRun.make(tmp_path, stages=(LEFT,))
    with run.ledger() as ledger:
        ledger.leases.acquire(f"paper/2026-11-20/{LEFT}", "somebody else", 60)

        def told(seconds: float) -> None:
            raise Sigterm(nobody)

        with pytest.raises(ProcessTerminated) as raised:
            work_on(run.task(LEFT, "airflow"), replace(run.workplace(ledger), sleep=told))
    assert verdict_of(raised.value).decision.restart
    assert ended(run)[0] is AttemptState.FAILED


def test_a_ledger_that_is_away_keeps_nobody_from_ending(tmp_path):
    away = Ledger(Database("postgresql://me@127.0.0.1:1/ledger"))
    task = PaperRun.make(tmp_path, stages=(LEFT,)).task(LEFT, "airflow")
    with pytest.raises(ProcessTerminated), sigterms_told_apart(task, away):
        raise Sigterm(nobody)


def test_the_rule_counts_before_what_kept_the_failure_from_being_recorded():
    error = LedgerUnavailable("sqlite://", "nobody answers")
    error.__context__ = ProcessTerminated("orders")
    assert diagnose(error).rule.name == "terminated"
