"""The run page in a real browser, on Airflow's own api-server; what attempts and scheduler do is played by hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.airflow.made_runs import (
    FAILURE,
    SPLITS,
    begin_attempt,
    end_dag_run,
    fill_ledger,
    make_dag_run,
    moved_away,
    spoil,
)

from stagehold.airflow.run_page import stage_cells
from stagehold.airflow.telling.untold import note_untold, untold
from stagehold.ledger.ledger import Ledger
from stagehold.settings import load_settings

pytestmark = [pytest.mark.airflow, pytest.mark.browser]

COLOUR = "(square) => getComputedStyle(square).backgroundColor"


def open_run(page, half_done) -> None:
    page.goto(f"/dags/{half_done.dag_id}/runs/{half_done.run_id}/plugin/stagehold")


def test_the_page_shows_what_is_consumable_and_what_went_wrong(page, half_done):
    open_run(page, half_done)
    expect(page.get_by_test_id("headline")).to_have_text(
        "Failed at orders_by_customer: 53 of 81 partitions are consumable"
    )
    expect(page.get_by_test_id("failure-orders_by_customer")).to_have_text(FAILURE)
    expect(page.get_by_test_id("cause-orders_by_customer")).to_have_text("recoverable failure, rule anything_else")
    expect(page.get_by_test_id("label-orders_by_customer")).to_have_text("team: orders")
    expect(page.get_by_test_id("tally-orders_by_customer")).to_have_text("5 / 16")
    expect(page.locator("[data-testid^=cell-][data-state=consumable]")).to_have_count(53)
    expect(page.locator("[data-testid^=cell-][data-state=failed]")).to_have_count(11)
    expect(page.locator("[data-testid^=cell-][data-state=waiting]")).to_have_count(17)


def test_a_lake_that_was_moved_away_leaves_the_page_with_the_ledgers_figures_and_the_reason(page, half_done):
    open_run(page, half_done)
    expect(page.get_by_test_id("looked")).to_have_text(re.compile(r"^as found \d+ s ago$"))
    with moved_away(Path(load_settings().lake_uri)):
        page.reload()
        expect(page.get_by_test_id("looked")).to_have_text("as recorded")
        expect(page.get_by_test_id("headline")).to_have_text(
            "Failed at orders_by_customer: 53 of 81 partitions are consumable"
        )
        expect(page.get_by_test_id("unseen")).to_contain_text("Source stage customer has no files")
        expect(page.get_by_test_id("unplanned")).to_have_count(0)
        expect(page.get_by_test_id("resume")).to_be_disabled()
    page.reload()
    expect(page.get_by_test_id("looked")).to_have_text(re.compile(r"^as found \d+ s ago$"))


def test_each_square_says_what_it_is_without_its_colour(page, half_done):
    open_run(page, half_done)
    done = page.get_by_role("button", name="orders_by_customer[4]: consumable")
    expect(done).to_have_attribute(
        "title",
        "orders_by_customer[4]: consumable · consumable, and nothing it follows from changed · 104 rows · "
        "attempt epoch 1, wave 1",
    )
    missing = page.get_by_role("button", name="orders_by_customer[5]: failed")
    assert done.inner_text() != missing.inner_text()


def test_a_click_keeps_the_facts_of_a_partition_in_view(page, half_done):
    open_run(page, half_done)
    page.get_by_test_id("cell-customer-3").click()
    expect(page.get_by_test_id("chosen")).to_contain_text("customer[3]")
    expect(page.get_by_test_id("chosen")).to_contain_text("103")
    page.get_by_test_id("cell-customer-3").click()
    expect(page.get_by_test_id("chosen")).to_have_count(0)


def test_the_preview_says_what_runs_again_and_why(page, half_done):
    open_run(page, half_done)
    expect(page.get_by_test_id("preview")).to_contain_text("reuses 53 partitions, runs 28, clears 3 tasks in this run")
    expect(page.get_by_test_id("preview")).to_contain_text("never computed for this interval (5-15)")


def test_pressing_resume_clears_the_tasks_and_the_page_turns_green_when_the_run_ends(page, half_done):
    open_run(page, half_done)
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_test_id("cleared")).to_contain_text("cleared 3 tasks in this run")
    expect(page.get_by_test_id("headline")).to_have_text("Running: 53 of 81 partitions are consumable")
    expect(page.get_by_test_id("resume")).to_be_disabled()
    fill_ledger(half_done.dag_id, half_done.run_id, {"orders_by_customer": SPLITS})
    expect(page.get_by_test_id("tally-orders_by_customer")).to_have_text("16 / 16")
    fill_ledger(half_done.dag_id, half_done.run_id, {"shipping_priority": SPLITS, "top_orders": 1})
    end_dag_run(half_done.dag_id, half_done.run_id)
    expect(page.get_by_test_id("headline")).to_have_text("Success: 81 of 81 partitions are consumable")
    expect(page.get_by_test_id("header")).to_have_attribute("data-state", "success")
    expect(page.get_by_test_id("resume")).to_have_count(0)


def test_an_attempt_whose_lease_is_over_is_lost_while_airflow_still_waits_for_it(page, half_done):
    lease = begin_attempt(half_done, "orders_by_customer", 600)
    open_run(page, half_done)
    page.get_by_test_id("attempts").locator("summary").click()
    rows = page.get_by_test_id("attempts").get_by_role("row")
    expect(rows.last).to_contain_text("orders_by_customer")
    expect(page.get_by_test_id("cell-orders_by_customer-5")).to_have_attribute("data-state", "running")
    with Ledger.open(load_settings().ledger_url) as ledger:
        ledger.leases.release(lease)  # as if its time had come
    expect(rows.last.get_by_test_id("lost")).to_contain_text("noticed by its lease, which nobody renewed")
    expect(page.get_by_test_id("cell-orders_by_customer-5")).not_to_have_attribute("data-state", "running")
    expect(page.get_by_test_id("failures")).to_contain_text("ended without a word")
    page.goto(f"/dags/{half_done.dag_id}/plugin/stagehold-intervals")
    square = page.get_by_test_id(f"cell-{half_done.run_id}-orders_by_customer")
    expect(square).to_have_attribute("data-state", "failed")
    end_dag_run(half_done.dag_id, half_done.run_id)  # else it counts as under way for whoever comes after


def test_the_page_follows_airflows_dark_mode(page, half_done):
    page.emulate_media(color_scheme="dark")
    open_run(page, half_done)
    header = page.get_by_test_id("header")
    expect(header).to_be_visible()
    dark = header.evaluate(COLOUR)
    page.emulate_media(color_scheme="light")
    page.reload()
    expect(header).to_be_visible()
    assert header.evaluate(COLOUR) != dark


def test_a_dag_that_is_not_ours_is_told_apart_politely(page, run_of_another):
    open_run(page, run_of_another)
    expect(page.get_by_test_id("nothing")).to_contain_text("Nothing of Stagehold here")


def test_the_tab_is_reached_from_the_runs_own_page(page, half_done):
    page.goto(f"/dags/{half_done.dag_id}/runs/{half_done.run_id}")
    page.get_by_role("link", name="Stagehold").click()
    expect(page.get_by_test_id("tally-customer")).to_have_text("16 / 16")


def test_a_stage_that_is_good_is_run_again_from_the_facts_of_one_of_its_partitions(page, half_done):
    open_run(page, half_done)
    page.get_by_test_id("cell-customer-5").click()
    form = page.get_by_test_id("again")
    form.get_by_role("button", name="Run customer again, even if nothing changed").click()
    expect(form).to_contain_text("16 partitions of customer will be computed once more.")
    form.get_by_role("button", name="Run it again").click()
    expect(page.get_by_test_id("cleared")).to_contain_text(
        "customer runs 16 of 16 partitions: asked for: computed again"
    )
    with Ledger.open(load_settings().ledger_url) as ledger:
        (asked,) = ledger.restores.of_run(f"{half_done.dag_id}/{half_done.run_id}")
    assert asked.work_order.anew == ("customer",)


def test_whom_nobody_could_tell_of_a_run_is_said_at_its_top(page, refused_run):
    with Ledger.open(load_settings().ledger_url) as ledger:
        failed = untold("notifier pager:Pager of on_failure", ConnectionError("nobody answers"))
        note_untold(f"{refused_run.dag_id}/{refused_run.run_id}", [failed], ledger)
    open_run(page, refused_run)
    told = page.get_by_test_id("untold")
    expect(told).to_contain_text("notifier pager:Pager of on_failure: ConnectionError: nobody answers")


def test_a_thousand_partitions_are_a_strip(page, half_done):
    """The server's answer is made up here: no pipeline of this project has so many."""
    groups = {
        "failed": [[10, 12], [500, 500]],
        "waived": [[700, 719]],
        "passed": [[0, 9], [13, 499], [501, 699], [720, 999]],
    }
    outcomes = [
        {
            "outcome": outcome,
            "partitions": ranges,
            "count": sum(last - first + 1 for first, last in ranges),
            "samples": [],
        }
        for outcome, ranges in groups.items()
    ]
    verdicts = {
        "suite": "made",
        "expectation": "expect_column_values_to_not_be_null(key)",
        "severity": "warning",
        "judged": 1000,
        "judged_at": "2026-11-20T02:00:00Z",
        "outcomes": outcomes,
        "numeric": False,
    }
    stage = {"stage": "orders", "gate": "orders", "partitions": 1000, "expectations": [verdicts]}
    page.route("**/gates", lambda route: route.fulfill(json={"stages": [stage], "docs": False}))
    open_run(page, half_done)
    page.get_by_test_id("gates-toggle").click()
    line = page.get_by_test_id("verdicts")
    expect(line).to_contain_text("4 not met: blocks")
    expect(line).to_contain_text("976 met")
    expect(line.locator("[data-outcome]")).to_have_count(7)
    strip = line.locator("[data-outcome=waived]")
    expect(strip).to_have_attribute("title", "orders[700\u2013719]: not met, and waived")
    left, whole = strip.bounding_box(), strip.locator("..").bounding_box()
    assert abs((left["x"] - whole["x"]) / whole["width"] - 0.7) < 0.01


