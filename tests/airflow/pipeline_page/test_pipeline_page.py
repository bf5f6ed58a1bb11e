"""The tab of a DAG in a real browser, on intervals that were written into the ledger by hand."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import expect
from sqlalchemy import update
from tests.airflow.made_runs import make_sources, switch
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
    WARNED,
    day,
    made_weeks,
    make_huge,
)

from stagehold.settings import load_settings

pytestmark = [pytest.mark.airflow, pytest.mark.browser]

COLOUR = "(square) => getComputedStyle(square).backgroundColor"
UNREADABLE = "it was recorded in a format this version cannot read"  # as made records have no real keys
TAB = f"/dags/{PIPELINE}/plugin/stagehold-intervals"


@pytest.fixture(scope="module")
def made(synced_airflow):
    """Four weeks in which some nights went wrong; tests read them only."""
    with made_weeks() as ledger:
        yield ledger


@pytest.fixture
def tab(page, made):
    page.goto(TAB)
    expect(page.get_by_test_id("headline")).to_be_visible()
    return page


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


def planned(number: int, runs: int) -> dict[str, object]:
    reason = {"text": "never computed for this interval", "count": runs, "partitions": f"0-{runs - 1}", "runs": True}
    why = [reason] if runs else []
    cell = {"stage": "orders", "state": "missing" if runs else "good", "partitions": SPLITS, "runs": runs}
    cell |= {"reuses": SPLITS - runs, "seconds": 2.0 * runs, "reasons": why}
    return {"interval": day(number), "run_id": None, "problem": None, "cells": [cell]}


def plan_of(*intervals: dict[str, object], token: str = "first") -> dict[str, object]:
    wish = {"first": day(0), "last": day(2), "only": None, "stages": ["orders"], "restore_from_stage": None}
    sums = {"runs": 16, "reuses": 16, "seconds": 32.0, "saved_seconds": 300.0, "unknown": [], "refusal": None}
    return {"pipeline": PIPELINE, **wish, "token": token, "intervals": intervals, **sums}


@pytest.fixture
def answers(page):
    """What the API of backfills says, in this order, in place of what it would say. Gives what it was asked."""
    asked, given = [], []

    def answer(route):
        asked.append(route.request)
        status, body = given.pop(0)
        route.fulfill(status=status, json=body)

    page.route(re.compile(rf"/api/dags/{PIPELINE}/backfill(\?|$)"), answer)
    return asked, given


def test_a_range_that_is_chosen_in_the_grid_is_planned_and_started_with_one_button(tab, answers):
    asked, given = answers
    given += [
        (200, plan_of(planned(DAYS - 4, 0), planned(DAYS - 3, 16))),
        (200, {"backfill_id": "1", "token": "first", "intervals": [day(DAYS - 3)]}),
    ]
    tab.get_by_test_id(f"interval-{day(DAYS - 4)}").click()
    tab.get_by_test_id(f"interval-{day(DAYS - 3)}").click(modifiers=["Shift"])
    expect(tab.get_by_test_id("chosen-range")).to_contain_text(f"{day(DAYS - 4)} to {day(DAYS - 3)} chosen")
    tab.get_by_role("button", name="Plan a backfill").click()
    card = tab.get_by_test_id("backfill")
    card.get_by_role("button", name="orders", exact=True).click()
    card.get_by_label("Compute").select_option("missing")
    card.get_by_role("button", name="Show the plan").click()
    expect(card.get_by_test_id(f"plan-{day(DAYS - 3)}-orders")).to_have_attribute(
        "title",
        f"orders for {day(DAYS - 3)}: missing, runs 16 of 16 partitions, about 32 s · "
        "never computed for this interval (partitions 0-15)",
    )
    expect(card.get_by_test_id(f"planned-{day(DAYS - 4)}")).to_contain_text("nothing to do")
    expect(card.get_by_test_id("backfill-totals")).to_have_text(
        "Runs 16 partitions, about 32 s of work; reuses 16. That spares 5 min."
    )
    assert asked[0].url.endswith(f"?first={day(DAYS - 4)}&last={day(DAYS - 3)}&stages=orders&only=missing")
    card.get_by_test_id("backfill-start").click()
    expect(card.get_by_test_id("backfill-started")).to_contain_text(f"Started: 1 interval, {day(DAYS - 3)}")
    assert asked[1].post_data_json == {
        "first": day(DAYS - 4),
        "last": day(DAYS - 3),
        "stages": ["orders"],
        "only": "missing",
        "restore_from_stage": None,
        "max_active": 4,
        "token": "first",
    }


def test_a_large_plan_says_how_far_it_is_and_is_there_for_who_comes_back(tab, answers):
    asked, given = answers
    given += [(202, {"planned": 0, "of": None}), (202, {"planned": 3, "of": 40}), (202, {"planned": 9, "of": 40})]
    card = tab.get_by_test_id("backfill")
    card.get_by_label("From", exact=True).fill(day(DAYS - 4))
    card.get_by_label("To", exact=True).fill(day(DAYS - 3))
    card.get_by_role("button", name="Show the plan").click()
    under_way = card.get_by_test_id("backfill-under-way")
    expect(under_way).to_contain_text("The plan waits for another one to be made.")
    expect(under_way).to_contain_text("Planned 3 of 40 intervals. You may leave this page and come back.")
    given[:] = [(200, plan_of(planned(DAYS - 4, 0), planned(DAYS - 3, 16)))] * 3  # the page that is left may ask, too
    tab.reload()
    expect(card.get_by_test_id("backfill-totals")).to_contain_text("Runs 16 partitions")
    expect(card.get_by_label("To", exact=True)).to_have_value(day(DAYS - 3))
    expect(under_way).to_have_count(0)
    assert asked[-1].url.endswith(f"?first={day(DAYS - 4)}&last={day(DAYS - 3)}")


def test_a_plan_says_what_was_released_and_is_needed(tab, answers):
    _, given = answers
    told = f"restores from orders; customer of {day(40)} was released: 16 partitions, about 40 s"
    never = f"Nothing is on record of {day(40)}, so all of it is computed, not only orders and what reads it."
    given += [(200, plan_of(planned(40, 16)) | {"released": told, "remark": never})]
    card = tab.get_by_test_id("backfill")
    card.get_by_label("From", exact=True).fill(day(40))
    card.get_by_label("To", exact=True).fill(day(40))
    card.get_by_role("button", name="Show the plan").click()
    expect(card.get_by_test_id("backfill-released")).to_have_text(told)
    expect(card.get_by_test_id("backfill-remark")).to_have_text(never)


@pytest.fixture
def unpinned(made):
    yield
    held = made.pins.holding(PIPELINE)
    if held:
        made.pins.record([replace(one, pinned=False, recorded_at=datetime.now(UTC)) for one in held.values()])


def test_a_range_that_is_chosen_in_the_grid_is_pinned_and_let_go_again(tab, made, unpinned):
    first, second = day(DAYS - 2), day(DAYS - 1)
    tab.get_by_test_id(f"interval-{first}").click()
    tab.get_by_test_id(f"interval-{second}").click(modifiers=["Shift"])
    pinning = tab.get_by_test_id("pinning")
    pinning.get_by_label("Why they are pinned").fill("the audit")
    pinning.get_by_role("button", name="Pin 2 intervals").click()
    expect(pinning.get_by_role("button", name="Unpin 2 intervals")).to_be_enabled()
    mark = tab.get_by_test_id(f"row-{first}").get_by_test_id("pin")
    expect(mark).to_have_attribute("title", re.compile("^pinned by .*: the audit$"))
    expect(tab.get_by_test_id("legend")).to_contain_text("pinned: keeps its outputs")
    assert {one.reason for one in made.pins.holding(PIPELINE, [first, second]).values()} == {"the audit"}
    pinning.get_by_role("button", name="Unpin 2 intervals").click()
    expect(mark).to_have_count(0)
    assert made.pins.holding(PIPELINE) == {}


def test_nights_that_never_ran_are_chosen_by_date_and_a_plan_that_changed_is_shown_anew(tab, answers):
    asked, given = answers
    given += [
        (200, plan_of(planned(40, 16))),
        (409, {"detail": f"What would run is not what was shown: {day(40)} orders[0-7] does not run any more."}),
        (200, plan_of(planned(40, 8), token="second")),
    ]
    card = tab.get_by_test_id("backfill")
    expect(card.get_by_role("button", name="Show the plan")).to_be_disabled()
    card.get_by_label("From", exact=True).fill(day(40))
    card.get_by_label("To", exact=True).fill(day(41))
    card.get_by_role("button", name="Show the plan").click()
    card.get_by_test_id("backfill-start").click()
    expect(card.get_by_test_id("backfill-problem")).to_contain_text("orders[0-7] does not run any more")
    expect(card.get_by_test_id(f"plan-{day(40)}-orders")).to_have_attribute("data-runs", "8")
    assert f"first={day(40)}&last={day(41)}" in asked[2].url
    card.get_by_label("To", exact=True).fill(day(42))
    expect(card.get_by_test_id("backfill-plan")).to_have_count(0)  # it is of another wish


def test_a_backfill_that_is_refused_or_has_nothing_to_do_cannot_be_started(tab, answers):
    _, given = answers
    given += [(200, plan_of(planned(40, 0))), (200, plan_of(planned(40, 16)) | {"refusal": "The DAG is paused."})]
    card = tab.get_by_test_id("backfill")
    card.get_by_label("From", exact=True).fill(day(40))
    card.get_by_label("To", exact=True).fill(day(40))
    for said in ("There is nothing to compute.", "The DAG is paused."):
        card.get_by_role("button", name="Show the plan").click()
        expect(card).to_contain_text(said)
        expect(card.get_by_test_id("backfill-start")).to_be_disabled()


@pytest.fixture
def nights(made):
    """Two that have not run and could; what is started of them is ended."""
    from airflow.models.backfill import Backfill
    from airflow.utils.session import create_session

    make_sources(Path(load_settings().lake_uri))
    switch(PIPELINE, on=True)
    yield day(60), day(61)
    switch(PIPELINE, on=False)
    with create_session() as session:
        session.execute(update(Backfill).values(completed_at=datetime.now(UTC)))


def show_plan(page, first: str, last: str):
    card = page.get_by_test_id("backfill")
    card.get_by_label("From", exact=True).fill(first)
    card.get_by_label("To", exact=True).fill(last)
    card.get_by_role("button", name="Show the plan").click()
    expect(card.get_by_test_id("backfill-start")).to_have_text("Start 2 intervals")
    return card


def test_nights_that_never_ran_are_planned_and_started_by_the_api_itself(tab, nights):
    card = show_plan(tab, *nights)
    every = sum(STAGES.values())
    expect(card.get_by_test_id("backfill-totals")).to_contain_text(f"Runs {2 * every} partitions")
    expect(card.get_by_test_id(f"plan-{nights[0]}-top_orders")).to_have_attribute("data-runs", "1")
    expect(card.get_by_test_id(f"planned-{nights[1]}")).to_contain_text("never computed for this interval")
    card.get_by_test_id("backfill-start").click()
    # Airflow makes the runs one by one, and tries again while others write to its database.
    started = card.get_by_test_id("backfill-started")
    expect(started).to_contain_text(f"Started: 2 intervals, {nights[0]} to {nights[1]}", timeout=90_000)
    show_plan(tab, *nights).get_by_test_id("backfill-start").click()
    expect(card.get_by_test_id("backfill-problem")).to_contain_text("is queued: wait for its end")


def test_what_airflow_starts_along_with_a_backfill_is_said_before_it_is_started(tab, nights):
    told = "Airflow has started no run of it by itself yet: it will then start the run for 2026-11-26, too."

    def answer(route):
        found = route.fetch()
        route.fulfill(response=found, json={**found.json(), "along": told})

    tab.route("**/backfill?*", answer)
    expect(show_plan(tab, *nights).get_by_test_id("backfill-along")).to_have_text(told)


@pytest.mark.parametrize("page", ["viewer"], indirect=True)
def test_a_viewer_sees_the_plan_and_is_told_who_may_start_it(tab, nights):
    card = show_plan(tab, *nights)
    expect(card.get_by_test_id("backfill-start")).to_be_disabled()
    expect(card).to_contain_text("You may see this pipeline but not start a backfill of it. Ask somebody who may edit")
    expect(card.get_by_test_id("backfill-totals")).to_contain_text("Runs ")


def test_a_hundred_thousand_partitions_are_as_many_squares_as_there_are_stages(page, made):
    make_huge(made, "2027-01-01", 25_006)
    page.goto(TAB)
    square = page.get_by_test_id("cell-2027-01-01-orders")
    expect(square).to_contain_text("16")  # which the file declares, whatever else is on record
    expect(square).to_have_attribute("title", re.compile("2,500,600 rows"))
    expect(page.locator("[data-testid^=cell-]")).to_have_count(SHOWN * len(STAGES))
    assert page.get_by_test_id("stagehold-intervals").evaluate("(panel) => panel.querySelectorAll('*').length") < 3000
