"""A backfill over dates that ran computes again what it is asked to restore:
each time it is asked, and not when it is resumed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import pytest
from deltalake import DeltaTable
from playwright.sync_api import Page, expect
from tests.e2e.browser import log_in
from tests.e2e.forms import OVERRIDE, ask_for_backfill, end_earlier, fill_moments, press_until_accepted
from tests.e2e.stack import RUN_SECONDS, Stack, until

from stagehold.checkpoints.releasing import as_released
from stagehold.errors import AirflowRefused
from stagehold.ledger.ledger import Ledger
from stagehold.local.airflow_client import DagRun
from stagehold.model.records import Cell, PartitionRecord, Restore
from stagehold.run.faults import FaultAction, Point

# runs of three dates, one after the other
pytestmark = [pytest.mark.e2e, pytest.mark.browser, pytest.mark.timeout(900)]

PIPELINE = "nightly"
DATES = ("2024-10-01", "2024-10-02", "2024-10-03")
NEVER = "2024-10-09"  # ran
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
        own = {
            attempt.attempt_id
            for attempt in ledger.attempts.of_run(restore.run_id)
            if attempt.restore == restore.identity
        }
    return tuple(sum(record.attempt_id in own for record in records) for records in history(stack, date).values())


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


def test_a_restore_of_dates_that_never_ran_computes_them_whole_and_says_so(stack: Stack, ran) -> None:
    """With an interval that was typed into the form, too, and a name that nobody reads."""
    odd = {"restore_from_stage": "orders", "interval": DATES[0], "restore_form": 1}
    never = {"from_date": f"{NEVER}T00:00:00Z", "to_date": f"{NEVER}T12:00:00Z", "dag_run_conf": odd}
    ask_for_backfill(stack, PIPELINE, {**never, "reprocess_behavior": "none", "max_active_runs": 1})
    run = DagRun(PIPELINE, f"backfill__{NEVER}T02:00:00+00:00", "")
    assert stack.airflow.wait(run, RUN_SECONDS).state == "success"
    assert published(stack, NEVER) == ran(DATES[0])
    here = f"/api/v2/dags/{PIPELINE}/dagRuns/{quote(run.run_id, safe='')}"
    note = stack.airflow._send("GET", here)["note"]
    remarks = [
        "Stagehold: restore_form is no field of this pipeline and does nothing",
        f"Stagehold: The interval {DATES[0]} was left aside",
        f"Stagehold: Nothing is on record of {NEVER}, so all of it is computed, not only orders and what reads it.",
    ]
    assert all(line.startswith(told) for line, told in zip(note.splitlines(), remarks, strict=True))
    assert all(line.removeprefix("Stagehold: ") in stack.log(run, "orders", 1) for line in note.splitlines())
    stack.airflow.clear(run)
    stack.finish(run)
    assert stack.airflow._send("GET", here)["note"] == note
    assert [len(records) for records in history(stack, NEVER).values()] == [2, 2, 2]  # each partition once


def release(stack: Stack, date: str, stage: str) -> None:
    """As the end of a later run does, when `retain` says so."""
    with Ledger.open(stack.settings.ledger_url) as ledger:
        lease = ledger.leases.acquire(f"{PIPELINE}/{date}/{stage}", "the test", 60)
        newest = ledger.partitions.newest(Cell(PIPELINE, stage, date))
        ledger.partitions.record([as_released(one, datetime.now(UTC)) for one in newest], lease)
        ledger.leases.release(lease)


def test_a_run_that_had_to_compute_again_what_was_released_says_so_in_its_note_and_its_log(stack: Stack, ran) -> None:
    date = DATES[1]
    release(stack, date, "customer")
    told = f"customer of {date} was released: 2 partitions, about "
    planned = stack.command("plan", PIPELINE, "--interval", date, "--restore-from-stage", "orders_by_customer")
    assert f"restores from orders_by_customer; {told}" in planned.stdout
    asked = {"from_date": f"{date}T00:00:00Z", "to_date": f"{date}T12:00:00Z"}
    conf = {"restore_from_stage": "orders_by_customer"}
    body = {**asked, "dag_run_conf": conf, "reprocess_behavior": "completed", "max_active_runs": 1}
    ask_for_backfill(stack, PIPELINE, body)
    run = DagRun(PIPELINE, dag_run(date), "")
    assert stack.airflow.wait(run, RUN_SECONDS).state == "success"
    here = f"/api/v2/dags/{PIPELINE}/dagRuns/{quote(run.run_id, safe='')}"
    (line,) = [one for one in stack.airflow._send("GET", here)["note"].splitlines() if "was released" in one]
    assert line.startswith(f"Stagehold: {told}")
    logs = [stack.log(run, task, one.number) for task, one in stack.airflow.tasks(PIPELINE, run.run_id).items()]
    assert any(f"restores from orders_by_customer; {told}" in log for log in logs)
    assert published(stack, date) == ran(date)


def test_all_runs_without_an_override_computes_what_is_not_consumable_and_no_earlier_wish(stack: Stack, ran) -> None:
    backfill(stack, {"restore_from_stage": "orders"})
    before = computed(stack)
    backfill(stack, None)
    assert set(states(stack).values()) == {"success"}
    assert computed(stack) == before
    with Ledger.open(stack.settings.ledger_url) as ledger:
        runs = [f"{PIPELINE}/{dag_run(date)}" for date in DATES]
        assert all(ledger.attempts.of_run(run)[-1].restore is None for run in runs)


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


DATED = "dated"
GOOD, STALE, ALSO_GOOD, FAILED, MISSING = FIVE = tuple(f"2024-11-0{day}" for day in range(1, 6))
BOTH = frozenset({0, 1})
EXPECTED = """
    SELECT o_orderkey, o_custkey
    FROM read_parquet(?) AS customer JOIN read_parquet(?) AS orders ON c_custkey = o_custkey
    WHERE c_mktsegment = 'BUILDING' AND o_orderdate < DATE '1995-03-15' ORDER BY ALL
