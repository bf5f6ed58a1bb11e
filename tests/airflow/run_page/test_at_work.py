"""What the run page shows of who is at work, in a real browser."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.sync_api import expect
from tests.airflow.made_runs import begin_attempt, end_dag_run
from tests.airflow.run_page.test_lease_routes import PULSE
from tests.ledger.samples import attempt, run

from stagehold.ledger.attempts import Failure
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import FailureClass
from stagehold.model.states import UNTIL_RUNNING, AttemptEvent
from stagehold.plan.restart.left_out_hosts import HOST
from stagehold.settings import load_settings

pytestmark = [pytest.mark.airflow, pytest.mark.browser]


def test_who_is_at_work_and_how_that_gets_on_is_shown_while_the_run_goes_on(page, half_done):
    lease = begin_attempt(half_done, "orders_by_customer", 60)
    with Ledger.open(load_settings().ledger_url) as ledger:
        ledger.leases.renew(lease, 60, PULSE)
    page.goto(f"/dags/{half_done.dag_id}/runs/{half_done.run_id}/plugin/stagehold")
    card = page.get_by_test_id("at-work")
    expect(card).to_contain_text("process 7 on host")
    expect(card.get_by_test_id("pulse")).to_contain_text(
        "orders_by_customer, wave 3: 12 of 16 partitions, reading"
        "1,200 rows and 244.1 KiB a second"
        "most of the time (75%) for reading"
        "memory: client 143.1 MiB, server 1.9 GiB"
    )
    end_dag_run(half_done.dag_id, half_done.run_id)
    expect(card).to_have_count(0, timeout=20_000)


def test_a_host_that_gets_no_tasks_is_shown_with_the_reason_and_until_when(page, half_done):
    begin_attempt(half_done, "orders_by_customer", 60)
    with Ledger.open(load_settings().ledger_url) as ledger:
        ledger.runs.start(run("hosts"))
        for number, host in enumerate(("worker-7", "worker-7", "worker-8", "worker-7"), 1):
            made = replace(attempt(number, run_id="hosts"), labels={HOST: host})
            ledger.attempts.create(made, *UNTIL_RUNNING)
            failure = Failure("no space", FailureClass.ENVIRONMENT, "disk_full") if host == "worker-7" else None
            event = AttemptEvent.FAIL if failure else AttemptEvent.REPORTED_FINISHED
            ledger.attempts.apply(made.attempt_id, event, failure=failure)
    page.goto(f"/dags/{half_done.dag_id}/runs/{half_done.run_id}/plugin/stagehold")
    told = page.get_by_test_id("left-out")
    expect(told).to_contain_text("worker-7 gets no tasks before")
    expect(told).to_contain_text("3 attempts in a row failed there, the last by rule disk_full")


def test_a_run_is_suspended_and_cancelled_by_buttons_beside_resume(page, half_done):
    begin_attempt(half_done, "orders_by_customer", 60)
    page.goto(f"/dags/{half_done.dag_id}/runs/{half_done.run_id}/plugin/stagehold")
    page.get_by_test_id("suspend").click()
    expect(page.get_by_test_id("stopping")).to_have_text("Suspended: it ends behind the waves that are under way.")
    expect(page.get_by_test_id("suspend")).to_be_disabled()
    page.get_by_test_id("cancel").click()
    question = page.get_by_test_id("stop-question")
    expect(question).to_contain_text("It is marked as failed in Airflow")
    page.keyboard.press("Escape")
    expect(question).to_have_count(0)
    page.get_by_test_id("cancel").click()
    question.get_by_role("button", name="Cancel it").click()
    expect(page.get_by_test_id("cancel")).to_have_count(0, timeout=20_000)
    expect(page.get_by_test_id("header")).not_to_have_attribute("data-state", "running")


def test_who_may_only_read_is_shown_no_button_that_stops(half_done, other_page):
    begin_attempt(half_done, "orders_by_customer", 60)
    other = other_page("viewer")
    other.goto(f"/dags/{half_done.dag_id}/runs/{half_done.run_id}/plugin/stagehold")
    expect(other.get_by_test_id("header")).to_be_visible()
    expect(other.get_by_test_id("suspend")).to_have_count(0)
