"""What the page of a run shows of its gates in a browser: waivers, verdicts, and pages of Great Expectations."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pytest
from playwright.sync_api import expect
from tests.airflow.made_runs import (
    NULLS,
    observe,
    publish,
)

from stagehold.gates.verdict_pages import docs_uri
from stagehold.gates.verdicts import ROWS
from stagehold.lake.store.files import files_at
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Cell, GateResult
from stagehold.plan.resume.waiving import in_force
from stagehold.settings import load_settings
from stagehold.spec.loading.loader import find_pipeline

pytestmark = [pytest.mark.airflow, pytest.mark.browser]

REASON = "the supplier's known returns"
COLOUR = "(square) => getComputedStyle(square).backgroundColor"


def open_run(page, half_done) -> None:
    page.goto(f"/dags/{half_done.dag_id}/runs/{half_done.run_id}/plugin/stagehold")


def held_now(run) -> list[tuple[int, str, str]]:
    with Ledger.open(load_settings().ledger_url) as ledger:
        words = in_force(ledger.waivers.of(run.dag_id, run.run_id), datetime.now(UTC))
        return [(one.partition, one.waived_by, one.reason) for one in words]


def test_a_whole_group_is_waived_on_the_page_and_resume_offers_to_publish_it(page, refused_run):
    open_run(page, refused_run)
    unmet = page.get_by_test_id("unmet").get_by_role("row")
    expect(unmet).to_have_count(3)  # the heading, and a row for each expectation
    expect(unmet.nth(1)).to_contain_text("shipping_priority[3\u20137]")
    expect(page.get_by_test_id("resume")).to_be_disabled()
    unmet.nth(1).get_by_role("button", name="Waive").click()
    form = page.get_by_test_id("waive")
    expect(form.get_by_role("button", name="Waive")).to_be_disabled()
    form.get_by_label("Why?").fill(REASON)
    form.get_by_role("button", name="Waive").click()
    expect(page.get_by_test_id("waived")).to_contain_text("Waived: shipping_priority[3\u20137]")
    assert held_now(refused_run) == [(number, "admin user", REASON) for number in range(3, 8)]
    expect(page.get_by_test_id("unmet")).to_contain_text("waived: Resume publishes it")
    expect(page.get_by_test_id("unmet")).to_contain_text("admin user waived it on")
    expect(page.get_by_test_id("unmet")).to_contain_text("waived, and blocked by another expectation")
    expect(page.locator("[data-waived=true]")).to_have_count(4)
    expect(page.get_by_role("button", name="shipping_priority[3]: blocked, but waived")).to_be_visible()
    expect(page.get_by_test_id("explanation")).to_contain_text("has 4 judged again; 2 stay blocked by a gate")
    page.get_by_test_id("resume").click()
    expect(page.get_by_test_id("cleared")).to_contain_text("cleared 1 task in this run")


def test_one_partition_is_waived_until_a_date_and_taken_back_where_its_facts_are(page, refused_run):
    open_run(page, refused_run)
    page.get_by_test_id("cell-shipping_priority-5").click()
    chosen = page.get_by_test_id("chosen")
    chosen.get_by_role("button", name="Waive").click()
    chosen.get_by_label("Why?").fill(REASON)
    chosen.get_by_label("Until").fill("2999-01-31")
    page.get_by_test_id("waive").get_by_role("button", name="Waive").click()
    expect(chosen.get_by_test_id("waiver")).to_contain_text(f"until 2999-01-31 00:00:00 UTC: {REASON}")
    assert held_now(refused_run) == [(5, "admin user", REASON)]
    expect(page.get_by_test_id("cell-shipping_priority-5")).to_have_attribute("data-waived", "true")
    publish(refused_run, "shipping_priority", [5])
    waived = page.get_by_role("button", name="shipping_priority[5]: consumable, though its gate refuses it: waived")
    expect(waived).to_be_visible()
    assert waived.evaluate(COLOUR) != page.get_by_test_id("cell-shipping_priority-0").evaluate(COLOUR)
    page.reload()  # the word stays where the gate's verdict is, though nothing is wrong with the partition
    word = page.get_by_test_id("gates").get_by_test_id("word")
    expect(word).to_contain_text("shipping_priority[5]: admin user waived it on")
    expect(word).to_contain_text(f"until 2999-01-31 00:00:00 UTC: {REASON}")
    page.get_by_test_id("cell-shipping_priority-5").click()
    expect(chosen.get_by_test_id("waiver")).to_contain_text("admin user waived it on")
    chosen.get_by_role("button", name="Take back").click()
    chosen.get_by_label("Why?").fill("it was not known at all")
    page.get_by_test_id("waive").get_by_role("button", name="Take back").click()
    expect(page.get_by_test_id("waived")).to_contain_text("Taken back: shipping_priority[5]")
    expect(chosen).to_contain_text("published by a waiver that has ended: Resume takes it out")
    assert held_now(refused_run) == []


@pytest.mark.parametrize("page", ["viewer"], indirect=True)
def test_a_viewer_waives_nothing(page, refused_run):
    open_run(page, refused_run)
    expect(page.get_by_test_id("unmet")).to_contain_text("blocked")
    expect(page.get_by_role("button", name="Waive")).to_have_count(0)


def test_a_waiver_that_the_server_refuses_says_why(page, refused_run):
    open_run(page, refused_run)
    page.get_by_test_id("unmet").get_by_role("button", name="Waive").first.click()
    page.get_by_label("Why?").fill(REASON)
    publish(refused_run, "shipping_priority", [4, 5], refused=())
    page.get_by_test_id("waive").get_by_role("button", name="Waive").click()
    alert = page.get_by_test_id("waive").get_by_role("alert")
    expect(alert).to_contain_text("its gate does not refuse shipping_priority[4-5]")
    assert held_now(refused_run) == []


def test_gates_that_pass_are_not_asked_about_before_somebody_wants_to_know(page, half_done):
    asked = []
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/gates") else None)
    open_run(page, half_done)
    gates = page.get_by_test_id("gates")
    expect(gates).to_contain_text("all that was judged is met")
    assert asked == []
    page.get_by_test_id("gates-toggle").click()
    expect(gates.get_by_test_id("verdicts")).to_have_count(0)
    assert len(asked) == 1


def test_what_a_gate_saw_and_observed_before_is_shown_on_a_click(page, refused_run):
    for before, value in ((2, "40.5"), (1, "41"), (0, "99")):
        observe(refused_run, "shipping_priority", value, before)
    open_run(page, refused_run)
    gate = page.get_by_test_id("gate-shipping_priority")
    lines = gate.get_by_test_id("verdicts")
    expect(lines).to_have_count(3)
    expect(lines.nth(0).locator("[data-outcome=failed]")).to_have_count(5)
    expect(lines.nth(0)).to_contain_text("5 not met: blocks11 without a verdict")
    lines.nth(0).get_by_role("button").click()
    expect(lines.nth(0).get_by_test_id("samples")).to_contain_text("shipping_priority[3]: got 3 of 100 unexpected")
    expect(lines.nth(0).get_by_role("code").first).to_have_text("-1\n-2")
    lines.nth(2).get_by_role("button").click()
    chart = lines.nth(2).get_by_test_id("chart")
    expect(chart.locator("circle")).to_have_count(3)
    expect(chart.locator("[data-failed=true]")).to_have_count(1)
    expect(chart.get_by_test_id("most")).to_have_count(1)  # a level line has no height, so it is never "visible"
    expect(chart).to_have_attribute(
        "aria-label", re.compile("41; at least 0, at most 50.*99; at least 0, at most 50; 1 failed")
    )
    page.get_by_test_id("cell-shipping_priority-3").click()
    page.get_by_test_id("chosen").get_by_role("button", name="Waive").click()
    page.get_by_label("Why?").fill(REASON)
    page.get_by_test_id("waive").get_by_role("button", name="Waive").click()
    expect(lines.nth(0).locator("[data-outcome=waived]")).to_have_count(1)
    page.get_by_test_id("gates-toggle").click()
    expect(lines).to_have_count(0)


def test_pages_of_great_expectations_are_made_and_opened_from_the_card(page, refused_run):
    open_run(page, refused_run)
    card = page.get_by_test_id("docs")
    card.get_by_role("button", name="Make pages of Great Expectations").click()
    expect(card.get_by_role("status")).to_contain_text("Made 2 pages", timeout=60_000)
    with page.context.expect_page() as opened:
        card.get_by_role("link", name="Pages of Great Expectations").click()
    docs = opened.value
    expect(docs.get_by_role("heading", level=1)).to_contain_text(f"for {refused_run.run_id}")
    docs.get_by_role("link", name="shipping_priority").first.click()
    expect(docs.locator("main")).to_contain_text("revenue")
    page.reload()
    expect(card.get_by_role("button", name="Make the pages anew")).to_be_visible()


@pytest.mark.parametrize("page", ["viewer"], indirect=True)
def test_a_viewer_makes_no_pages(page, refused_run):
    open_run(page, refused_run)
    expect(page.get_by_test_id("docs")).to_contain_text("stagehold gates RUN --docs")
    expect(page.get_by_test_id("docs").get_by_role("button")).to_have_count(0)


def test_refused_rows_are_shown_by_their_keys(page, refused_run):
    settings = load_settings()
    stage = find_pipeline(refused_run.dag_id, settings).stage("shipping_priority")
    rows = [{"o_orderkey": 17, "revenue": None}, {"o_orderkey": 23, "revenue": None}]
    seen, cell = json.dumps({ROWS: rows}), Cell(refused_run.dag_id, stage.id, refused_run.run_id)
    said = "2 of 100 unexpected, such as None (o_orderkey=17)"
    now = datetime.now(UTC)
    with Ledger.open(settings.ledger_url) as ledger:
        ledger.gates.record([GateResult(cell, 3, "again", "made", NULLS, False, said, now, result=seen)])
    open_run(page, refused_run)
    line = page.get_by_test_id("gate-shipping_priority").get_by_test_id("verdicts").nth(0)
    line.get_by_role("button").click()
    table = line.get_by_test_id("sample-rows")
    expect(table.get_by_role("row")).to_have_count(3)
    expect(table.get_by_role("row").nth(0)).to_contain_text("o_orderkey")
    expect(table.get_by_role("row").nth(2)).to_contain_text("23")
    expect(line).to_contain_text(said)


def test_pages_of_great_expectations_are_read_from_the_card_and_can_load_nothing(page, refused_run):
    files = files_at(docs_uri(load_settings().lake_uri, refused_run.dag_id, refused_run.run_id))
    files.create("index.html", b'<a href="0.html">one</a>')
    files.create("0.html", b"<p id=at>here<script>at.textContent = 'elsewhere'</script><img src=/static/pin_32.png>")
    open_run(page, refused_run)
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Pages of Great Expectations").click()
    docs = opened.value
    said = []
    docs.on("console", lambda message: said.append(message.text))
    docs.get_by_role("link", name="one").click()
    expect(docs.locator("#at")).to_have_text("here")
    docs.wait_for_load_state()
    assert any("sandboxed" in text or "Content Security Policy" in text for text in said), said
