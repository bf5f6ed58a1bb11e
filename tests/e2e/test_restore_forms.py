"""A savepoint that a person chooses in Airflow's forms: what is computed then, what is published, and what is shown."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

import pytest
from deltalake import DeltaTable
from playwright.sync_api import Page, expect
from tests.e2e.browser import log_in
from tests.e2e.forms import OVERRIDE, end_earlier, fill, fill_moments, open_form, press_until_accepted
from tests.e2e.stack import RUN_SECONDS, Stack, until

from stagehold.errors import AirflowRefused
from stagehold.ledger.ledger import Ledger
from stagehold.local.airflow_client import DagRun
from stagehold.model.records import AttemptState, Restore

pytestmark = [pytest.mark.e2e, pytest.mark.browser, pytest.mark.timeout(900)]

PIPELINE = "nightly"
SAVED, OTHER, BACKFILLED = "2024-11-05", "2024-11-06", ("2024-11-08", "2024-11-09")
NAME = "before-the-fix"
OWNER = "nightly/saved"
STAGES = ("customer", "orders", "orders_by_customer")


def published(stack: Stack, interval: str) -> list[tuple[int, int]]:
    (record, *_) = stack.records(interval)["orders_by_customer"]
    rows = DeltaTable(record.table).to_pyarrow_table(filters=[("_interval", "=", interval)])
    return sorted(zip(rows["o_orderkey"].to_pylist(), rows["o_custkey"].to_pylist(), strict=True))


def restore_of(stack: Stack, run: DagRun) -> Restore:
    with Ledger.open(stack.settings.ledger_url) as ledger:
        return ledger.restores.of_run(f"{run.dag_id}/{run.run_id}")[0]


def outcomes(stack: Stack, run: DagRun) -> dict[str, dict[str, float]]:
    """What each task says that it did."""
    path = f"/api/v2/dags/{run.dag_id}/dagRuns/{quote(run.run_id, safe='')}/taskInstances"
    return {stage: stack.airflow._send("GET", f"{path}/{stage}/xcomEntries/return_value")["value"] for stage in STAGES}


def assert_nothing_was_computed(stack: Stack, run: DagRun) -> None:
    for outcome in outcomes(stack, run).values():
        assert (outcome["reused"], outcome["computed"]) == (2, 0)


def newest_run(stack: Stack, before: set[str]) -> DagRun:
    found: list[DagRun] = []

    def there() -> bool:
        found[:] = [run for run in runs(stack) if run.run_id not in before]
        return bool(found)

    until(there, "the run is there")
    return found[0]


def runs(stack: Stack) -> list[DagRun]:
    listed = stack.airflow._send("GET", f"/api/v2/dags/{PIPELINE}/dagRuns?limit=100")["dag_runs"]
    return [DagRun(PIPELINE, one["dag_run_id"], one["state"]) for one in listed]


@pytest.fixture(scope="module")
def nightly(stack: Stack) -> Stack:
    """With one interval that ran, and a savepoint of it that was made through the web API."""
    own = replace(stack, pipeline=PIPELINE)
    ended = own.command("run", PIPELINE, "--interval", SAVED, "--run-id", OWNER)
    assert ended.returncode == 0, ended.stderr
    dag_id, run_id = OWNER.split("/")
    made = own.airflow._send(
        "POST", f"/stagehold/api/dags/{dag_id}/runs/{run_id}/savepoints", {"name": NAME, "reason": "the fix comes"}
    )
    assert (made["state"], made["savepoint"]["run_id"]) == ("made", OWNER)
    return own


def test_a_run_begins_with_the_savepoint_that_the_trigger_form_names(nightly: Stack, page: Page) -> None:
    log_in(page, nightly)
    open_form(page, PIPELINE)
    expect(page.locator("input[name=element_restore]")).to_be_visible()
    before = {run.run_id for run in runs(nightly)}
    fill(page, "restore", NAME)
    fill(page, "interval", OTHER)
    page.get_by_role("dialog").get_by_role("button", name="Trigger", exact=True).click()
    run = newest_run(nightly, before)
    nightly.finish(run)

    assert_nothing_was_computed(nightly, run)
    assert published(nightly, OTHER) == published(nightly, SAVED)
    restore = restore_of(nightly, run)
    assert (restore.stage, restore.snapshot is not None, restore.fulfilled_at is not None) == (None, True, True)

    page.goto(f"/dags/{PIPELINE}/runs/{quote(run.run_id, safe='')}/plugin/stagehold")
    expect(page.get_by_test_id("restored-from")).to_contain_text(f"Begins with {NAME}: checkpoint")
    expect(page.get_by_test_id("restored-from")).to_contain_text(f"of run {OWNER} for {SAVED}")
    expect(page.get_by_test_id("restored-from")).to_contain_text("6 partitions restored")
    expect(page.locator("[data-testid^=cell-][data-restored=true]")).to_have_count(6)


def test_a_backfill_form_restores_each_of_its_dates(nightly: Stack, page: Page) -> None:
    end_earlier(nightly, PIPELINE)
    log_in(page, nightly)
    open_form(page, PIPELINE)
    page.get_by_role("dialog").get_by_text("Backfill", exact=True).click()
    fill_moments(page, f"{BACKFILLED[0]} 00:00", f"{BACKFILLED[-1]} 12:00")
    page.get_by_text(OVERRIDE, exact=True).click()
    fill(page, "restore", NAME)
    press_until_accepted(page)
    dates = [DagRun(PIPELINE, f"backfill__{date}T02:00:00+00:00", "") for date in BACKFILLED]
    assert [nightly.airflow.wait(run, RUN_SECONDS).state for run in dates] == ["success"] * 2
    for run, date in zip(dates, BACKFILLED, strict=True):
        assert_nothing_was_computed(nightly, run)
        assert published(nightly, date) == published(nightly, SAVED)
    assert len({restore_of(nightly, run).snapshot for run in dates}) == 1


def test_a_second_backfill_asks_anew_and_a_clear_goes_on(nightly: Stack) -> None:
    """`latest` is each date's own newest checkpoint, which stays although the run leaves another one at its end."""
    run = DagRun(PIPELINE, f"backfill__{BACKFILLED[0]}T02:00:00+00:00", "")
    first = restore_of(nightly, run)
    asked = {
        "dag_id": PIPELINE,
        "from_date": f"{BACKFILLED[0]}T00:00:00Z",
        "to_date": f"{BACKFILLED[0]}T12:00:00Z",
        "run_backwards": False,
        "dag_run_conf": {"restore": "latest"},
        "reprocess_behavior": "completed",
        "max_active_runs": 1,
    }

    def accepted() -> bool:
        end_earlier(nightly, PIPELINE)
        try:
            nightly.airflow._send("POST", "/api/v2/backfills", asked)
        except AirflowRefused as refused:
            if refused.status in (409, 500, 503):
                return False
            raise
        return True

    until(accepted, "Airflow takes the backfill")
    until(lambda: restore_of(nightly, run).snapshot not in (None, first.snapshot), "the date is restored anew")
    nightly.finish(run)
    second = restore_of(nightly, run)
    assert second.identity != first.identity
    assert f"/{BACKFILLED[0]}/nightly-backfill__" in second.snapshot
    nightly.airflow.clear(run)
    nightly.finish(run)
    assert restore_of(nightly, run).identity == second.identity
    assert restore_of(nightly, run).snapshot == second.snapshot
    assert published(nightly, BACKFILLED[0]) == published(nightly, SAVED)
    shown = nightly.airflow.grid(PIPELINE, run.run_id)["restore"]
    assert (shown["reference"], shown["problem"]) == ("latest", None)