"""


class DatedBackfill:
    """Commands about five dates of a pipeline over files of its own, and what they leave."""

    def __init__(self, stack: Stack) -> None:
        self.stack, self.lake = stack, Path(stack.settings.lake_uri)

    def planned(self, *words: str) -> dict[str, dict[str, int]]:
        """How many partitions of each stage run, by date."""
        found = self.document("--dry-run", *words)
        runs = {
            interval["interval"]: {c["stage"]: c["runs"] for c in interval["cells"] if c["runs"]}
            for interval in found["intervals"]
        }
        return {interval: cells for interval, cells in runs.items() if cells}

    def document(self, *words: str) -> dict[str, Any]:
        ended = self.command(*words, "--json")
        assert ended.returncode == 0, ended.stderr
        return dict(json.loads(ended.stdout))

    def command(self, *words: str, first: str = GOOD, last: str = MISSING):
        return self.stack.command("backfill", DATED, "--from", first, "--to", last, *words)

    def computed(self, since: datetime) -> Mapping[tuple[str, str], frozenset[int]]:
        """Partitions that were computed since then, by date and stage, as the ledger has it."""
        found: dict[tuple[str, str], frozenset[int]] = {}
        for date in FIVE:
            for stage, records in self.history(date).items():
                if new := frozenset(record.partition for record in records if record.recorded_at >= since):
                    found[date, stage] = new
        return found

    def history(self, date: str) -> Mapping[str, tuple[PartitionRecord, ...]]:
        with Ledger.open(self.stack.settings.ledger_url) as ledger:
            return {stage: ledger.partitions.history(Cell(DATED, stage, date)) for stage in STAGES}

    def published(self, date: str) -> list[tuple[int, int]]:
        uri = self.history(date)["orders_by_customer"][-1].table
        rows = DeltaTable(uri).to_pyarrow_table(filters=[("_interval", "=", date)])
        return sorted(zip(rows["o_orderkey"].to_pylist(), rows["o_custkey"].to_pylist(), strict=True))

    @property
    def expected(self) -> list[tuple[int, int]]:
        """As DuckDB computes it from the files."""
        files = [str(self.lake / "dated" / table / "*.parquet") for table in STAGES[:2]]
        with duckdb.connect() as connection:
            return connection.execute(EXPECTED, files).fetchall()

    @property
    def first_file(self) -> Path:
        return min((self.lake / "dated" / "customer").glob("*.parquet"))


@pytest.fixture(scope="module")
def dated(stack: Stack) -> DatedBackfill:
    """Two dates are as they should be, one was made from another file, one failed, and one never ran."""
    dated = DatedBackfill(stack)
    for table in STAGES[:2]:
        shutil.copytree(dated.lake / "raw" / table, dated.lake / "dated" / table)
    original = dated.lake / "kept.parquet"
    shutil.copy2(dated.first_file, original)
    duckdb.sql(f"COPY (FROM read_parquet('{original}') LIMIT 9) TO '{dated.first_file}' (FORMAT parquet)")
    assert dated.command("--local", "--yes", first=STALE, last=STALE).returncode == 0
    shutil.copy2(original, dated.first_file)
    for date in (GOOD, ALSO_GOOD):
        assert dated.command("--local", "--yes", first=date, last=date).returncode == 0
    stack.inject(Point.AFTER_WRITE, "orders_by_customer", 1, FaultAction.FAIL)
    failed = dated.command("--local", "--yes", first=FAILED, last=FAILED)
    assert (failed.returncode, "stagehold resume dated/backfill-" in failed.stdout) == (1, True)
    return dated


def test_a_backfill_shows_the_cells_of_five_dates_and_computes_exactly_these(stack: Stack, dated) -> None:
    plan = dated.planned()
    assert plan[STALE]["customer"] == 1
    assert plan[STALE]["orders_by_customer"] == 2
    assert plan[FAILED] == {"orders_by_customer": 2}
    assert plan[MISSING] == dict.fromkeys(STAGES, 2)
    assert set(plan) == {STALE, FAILED, MISSING}
    assert dated.planned("--only", "missing") == {date: plan[date] for date in (FAILED, MISSING)}
    assert dated.planned("--only", "failed") == {FAILED: plan[FAILED]}
    shown = dated.document("--dry-run")
    kept = shutil.copy2(dated.first_file, dated.lake / "again.parquet")
    duckdb.sql(f"COPY (FROM read_parquet('{kept}') LIMIT 5) TO '{dated.first_file}' (FORMAT parquet)")
    refused = dated.command("--token", shown["token"])
    assert refused.returncode == 1
    assert f"5 more cells run than you were shown: {GOOD} customer[0]" in refused.stderr
    shutil.copy2(kept, dated.first_file)
    began = datetime.now(UTC)
    end_earlier(stack, DATED)
    ended = dated.command("--token", shown["token"])
    assert ended.returncode == 0, ended.stderr
    assert {
        interval: {stage: len(some) for (date, stage), some in dated.computed(began).items() if date == interval}
        for interval in plan
    } == plan
    assert {date for date, _ in dated.computed(began)} == set(plan)  # Airflow ran the good date between them in vain
    assert stack.airflow.run(DATED, dag_run(ALSO_GOOD)).state == "success"
    assert {date: dated.published(date) for date in FIVE} == dict.fromkeys(FIVE, dated.expected)
    assert dated.document("--dry-run")["refusal"] == "There is nothing to run."


def test_what_the_tab_computes_again_it_computes_once_however_often_its_run_is_cleared(
    stack: Stack, dated, page: Page
) -> None:
    if not dated.history(MISSING)["orders_by_customer"]:  # as the test before leaves it
        assert dated.command("--local", "--yes", first=MISSING).returncode == 0
    began = datetime.now(UTC)
    end_earlier(stack, DATED)
    log_in(page, stack)
    page.goto(f"/dags/{DATED}/plugin/stagehold-intervals")
    card = page.get_by_test_id("backfill")
    for field in ("From", "To"):
        card.get_by_label(field, exact=True).fill(MISSING)
    card.get_by_role("combobox", name="Compute").select_option("all")
    card.get_by_role("button", name="customer", exact=True).click()
    card.get_by_role("button", name="Show the plan").click()
    expect(card.get_by_test_id("backfill-totals")).to_contain_text("Runs 2 partitions")
    card.get_by_test_id("backfill-start").click()
    expect(card.get_by_test_id("backfill-started")).to_contain_text(f"Started: 1 interval, {MISSING}")
    run = DagRun(DATED, dag_run(MISSING), "")
    until(lambda: dated.computed(began), "the backfill that the tab started computes")
    stack.finish(run)
    assert dated.computed(began) == {(MISSING, "customer"): BOTH}
    expect(page.get_by_test_id(f"cell-{MISSING}-customer")).to_have_attribute("data-state", "consumable")
    again = datetime.now(UTC)
    stack.airflow.clear(run)
    stack.finish(run)
    assert dated.computed(again) == {}
    resumed = stack.command("resume", f"{DATED}/{run.run_id}", "--again", "orders")
    assert resumed.returncode == 0, resumed.stderr
    stack.finish(run)
    assert dated.computed(again) == {(MISSING, "orders"): BOTH}  # which came out equal, so nothing else runs
    stack.airflow.clear(run)
    stack.finish(run)
    assert [len(one) for one in dated.history(MISSING).values()] == [4, 4, 2]


def test_an_interval_in_the_form_of_a_backfill_leaves_each_date_its_own(stack: Stack, dated) -> None:
    began, run = datetime.now(UTC), DagRun(DATED, dag_run(GOOD), "")
    body = {"from_date": f"{GOOD}T00:00:00Z", "to_date": f"{GOOD}T12:00:00Z", "dag_run_conf": {"interval": MISSING}}
    ask_for_backfill(stack, DATED, {**body, "reprocess_behavior": "completed", "max_active_runs": 1})
    stack.finish(run)
    task = stack.airflow.tasks(run.dag_id, run.run_id)["customer"]
    assert f"The interval {MISSING} was left aside" in stack.log(run, "customer", task.number)
    assert dated.computed(began) == {}