@pytest.fixture
def in_strips(monkeypatch):
    """Stages of 16 partitions are as many as can be seen at a glance."""
    monkeypatch.setattr(stage_cells, "MOST_CELLS", 8)


def test_a_part_of_a_strip_opens_as_squares_by_mouse_and_keyboard(page, in_strips, half_done):
    open_run(page, half_done)
    strip = page.get_by_test_id("strip-orders_by_customer")
    expect(strip.get_by_role("button")).to_have_count(8)
    expect(page.locator("[data-testid^=cell-orders_by_customer]")).to_have_count(0)
    part = page.get_by_test_id("part-orders_by_customer-4")
    expect(part).to_have_attribute("data-state", "failed")
    expect(part).to_have_attribute("title", "orders_by_customer[4\u20135]: 1 consumable, 1 failed")
    part.focus()
    page.keyboard.press("Enter")
    expect(page.locator("[data-testid^=cell-orders_by_customer]")).to_have_count(2)
    page.get_by_test_id("cell-orders_by_customer-5").click()
    expect(page.get_by_test_id("chosen")).to_contain_text("never computed for this interval")
    part.click()
    expect(page.locator("[data-testid^=cell-orders_by_customer]")).to_have_count(0)


def test_what_is_folded_has_no_elements_until_it_is_opened(page, in_strips, half_done):
    """So that the first look at a large run is quickly on the screen."""
    open_run(page, half_done)
    expect(page.locator("[data-testid^=part-]")).to_have_count(40)
    expect(page.locator("[data-testid^=part-] *")).to_have_count(0)
    for name in ("attempts", "history", "gates"):
        expect(page.get_by_test_id(name).locator("table, tr, [role=img]")).to_have_count(0)
    attempts = page.get_by_test_id("attempts")
    attempts.locator("summary").click()
    expect(attempts.get_by_role("row")).not_to_have_count(0)
    attempts.locator("summary").click()
    expect(attempts.locator("tr")).to_have_count(0)


