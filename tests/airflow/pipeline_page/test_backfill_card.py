"""Backfills and pins on the tab of a DAG in a real browser: what is chosen, planned, and started."""

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
    DAYS,
    PIPELINE,
    SPLITS,
    STAGES,
    day,
)

from stagehold.settings import load_settings

pytestmark = [pytest.mark.airflow, pytest.mark.browser]


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
    given[:] = [(202, {"planned": 0, "of": None})] * 99  # the page asks again and again, however late we look at it
    card = tab.get_by_test_id("backfill")
    card.get_by_label("From", exact=True).fill(day(DAYS - 4))
    card.get_by_label("To", exact=True).fill(day(DAYS - 3))
    card.get_by_role("button", name="Show the plan").click()
    under_way = card.get_by_test_id("backfill-under-way")
    expect(under_way).to_contain_text("The plan waits for another one to be made.")
    given[:] = [(202, {"planned": 3, "of": 40})] * 99
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
