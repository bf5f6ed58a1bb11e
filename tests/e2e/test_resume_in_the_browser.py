"""What a person does at night: log in, look at the failed run, press Resume, see it turn green."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.browser import log_in
from tests.e2e.stack import RUN_SECONDS, Stack

from stagehold.local.demo.demo_run import published_top_orders
from stagehold.model.standing import PartitionState
from stagehold.run.faults import FaultAction, Point

pytestmark = [pytest.mark.e2e, pytest.mark.browser]

STAGE = "shipping_priority"


def test_a_failed_run_is_seen_resumed_and_turns_green(stack: Stack, page: Page) -> None:
    stack.inject(Point.AFTER_RECORD, STAGE, 1, FaultAction.FAIL)
    run = stack.run("browser", expected="failed")
    consumable = sum(len(records) for records in stack.records("browser").values())
    log_in(page, stack)
    page.goto(f"/dags/{run.dag_id}/runs/{quote(run.run_id, safe='')}")
    page.get_by_role("link", name="Stagehold").click()

    expect(page.get_by_test_id("headline")).to_have_text(
        f"Failed at {STAGE}: {consumable} of {stack.partitions} partitions are consumable"
    )
    expect(page.locator("[data-testid^=cell-][data-state=consumable]")).to_have_count(consumable)
    expect(page.get_by_test_id(f"failure-{STAGE}")).to_contain_text("A fault was switched on")
    expect(page.get_by_test_id("preview")).to_contain_text(
        f"reuses {consumable} partitions, runs {stack.partitions - consumable}"
    )

    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_test_id("cleared")).to_contain_text("cleared 2 tasks in this run")
    expect(page.get_by_test_id("header")).to_have_attribute("data-state", "success", timeout=RUN_SECONDS * 1000)
    expect(page.locator("[data-testid^=cell-][data-state=consumable]")).to_have_count(stack.partitions)
    expect(page.get_by_test_id("failures")).to_have_count(0)
    assert stack.airflow.run(run.dag_id, run.run_id).state == "success"
    stack.assert_answer_is_right("browser")


def test_a_suite_that_was_too_strict_is_mended_and_resume_publishes_what_it_had_refused(
    stack: Stack, page: Page
) -> None:
    suite = Path(stack.settings.suites) / f"{STAGE}.yaml"
    good = suite.read_text()
    suite.write_text(f"{good}  - {{type: expect_column_values_to_be_between, column: revenue, max_value: 1}}\n")
    try:
        run = stack.run("strict", expected="failed")
    finally:
        suite.write_text(good)
    refused = stack.records("strict")[STAGE]
    assert {record.state for record in refused} == {PartitionState.BLOCKED}
    log_in(page, stack)
    page.goto(f"/dags/{run.dag_id}/runs/{quote(run.run_id, safe='')}")
    page.get_by_role("link", name="Stagehold").click()
    expect(page.get_by_test_id("preview")).to_contain_text(f"runs 1, has {len(refused)} judged again")
    expect(page.get_by_test_id("preview")).to_contain_text(f"judge {len(refused)}its gate {STAGE} changed")

    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_test_id("header")).to_have_attribute("data-state", "success", timeout=RUN_SECONDS * 1000)
    expect(page.locator("[data-testid^=cell-][data-state=consumable]")).to_have_count(stack.partitions)
    assert [record.files for record in stack.records("strict")[STAGE]] == [record.files for record in refused]
    stack.assert_answer_is_right("strict")


def test_what_a_gate_refuses_is_waived_on_the_page_and_resume_publishes_it(stack: Stack, page: Page) -> None:
    suite = Path(stack.settings.suites) / f"{STAGE}.yaml"
    good = suite.read_text()
    suite.write_text(f"{good}  - {{type: expect_column_values_to_be_between, column: revenue, max_value: 1}}\n")
    try:
        run = stack.run("waived", expected="failed")
        refused = stack.records("waived")[STAGE]
        assert {record.state for record in refused} == {PartitionState.BLOCKED}
        log_in(page, stack)
        page.goto(f"/dags/{run.dag_id}/runs/{quote(run.run_id, safe='')}")
        page.get_by_role("link", name="Stagehold").click()
        expect(page.get_by_test_id("resume")).to_be_disabled()
        gate = page.get_by_test_id(f"gate-{STAGE}")
        expect(gate.locator("[data-outcome=failed]")).to_have_count(len(refused))
        page.get_by_test_id("unmet").get_by_role("button", name="Waive").click()
        page.get_by_label("Why?").fill("revenue above 1 is what we want")
        page.get_by_test_id("waive").get_by_role("button", name="Waive").click()
        expect(gate.locator("[data-outcome=waived]")).to_have_count(len(refused))
        page.get_by_test_id("resume").click()
        expect(page.get_by_test_id("header")).to_have_attribute("data-state", "success", timeout=RUN_SECONDS * 1000)
        expect(page.locator("[data-waived=true][data-state=waived]")).to_have_count(len(refused))
        expect(page.get_by_test_id("failures")).to_have_count(0)
        assert [record.files for record in stack.records("waived")[STAGE]] == [record.files for record in refused]
        stack.assert_answer_is_right("waived")
        written = stack.command("gates", f"{run.dag_id}/{run.run_id}", "--docs")
        assert written.returncode == 0, written.stderr
        page.reload()
        page.get_by_test_id("gates-toggle").wait_for()
        with page.context.expect_page() as opened:
            page.get_by_role("link", name="Pages of Great Expectations").click()
        opened.value.get_by_role("link", name=f"{STAGE}[").click()
        expect(opened.value.get_by_text("values must be less than or equal to 1")).to_be_visible()
        expect(opened.value.get_by_text("revenue above 1 is what we want")).to_be_visible()

        _take_back_and_resume(stack, page, len(refused))
    finally:
        suite.write_text(good)


def _take_back_and_resume(stack: Stack, page: Page, refused: int) -> None:
    """What was let through, and what was made of it, is announced by the preview and leaves its tables."""
    words = ("--pipeline", stack.pipeline, "--interval", "waived", "--partition", "all", "--reason", "a mistake")
    taken_back = stack.command("waive", STAGE, *words, "--end")
    assert taken_back.returncode == 0, taken_back.stderr
    page.reload()
    unmet = page.get_by_test_id("unmet")
    expect(unmet).to_contain_text("published by a waiver that has ended: Resume takes it out")
    expect(page.get_by_test_id("headline")).not_to_contain_text("Complete")
    preview = page.get_by_test_id("preview")
    expect(preview).to_contain_text(f"runs 0, takes {refused + 1} out of their tables")
    expect(preview).to_contain_text("has ended (a mistake); its rows are taken out")
    page.get_by_test_id("resume").click()
    expect(page.get_by_test_id("header")).to_have_attribute("data-state", "failed", timeout=RUN_SECONDS * 1000)
    expect(page.get_by_test_id(f"gate-{STAGE}").locator("[data-outcome=failed]")).to_have_count(refused)
    expect(unmet).not_to_contain_text("published")
    assert {record.state for record in stack.records("waived")[STAGE]} == {PartitionState.BLOCKED}
    assert published_top_orders(stack.settings, "waived", stack.pipeline) == []