def test_rows_that_somebody_deleted_come_back_by_a_trigger_through_airflows_own_route(nightly: Stack) -> None:
    before, (record, *_) = published(nightly, SAVED), nightly.records(SAVED)["orders_by_customer"]
    DeltaTable(record.table).delete(f"_interval = '{SAVED}' AND _partition = 1")
    assert len(published(nightly, SAVED)) < len(before)
    run = nightly.run(SAVED, restore=NAME)
    assert_nothing_was_computed(nightly, run)
    assert published(nightly, SAVED) == before


def test_what_does_not_exist_fails_at_once_with_the_text_of_the_command(nightly: Stack) -> None:
    run = nightly.start("2024-11-07", restore="no-such-savepoint")
    nightly.finish(run, expected="failed")
    command = nightly.command("plan", PIPELINE, "--interval", "2024-11-07", "--restore", "no-such-savepoint")
    said = "There is no checkpoint 'no-such-savepoint' in lake"
    assert said in " ".join(command.stderr.split())
    first = [task for task in nightly.airflow.tasks(run.dag_id, run.run_id).values() if task.state == "failed"]
    assert {task.number for task in first} == {1}
    grid = nightly.airflow.grid(run.dag_id, run.run_id)
    assert said in grid["restore"]["problem"]
    assert said in grid["resume"]["refusal"]
    assert all(said in failure["failure"] for failure in grid["failures"])


def test_a_savepoint_of_a_run_that_goes_on_is_made_while_it_does(stack: Stack) -> None:
    run = stack.start("saved-while-running")
    until(lambda: any(attempt.state is AttemptState.RUNNING for attempt in stack.attempts(run)), "an attempt computes")
    here = f"/stagehold/api/dags/{run.dag_id}"
    wanted = {"name": "on-the-way"}
    asked = stack.airflow._send("POST", f"{here}/runs/{quote(run.run_id, safe='')}/savepoints", wanted)
    assert asked["state"] in ("pending", "made")

    def status() -> dict[str, object]:
        return dict(stack.airflow._send("GET", f"{here}/savepoint_requests/on-the-way"))

    until(lambda: status()["state"] == "made", "the savepoint is made")
    stack.finish(run)
    shown = stack.airflow._send("GET", f"{here}/savepoints/on-the-way")
    assert not any(stage["missing"] for stage in shown["stages"])
    disposed = stack.airflow._http.request(
        "DELETE", f"{here}/savepoints/on-the-way", headers={"Content-Type": "application/json"}
    )
    assert disposed.status_code == 200
    stack.assert_answer_is_right("saved-while-running")
