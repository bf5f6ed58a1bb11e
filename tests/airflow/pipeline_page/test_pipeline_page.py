"""The tab of a DAG in a real browser, on intervals that were written into the ledger by hand."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect
from tests.airflow.pipeline_page.made_intervals import (
    BLOCKED,
    DAYS,
    FAILED,
    FAILURE,
    PIPELINE,
    RECOVERED,
    REUSED,
    SHOWN,
    SPLITS,
    STAGES,
    TAB,
    WARNED,
    day,
    make_huge,
)

pytestmark = [pytest.mark.airflow, pytest.mark.browser]

COLOUR = "(square) => getComputedStyle(square).backgroundColor"
UNREADABLE = "it was recorded in a format this version cannot read"  # as made records have no real keys


def cell(page, number, stage):
    return page.get_by_test_id(f"cell-{day(number)}-{stage}")


def test_the_newest_intervals_are_shown_and_what_went_wrong_stands_out(tab):
    expect(tab.get_by_test_id("headline")).to_have_text(f"2 of {SHOWN} intervals need a look")
    expect(tab.get_by_test_id("summary")).to_contain_text(f"{DAYS} intervals on record, {SHOWN} newest shown")
    expect(tab.get_by_test_id("summary")).to_contain_text(f"{day(FAILED)}: orders_by_customer failed")
    expect(tab.locator("[data-testid^=row-]")).to_have_count(SHOWN)
    expect(tab.locator("[data-testid^=row-]").first).to_have_attribute("data-testid", f"row-{day(DAYS - 1)}")
    failed = cell(tab, FAILED, "orders_by_customer")
    expect(failed).to_have_attribute("data-state", "failed")
    expect(failed).to_contain_text(f"5/{SPLITS}")
    assert failed.evaluate(COLOUR) != cell(tab, FAILED, "orders").evaluate(COLOUR)
    expect(cell(tab, FAILED, "top_orders")).to_have_attribute("data-state", "missing")


def test_each_square_says_what_it_is_without_its_colour(tab):
    reused, computed = cell(tab, REUSED, "orders"), cell(tab, REUSED, "top_orders")
    expect(reused).to_have_attribute("data-reused", "true")
    expect(computed).to_have_attribute("data-reused", "false")
    assert reused.inner_text()[0] != computed.inner_text()[0]
    expect(reused).to_have_attribute(
        "title",
        f"orders for {day(REUSED)}: consumable · 16 partitions · all by earlier runs, none by the newest · 5,160 rows"
        f" · stale: 16 partitions again: {UNREADABLE}",
    )
    expect(cell(tab, WARNED, "shipping_priority")).to_have_attribute("data-verdict", "warned")
    expect(cell(tab, BLOCKED, "shipping_priority")).to_have_attribute("data-verdict", "failed")
    expect(cell(tab, DAYS - 1, "top_orders")).to_have_attribute(
        "aria-label",
        f"top_orders for {day(DAYS - 1)}: consumable · 1 partition · all computed by the newest run · 360 rows · "
        "gate top_orders passed (1 partition judged) · stale: 1 partition again: "
        "reads shipping_priority[0-15], which runs again",
    )


def test_a_click_shows_the_facts_of_a_stage_and_leads_to_its_run(tab):
    cell(tab, REUSED, "top_orders").click()
    facts = tab.get_by_test_id("facts")
    expect(facts).to_contain_text("all computed by the newest run")
    expect(facts.get_by_test_id("made-by")).to_contain_text(f"backfill__{day(REUSED)}")
    expect(facts).to_contain_text("Rows100")
    expect(facts).to_contain_text("Size97.7 KiB")
    expect(facts.get_by_role("link", name="Show its partitions")).to_have_attribute(
        "href",
        f"{tab.url.removesuffix(TAB)}/dags/{PIPELINE}/runs/backfill__{day(REUSED)}/plugin/stagehold?stage=top_orders",
    )
    cell(tab, FAILED, "orders_by_customer").click()
    expect(facts).to_have_count(1)
    expect(facts.get_by_test_id("failure")).to_contain_text("recoverable failure, rule anything_else")
    expect(facts.get_by_test_id("failure")).to_contain_text(FAILURE)
    cell(tab, FAILED, "orders_by_customer").click()
    expect(facts).to_have_count(0)


def test_arrow_keys_go_through_the_grid_and_enter_opens_a_cell(tab):
    at_hand = tab.get_by_test_id("intervals").locator("[data-place][tabindex='0']")
    expect(at_hand).to_have_count(1)
    tab.get_by_test_id(f"interval-{day(DAYS - 1)}").focus()
    for key in ("ArrowUp", "ArrowDown", "ArrowRight", "ArrowRight"):
        tab.keyboard.press(key)
    expect(cell(tab, DAYS - 2, "orders")).to_be_focused()
    expect(at_hand).to_have_count(1)
    tab.keyboard.press("Enter")
    expect(tab.get_by_test_id("facts")).to_contain_text(f"orders for {day(DAYS - 2)}")
    tab.keyboard.press("End")
    expect(cell(tab, DAYS - 2, "top_orders")).to_be_focused()
    tab.keyboard.press("Control+Home")
    expect(tab.get_by_test_id(f"interval-{day(DAYS - 1)}")).to_be_focused()
    tab.keyboard.press("Space")
    expect(tab.get_by_test_id("chosen-range")).to_contain_text(f"{day(DAYS - 1)} chosen")


def test_pages_lead_back_in_time_and_forth(tab):
    grid = tab.get_by_test_id("intervals")
    grid.get_by_role("button", name="Older").click()
    rows = tab.locator("[data-testid^=row-]")
    expect(rows).to_have_count(DAYS - SHOWN)
    expect(rows.first).to_have_attribute("data-testid", f"row-{day(DAYS - SHOWN - 1)}")
    expect(grid.get_by_role("button", name="Older")).to_be_disabled()
    grid.get_by_role("button", name="Newer").click()
    expect(rows.first).to_have_attribute("data-testid", f"row-{day(DAYS - 1)}")


def test_what_failed_is_found_among_all_dates_and_two_dates_are_compared(tab):
    rows = tab.locator("[data-testid^=row-]")
    old = f"{DAYS - SHOWN} intervals, of which 0 failed and {DAYS - SHOWN} need a look."
    expect(tab.get_by_test_id("elsewhere")).to_have_text(f"Not on this page: {old}")
    cell(tab, FAILED, "orders_by_customer").click()
    tab.get_by_test_id("look-failed").click()
    expect(rows).to_have_count(2)
    tab.get_by_test_id("range-first").fill(day(FAILED))
    expect(rows).to_have_count(1)
    expect(tab.get_by_test_id("range-first")).to_be_focused()  # the tab was not made anew
    expect(tab.get_by_test_id("facts")).to_be_visible()
    tab.reload()
    expect(rows).to_have_count(1)
    expect(tab.get_by_test_id(f"row-{day(FAILED)}")).to_be_visible()
    tab.go_back()
    expect(rows).to_have_count(2)
    tab.go_back()
    expect(rows).to_have_count(SHOWN)
    tab.get_by_test_id(f"interval-{day(WARNED)}").click()
    tab.get_by_test_id(f"interval-{day(REUSED)}").click(modifiers=["Shift"])
    tab.get_by_test_id("comparison").locator("summary").click()
    line = tab.get_by_test_id("compared").get_by_role("row", name="top_orders")
    expect(line).to_contain_text("passed")
    expect(line).to_contain_text("1 of 1")


def test_a_square_leads_to_the_partitions_of_its_stage(page, made, half_done):
    page.goto(TAB)
    page.get_by_test_id(f"cell-{half_done.run_id}-orders_by_customer").click()
    page.get_by_role("link", name="Show its partitions").click()
    expect(page.get_by_test_id("stage-orders_by_customer")).to_have_attribute("data-named", "true")
    expect(page.get_by_test_id("cell-orders_by_customer-5")).to_be_in_viewport()


def square(page, name, number, stage):
    return page.get_by_test_id(f"square-{PIPELINE}/{name}__{day(number)}-{stage}")


def test_each_run_says_what_it_did_about_each_stage(tab):
    outcomes = {
        ("backfill", REUSED, "orders"): "reused",
        ("scheduled", FAILED, "orders_by_customer"): "failed",
        ("scheduled", FAILED, "top_orders"): "none",
        ("scheduled", BLOCKED, "shipping_priority"): "blocked",
        ("scheduled", DAYS - 1, "orders"): "ran",
    }
    for (name, number, stage), outcome in outcomes.items():
        expect(square(tab, name, number, stage)).to_have_attribute("data-outcome", outcome)
    again = square(tab, "scheduled", RECOVERED, "orders_by_customer")
    expect(again).to_have_attribute("title", re.compile("ran · 16 ran · 2 attempts"))
    expect(square(tab, "backfill", REUSED, "orders")).to_have_attribute(
        "title", f"orders in backfill__{day(REUSED)} for {day(REUSED)}: reused · 16 reused · 24 s spared"
    )
    row = tab.get_by_test_id(f"run-{PIPELINE}/backfill__{day(REUSED)}")
    expect(row.get_by_test_id("took")).to_contain_text("spared")
    expect(tab.get_by_test_id("matrix-legend")).to_contain_text("blocked by its gate")
    assert square(tab, "scheduled", FAILED, "orders").evaluate(COLOUR) != square(
        tab, "scheduled", FAILED, "orders_by_customer"
    ).evaluate(COLOUR)


def test_runs_are_found_by_what_became_of_a_stage_and_a_reload_keeps_that(tab):
    card = tab.get_by_test_id("run-matrix")
    rows = card.locator(f"[data-testid^='run-{PIPELINE}']")
    tab.get_by_test_id("range-first").fill(day(0))  # without runs of other tests, of other dates
    tab.get_by_test_id("range-last").fill(day(DAYS))
    expect(rows).to_have_count(SHOWN)
    card.get_by_role("button", name="Older runs").click()
    expect(rows).to_have_count(DAYS + 1 - SHOWN)
    card.get_by_label("What became of a stage").select_option("failed")
    expect(rows).to_have_count(1)
    expect(square(tab, "scheduled", FAILED, "orders_by_customer")).to_be_visible()
    tab.reload()
    expect(rows).to_have_count(1)
    card.get_by_test_id("matrix-filters").get_by_role("combobox").nth(1).select_option("top_orders")
    expect(card).to_contain_text("No run is like that.")
    card.get_by_label("What became of a stage").select_option("")
    expect(rows).to_have_count(SHOWN)
    tab.get_by_test_id("range-first").fill(day(REUSED))
    tab.get_by_test_id("range-last").fill(day(REUSED))
    expect(rows).to_have_count(2)


def test_a_square_of_a_run_leads_into_it(page, made, half_done):
    page.goto(f"{TAB}?outcome=failed")
    ours = page.get_by_test_id("run-matrix").get_by_test_id(f"square-{PIPELINE}/{half_done.run_id}-orders_by_customer")
    expect(ours).to_have_attribute("data-outcome", "failed")
    ours.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("stage-orders_by_customer")).to_have_attribute("data-named", "true")
    expect(page.get_by_test_id("cell-orders_by_customer-5")).to_be_in_viewport()


def test_at_700_pixels_only_the_table_scrolls_and_its_first_column_stays(tab):
    panel, table = tab.get_by_test_id("stagehold-intervals"), tab.get_by_test_id("scrolling")
    panel.evaluate("(panel) => { panel.style.width = '700px'; }")
    cell(tab, FAILED, "orders_by_customer").click()
    for name in ("summary", "intervals", "run-matrix", "backfill", "growth", "recoveries", "facts"):
        wide = tab.get_by_test_id(name).evaluate("(card) => [card.scrollWidth, card.clientWidth]")
        assert wide[0] <= wide[1], name
    assert panel.evaluate("(panel) => panel.scrollWidth <= panel.clientWidth")
    table.evaluate("(box) => { box.style.width = '500px'; box.scrollLeft = 10000; }")
    name, last = tab.get_by_test_id(f"interval-{day(DAYS - 1)}"), cell(tab, DAYS - 1, "top_orders")
    box = table.bounding_box()
    assert box["x"] <= name.bounding_box()["x"] < box["x"] + 40
    end = last.bounding_box()
    assert end["x"] + end["width"] <= box["x"] + box["width"]


def test_the_tab_follows_airflows_dark_mode(tab):
    light = cell(tab, DAYS - 1, "orders").evaluate(COLOUR)
    tab.emulate_media(color_scheme="dark")
    tab.reload()
    expect(cell(tab, DAYS - 1, "orders")).to_be_visible()
    assert cell(tab, DAYS - 1, "orders").evaluate(COLOUR) != light


def test_charts_tell_how_stages_grew(tab):
    chart = tab.get_by_test_id("growth-top_orders")
    expect(chart.get_by_role("img")).to_have_attribute(
        "aria-label", re.compile(rf"^Duration of top_orders. {day(DAYS - SHOWN)}: 0.8 s. .*{day(DAYS - 1)}: 1.8 s$")
    )
    tab.get_by_role("button", name="Rows", exact=True).click()
    expect(chart.locator("circle")).to_have_count(SHOWN - 1)
    expect(chart.locator("title").last).to_have_text(f"{day(DAYS - 1)}: 360")


def test_recoveries_tell_what_was_reused_and_how_long_it_took(tab):
    card = tab.get_by_test_id("recoveries")
    line = card.get_by_role("row").nth(1)
    expect(line).to_contain_text(day(RECOVERED))
    expect(line).to_contain_text(FAILURE)
    expect(line).to_contain_text("5 partitions")
    expect(line).to_contain_text("3 s of work saved")


def test_a_dag_that_is_not_ours_is_told_apart_politely(page, made):
    page.goto("/dags/stagehold_maintenance/plugin/stagehold-intervals")
    expect(page.get_by_test_id("nothing")).to_contain_text("Nothing of Stagehold here")
    expect(page.get_by_test_id("nothing")).to_contain_text("is not a Stagehold pipeline")


def test_the_tab_and_that_of_a_run_are_each_themselves_in_one_visit(page, made):
    page.goto(f"/dags/{PIPELINE}")
    page.get_by_role("link", name="Stagehold intervals").click()
    expect(page.get_by_test_id("headline")).to_contain_text("need a look")
    page.evaluate(f"window.history.pushState({{}}, '', '/dags/{PIPELINE}/runs/never/plugin/stagehold')")
    page.evaluate("window.dispatchEvent(new PopStateEvent('popstate', {state: {}}))")
    expect(page.get_by_test_id("nothing")).to_contain_text("There is no run")
    page.go_back()
    expect(page.get_by_test_id("headline")).to_contain_text("need a look")


def test_a_hundred_thousand_partitions_are_as_many_squares_as_there_are_stages(page, made):
    make_huge(made, "2027-01-01", 25_006)
    page.goto(TAB)
    square = page.get_by_test_id("cell-2027-01-01-orders")
    expect(square).to_contain_text("16")  # which the file declares, whatever else is on record
    expect(square).to_have_attribute("title", re.compile("2,500,600 rows"))
    expect(page.locator("[data-testid^=cell-]")).to_have_count(SHOWN * len(STAGES))
    assert page.get_by_test_id("stagehold-intervals").evaluate("(panel) => panel.querySelectorAll('*').length") < 3000