def test_what_failed_comes_first_where_stages_are_long(page, in_strips, half_done):
    open_run(page, half_done)
    expect(page.locator("[data-testid^=stage-]").first).to_have_attribute("data-testid", "stage-orders_by_customer")


def test_a_poll_of_an_unchanged_run_is_answered_with_304(page, half_done):
    answers = []
    page.on("response", lambda answer: answers.append(answer.status) if answer.url.endswith("/grid") else None)
    open_run(page, half_done)
    expect(page.get_by_test_id("headline")).to_be_visible()
    page.wait_for_timeout(11_000)
    assert answers[0] == 200
    assert answers[1:] == [304] * len(answers[1:])
    assert answers[1:]


def test_what_runs_again_though_it_is_consumable_is_confirmed_first(page, half_done):
    fill_ledger(half_done.dag_id, half_done.run_id, {"orders_by_customer": SPLITS, "shipping_priority": 3})
    spoil(half_done, "shipping_priority", range(3))
    open_run(page, half_done)
    page.get_by_test_id("resume").click()
    asked = page.get_by_test_id("confirmation")
    expect(asked).to_contain_text("3 partitions are consumable now and run again: shipping_priority (3)")
    asked.get_by_role("button", name="Not now").click()
    expect(asked).to_have_count(0)
    expect(page.get_by_test_id("cleared")).to_have_count(0)
    expect(page.get_by_test_id("headline")).to_contain_text("64 of 81 partitions are consumable, 3 more will run again")
    page.keyboard.press("Enter")  # the button has the focus again
    expect(page.get_by_role("button", name="Run all of it")).to_be_focused()
    page.keyboard.press("Escape")
    expect(asked).to_have_count(0)
    expect(page.get_by_test_id("resume")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Run all of it")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("cleared")).to_be_visible()
    expect(page.get_by_test_id("resumed")).to_contain_text("Resumed by admin user")


def test_airflows_own_page_is_asked_anew_after_a_resume(page, half_done):
    open_run(page, half_done)
    expect(page.get_by_test_id("resume")).to_be_enabled()
    with page.expect_response(lambda answer: "/api/v2/dags/" in answer.url and "dagRuns" in answer.url):
        page.get_by_test_id("resume").click()


CUT_OFF = """(page) => [...page.querySelectorAll("*")]
    .filter((part) => part.scrollWidth > part.clientWidth + 1 && getComputedStyle(part).overflowX !== "visible")
    .map((part) => `${part.dataset.testid ?? part.tagName}: ${part.textContent.slice(0, 60)}`)"""


def test_nothing_is_cut_off_at_700_pixels_in_either_theme(page, refused_run):
    open_run(page, refused_run)
    page.get_by_test_id("cell-shipping_priority-3").click()
    page.get_by_test_id("unmet").get_by_role("button", name="Waive").first.click()
    expect(page.get_by_test_id("verdicts")).not_to_have_count(0)
    for name in ("attempts", "history"):
        page.get_by_test_id(name).locator("summary").focus()
        page.keyboard.press("Enter")
    expect(page.get_by_test_id("history")).to_contain_text("running to finished: reported_finished")
    panel = page.get_by_test_id("stagehold")
    panel.evaluate("(panel) => { panel.style.width = '700px'; }")  # Airflow's own page is never so narrow
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert panel.evaluate(CUT_OFF) == []


def test_two_users_see_one_run_and_only_one_of_them_may_resume_it(page, other_page, half_done):
    with_rights, without = page, other_page("viewer")
    for each in (with_rights, without):
        open_run(each, half_done)
        expect(each.get_by_test_id("preview")).to_contain_text("runs 28")
    expect(without.get_by_test_id("resume")).to_be_disabled()
    expect(without.get_by_test_id("explanation")).to_contain_text("cannot resume it")
    second = other_page("op")
    open_run(second, half_done)
    expect(second.get_by_test_id("resume")).to_be_enabled()
    with_rights.get_by_test_id("resume").click()
    expect(with_rights.get_by_test_id("cleared")).to_be_visible()
    second.get_by_test_id("resume").click()
    refused = second.get_by_test_id("refused")
    expect(refused).to_contain_text("is still queued")
    expect(refused).to_contain_text("admin user resumed it at")
    expect(without.get_by_test_id("resumed")).to_contain_text("Resumed by admin user")
    expect(without.get_by_test_id("headline")).to_contain_text("Running")


def test_a_stage_under_way_says_when_it_is_done(page, half_done):
    open_run(page, half_done)
    pace = {"wave": 1, "recorded": 4, "left": 4, "per_minute": 9.5, "seconds_to_go": 25.3}
    told = page.evaluate(
        "async (pace) => (await import('/stagehold/static/run_page/run_texts.js')).paceText(pace)",
        {**pace, "recorded_at": "2026-11-24T23:00:00Z"},
    )
    assert re.sub(r"\s", " ", told) == (
        "wave 2: 4 recorded, 4 to go, 9.5 a minute, done at about 2026-11-24 23:00:25 UTC"
    )


def test_the_page_says_of_which_run_its_data_is(page, half_done):
    later = f"{half_done.run_id}-again"
    make_dag_run(half_done.dag_id, later, {"orders_by_customer": "failed"}, conf={"interval": half_done.run_id})
    page.goto(f"/dags/{half_done.dag_id}/runs/{later}/plugin/stagehold")
    told = page.get_by_test_id("origins")
    expect(told).to_have_text(f"0 computed by this run, 53 reused of run {half_done.dag_id}/{half_done.run_id}")
    told.get_by_role("link").click()
    expect(page).to_have_url(re.compile(f"{half_done.run_id}/plugin/stagehold"))
    expect(page.get_by_test_id("headline")).to_contain_text("53 of 81")
    expect(told).to_have_count(0)
