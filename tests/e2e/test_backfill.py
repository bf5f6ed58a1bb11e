"""A backfill over dates that ran computes again what it is asked to restore:
each time it is asked, and not when it is resumed.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from deltalake import DeltaTable
from playwright.sync_api import Page, expect
from tests.e2e.browser import log_in
from tests.e2e.forms import OVERRIDE, ask_for_backfill, end_earlier, fill_moments, press_until_accepted
from tests.e2e.stack import RUN_SECONDS, Stack

from stagehold.errors import AirflowRefused
from stagehold.ledger.ledger import Ledger
from stagehold.local.airflow_client import DagRun
from stagehold.model.records import Cell, PartitionRecord, Restore
from stagehold.run.faults import FaultAction, Point

# runs of three dates, one after the other
pytestmark = [pytest.mark.e2e, pytest.mark.browser, pytest.mark.timeout(900)]

PIPELINE = "nightly"
DATES = ("2024-10-01", "2024-10-02", "2024-10-03")
STAGES = ("customer", "orders", "orders_by_customer")


def dag_run(date: str) -> str:
    return f"backfill__{date}T02:00:00+00:00"


def backfill(stack: Stack, conf: dict[str, object] | None) -> None:
    """Through REST, to its end."""
    asked = {
        "from_date": f"{DATES[0]}T00:00:00Z",
        "to_date": f"{DATES[-1]}T12:00:00Z",
    }
    body = {**asked, "dag_run_conf": conf, "reprocess_behavior": "completed", "max_active_runs": 1}
    ask_for_backfill(stack, PIPELINE, body)
    states(stack)


def states(stack: Stack) -> dict[str, str]:
    """How the runs of the dates ended, once they have."""
    return {date: stack.airflow.wait(DagRun(PIPELINE, dag_run(date), ""), RUN_SECONDS).state for date in DATES}


def history(stack: Stack, date: str) -> dict[str, tuple[PartitionRecord, ...]]:
    with Ledger.open(stack.settings.ledger_url) as ledger:
        return {stage: ledger.partitions.history(Cell(PIPELINE, stage, date)) for stage in STAGES}


def computed(stack: Stack) -> list[tuple[int, ...]]:
    """How often partitions of each stage were computed, for each date."""
    return [tuple(len(records) for records in history(stack, date).values()) for date in DATES]


def newest_restores(stack: Stack) -> tuple[Restore, ...]:
    """What was asked last of each date. Who asks again because Airflow refused makes another request."""
    with Ledger.open(stack.settings.ledger_url) as ledger:
        return tuple(ledger.restores.of_run(f"{PIPELINE}/{dag_run(date)}")[0] for date in DATES)


def computed_for(stack: Stack, date: str, restore: Restore) -> tuple[int, ...]:
    """How often partitions of each stage were computed for one request."""
    with Ledger.open(stack.settings.ledger_url) as ledger:
        own = {one.attempt_id for one in ledger.attempts.of_run(restore.run_id) if one.restore == restore.identity}
    return tuple(sum(one.attempt_id in own for one in records) for records in history(stack, date).values())


def assert_restored_once(stack: Stack, began: datetime) -> None:
    """Each date was asked for anew, and each partition that was asked for was computed once."""
    for date, restore in zip(DATES, newest_restores(stack), strict=True):
        assert restore.requested_at > began
        assert restore.fulfilled_at is not None
        assert computed_for(stack, date, restore) == (0, 2, 2)


def published(stack: Stack, date: str) -> list[tuple[int, int]]:
    """Keys of the rows that any Delta reader sees for the date."""
    uri = history(stack, date)["orders_by_customer"][-1].table
    rows = DeltaTable(uri).to_pyarrow_table(filters=[("_interval", "=", date)])
    return sorted(zip(rows["o_orderkey"].to_pylist(), rows["o_custkey"].to_pylist(), strict=True))


@pytest.fixture(scope="module")
def ran(stack: Stack) -> Callable[[str], list[tuple[int, int]]]:
    """Three dates that ran once; gives what each of them published."""
    backfill(stack, None)
    rows = {date: published(stack, date) for date in DATES}
    assert all(rows.values())
    return rows.__getitem__


def test_each_backfill_computes_again_what_it_restores_and_a_clear_or_resume_does_not(stack: Stack, ran) -> None:
    assert computed(stack) == [(2, 2, 2)] * 3
    for _ in range(2):  # the second is identical
        began = datetime.now(UTC)
        backfill(stack, {"restore_from_stage": "orders"})
        assert_restored_once(stack, began)
    before = computed(stack)
    run = DagRun(PIPELINE, dag_run(DATES[0]), "")
    stack.airflow.clear(run)
    stack.finish(run)
    with pytest.raises(AirflowRefused, match="partitions are consumable"):
        stack.airflow.resume(run.dag_id, run.run_id)
    assert computed(stack) == before
    assert [published(stack, date) for date in DATES] == [ran(date) for date in DATES]


def test_a_backfill_that_failed_half_way_is_resumed_from_what_it_had_computed(stack: Stack, ran) -> None:
    began = datetime.now(UTC)
    stack.inject(Point.AFTER_RECORD, "orders_by_customer", 1, FaultAction.FAIL)
    backfill(stack, {"restore_from_stage": "orders"})
    (failed,) = [date for date, state in states(stack).items() if state == "failed"]
    with ThreadPoolExecutor(3) as presses:
        answers = [presses.submit(stack.airflow.resume, PIPELINE, dag_run(failed)) for _ in range(3)]
    refusals = [error for answer in answers if (error := answer.exception())]
    assert [getattr(error, "status", error) for error in refusals] == [409, 409]  # one of three at once is carried out
    assert states(stack)[failed] == "success"
    assert_restored_once(stack, began)
    assert published(stack, failed) == ran(failed)


def test_an_interval_is_one_in_the_schedule_in_a_backfill_and_in_a_command(stack: Stack, ran) -> None:
    for written in (DATES[0], f"{DATES[0]}T02:00:00Z", f"{DATES[0]}T04:00:00+02:00"):
        ended = stack.command("run", PIPELINE, "--interval", written)
        assert ended.returncode == 0, ended.stderr
        assert "reused 6 partitions, computed 0" in ended.stdout


def test_a_restore_of_a_date_that_never_ran_fails_at_once_with_the_dates_that_did(stack: Stack, ran) -> None:
    # the form with a stage and no interval
    run = stack.airflow.trigger(PIPELINE, conf={"restore_from_stage": "orders"})
    stack.finish(run, expected="failed")
    (attempt,) = {attempt.region: attempt for attempt in stack.attempts(run) if attempt.region == "orders"}.values()
    assert "nothing can be restored from orders" in attempt.failure
    assert all(date in attempt.failure for date in DATES)
    assert {task.number for task in stack.airflow.tasks(run.dag_id, run.run_id).values() if task.state == "failed"} == {
        1
    }


def test_the_backfill_form_restores_the_dates_that_ran(stack: Stack, ran, page: Page) -> None:
    end_earlier(stack, PIPELINE)
    began = datetime.now(UTC)
    log_in(page, stack)
    page.goto(f"/dags/{PIPELINE}")
    page.get_by_role("button", name="Trigger").first.click()
    page.get_by_role("dialog").get_by_text("Backfill", exact=True).click()
    expect(page.get_by_text(f"tick “{OVERRIDE}”").first).to_be_visible()  # our own words beside the field
    fill_moments(page, f"{DATES[0]} 00:00", f"{DATES[-1]} 12:00")
    page.get_by_text("All Runs").click()
    page.get_by_text(OVERRIDE, exact=True).click()
    # The field that takes a savepoint has a list, too, but is one to write in.
    page.get_by_role("combobox").and_(page.locator(":not([list])")).last.click()
    page.get_by_role("option", name="orders", exact=True).click()
    press_until_accepted(page)
    assert set(states(stack).values()) == {"success"}
    assert_restored_once(stack, began)
    assert [published(stack, date) for date in DATES] == [ran(date) for date in DATES]
