"""Which intervals are stale: what the API says of it in Airflow's own app, and what the tab shows in a real browser."""

from __future__ import annotations

import math
import time

import pytest
from playwright.sync_api import expect
from tests.airflow.pipeline_page.made_intervals import PIPELINE, day
from tests.airflow.pipeline_page.made_stale import make_interval, nothing_on_record, write_orders_anew

from stagehold.airflow.answering import kept_pages as keeping
from stagehold.airflow.pipeline_page import interval_staleness as stale

pytestmark = pytest.mark.airflow

API = f"/stagehold/api/dags/{PIPELINE}/stale"
PLANNING_SECONDS = 60
STALE, GOOD = day(0), day(1)
CELL = "[data-testid^=cell-]"


@pytest.fixture
def empty(synced_airflow):
    with nothing_on_record():
        yield


@pytest.fixture
def planned(api, bearer):
    """The answer, once there is one."""

    def ask(**query):
        deadline = time.monotonic() + PLANNING_SECONDS
        while True:
            answer = api.get(API, headers=bearer("viewer"), params=query)
            assert answer.status_code == 200, answer.text
            if answer.json()["planned_at"]:
                return answer
            assert time.monotonic() < deadline
            time.sleep(0.05)

    return ask


def test_nobody_waits_for_the_first_plan(api, bearer, empty, planned):
    make_interval(GOOD)
    first = api.get(API, headers=bearer("viewer")).json()
    assert first == {"pipeline": PIPELINE, "planned_at": None, "looked_at": [], "stale": [], "unplanned": []}
    assert planned().json()["looked_at"] == [GOOD]


def test_data_from_another_source_is_stale_with_the_reason(empty, planned):
    make_interval(STALE)
    write_orders_anew()
    make_interval(GOOD)
    found = planned().json()
    assert (found["looked_at"], found["unplanned"]) == ([GOOD, STALE], [])
    (one,) = found["stale"]
    assert one["interval"] == STALE
    assert {stage["stage"]: stage["partitions"] for stage in one["stages"]} == {
        "orders": 1,
        "orders_by_customer": 16,
        "shipping_priority": 16,
        "top_orders": 1,
    }
    assert one["stages"][0]["reason"] == "its source changed"


def test_staleness_of_an_older_page_is_told_for_its_intervals(empty, planned, api, bearer):
    make_interval(STALE)
    write_orders_anew()
    make_interval(GOOD)
    assert planned(limit=1).json()["stale"] == []
    assert [one["interval"] for one in planned(before=GOOD).json()["stale"]] == [STALE]
    assert api.get(API, headers=bearer("viewer"), params={"before": "never"}).status_code == 404


def test_whoever_has_the_answer_already_is_told_so(api, bearer, empty, planned, monkeypatch):
    monkeypatch.setattr(keeping, "AGE", math.inf)
    make_interval(GOOD)
    answer = planned()
    known = {"If-None-Match": answer.headers["etag"], **bearer("viewer")}
    assert api.get(API, headers=known).status_code == 304


def test_as_many_large_intervals_are_planned_as_some_seconds_allow(empty, planned, monkeypatch):
    monkeypatch.setattr(stale, "MOST_PARTITIONS", 100)
    for interval in (STALE, GOOD):
        make_interval(interval)
    assert planned().json()["looked_at"] == [GOOD]


@pytest.mark.browser
@pytest.mark.parametrize("page", ["viewer"], indirect=True)
def test_a_source_that_changes_makes_an_interval_stale_while_the_tab_is_open(page, empty):
    make_interval(STALE)
    page.goto(f"/dags/{PIPELINE}/plugin/stagehold-intervals")
    expect(page.get_by_test_id("stale")).to_have_text("Stale: 0 of 1 interval looked at")
    expect(page.locator(f"{CELL}[data-stale=true]")).to_have_count(0)
    write_orders_anew()
    make_interval(GOOD)
    expect(page.get_by_test_id("stale")).to_contain_text(
        f"Stale: 1 of 2 intervals looked at, the newest {STALE}, orders: its source changed"
    )
    expect(page.locator(f"{CELL}[data-stale=true]")).to_have_count(4)
    cell = page.get_by_test_id(f"cell-{STALE}-orders")
    expect(cell).to_have_attribute("data-stale", "true")
    expect(cell).to_contain_text("↻")
    expect(page.get_by_test_id(f"cell-{GOOD}-orders")).to_have_attribute("data-stale", "false")
    expect(page.get_by_test_id("legend")).to_contain_text("stale: would come out differently now")
    cell.click()
    expect(page.get_by_test_id("facts")).to_contain_text("stale: 1 partition again: ")
