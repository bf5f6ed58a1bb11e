"""Airflow asks our policy after a failure; what was recorded decides, else the error itself."""

from __future__ import annotations

from datetime import timedelta

import pytest

from stagehold.errors.ledger_errors import LedgerUnavailable
from stagehold.model.records import FailureClass
from stagehold.plan.restart.replay import RestartDecision
from stagehold.run.journal.journal import Verdict, attach

pytestmark = pytest.mark.airflow


@pytest.fixture
def ask(airflow_home):
    from stagehold.airflow.context.task_retries import StrategyRetryPolicy
    from stagehold.settings import load_settings
    from stagehold.spec.loading.loader import find_pipeline

    policy = StrategyRetryPolicy(find_pipeline("shipping_priority", load_settings()))
    return lambda error: policy.evaluate(error, try_number=1, max_tries=100)


def failed(decision):
    error = ValueError("x")
    attach(error, Verdict(FailureClass.ENVIRONMENT, "disk_full", decision))
    return error


def test_a_restart_waits_for_the_strategys_delay(ask):
    answer = ask(failed(RestartDecision(True, timedelta(seconds=7), "restart 2 of the run")))
    assert (answer.action.value, answer.retry_delay) == ("retry", timedelta(seconds=7))
    assert answer.reason == "environment failure (rule disk_full): restart 2 of the run"


@pytest.mark.parametrize(
    "decision", [RestartDecision(False, timedelta(0), "enough"), None], ids=["refused", "overtaken"]
)
def test_what_may_not_restart_fails_at_once(ask, decision):
    assert ask(failed(decision)).action.value == "fail"


def test_a_failure_that_could_not_be_recorded_was_tried_often_enough_inside_its_task(ask):
    away = ask(LedgerUnavailable("sqlite://", "nobody answers"))
    assert (away.action.value, away.reason) == (
        "fail",
        "environment failure (rule ledger_unavailable) that could not be recorded",
    )


def test_the_verdict_stands_below_the_error_wherever_it_is_printed():
    error = failed(None)
    assert error.__notes__ == ["environment failure (rule disk_full): a newer attempt goes on"]
