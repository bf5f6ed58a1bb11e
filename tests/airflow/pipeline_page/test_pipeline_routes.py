"""The API of a pipeline's tab in Airflow's own app, on intervals that were written into the ledger by hand."""

from __future__ import annotations

import math
import time

import pytest
from tests.airflow.made_runs import make_dag_run
from tests.airflow.pipeline_page.made_intervals import (
    FAILURE,
    PIPELINE,
    SPLITS,
    MadeRun,
    day,
    emptied_ledger,
    make_failed,
    make_huge,
    make_many_runs,
    make_whole,
)

from stagehold.airflow.answering import kept_pages as keeping
from stagehold.airflow.answering.kept_pages import KeptPages
from stagehold.model.kept import KeptMemory
from stagehold.model.standing import PartitionState

pytestmark = pytest.mark.airflow

API = f"/stagehold/api/dags/{PIPELINE}"
PATHS = ("intervals", "history", "recoveries", "stale", "run-matrix")
MOST_BYTES = 100_000


@pytest.fixture
def ledger(synced_airflow, monkeypatch):
    """Of which every answer is made anew, however long it takes here."""
    monkeypatch.setattr(keeping, "QUICK_SECONDS", math.inf)
    for name in ("_PAGES", "_HISTORIES", "_MATRICES"):
        monkeypatch.setattr(f"stagehold.airflow.pipeline_page.pipeline_routes.{name}", KeptPages(name, KeptMemory()))
    with emptied_ledger() as ledger:
        yield ledger


@pytest.fixture
def ask(api, bearer):
    def asked(path, **query):
        answer = api.get(f"{API}/{path}", headers=bearer("viewer"), params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    return asked


def cells_of(page, interval):
    (row,) = [one for one in page["intervals"] if one["interval"] == interval]
    return {cell["stage"]: cell for cell in row["cells"]}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("role", "expected"), [("admin", 200), ("op", 200), ("user", 200), ("viewer", 200), (None, 403)]
)
def test_reading_needs_the_right_to_see_runs(api, bearer, path, role, expected):
    assert api.get(f"{API}/{path}", headers=bearer(role)).status_code == expected


@pytest.mark.parametrize("path", PATHS)
def test_nobody_reads_without_logging_in(api, path):
    assert api.get(f"{API}/{path}").status_code == 401


@pytest.mark.parametrize("path", PATHS)
def test_a_dag_without_regions_is_told_apart_politely(api, bearer, path):
    answer = api.get(f"/stagehold/api/dags/stagehold_maintenance/{path}", headers=bearer("viewer"))
    assert (answer.status_code, "is not a Stagehold pipeline" in answer.json()["detail"]) == (404, True)


def test_a_pipeline_that_never_ran_has_its_stages_and_no_intervals(ledger, ask):
    page = ask("intervals")
    assert (page["total"], page["intervals"], page["following"], page["schedule"]) == (0, [], None, "0 2 * * *")
    assert [stage["name"] for stage in page["stages"]][-1] == "top_orders"
    assert ask("history")["intervals"] == []
    assert ask("recoveries") == {"recoveries": []}


def test_a_failed_interval_stands_beside_one_that_was_partly_reused(ledger, ask):
    make_whole(ledger, day(0))
    again = MadeRun(ledger, day(0), "backfill", hours=30).begin()
    again.attempt("top_orders", range(1))
    again.end()
    make_failed(ledger, day(1), "orders_by_customer", 5)
    page = ask("intervals")
    assert [row["interval"] for row in page["intervals"]] == [day(1), day(0)]
    failed = cells_of(page, day(1))
    assert [cell["state"] for cell in failed.values()] == ["consumable"] * 3 + ["failed", "missing", "missing"]
    half = failed["orders_by_customer"]
    assert (half["counts"], half["wanted"]) == ({"consumable": 5}, SPLITS)
    (why,) = half["failures"]
    assert why == {"tries": 1, "cause": "recoverable failure, rule anything_else", "failure": FAILURE, "lost": None}
    reused = cells_of(page, day(0))
    assert (reused["orders"]["computed"], reused["orders"]["reused"]) == (0, SPLITS)
    assert (reused["top_orders"]["computed"], reused["top_orders"]["reused"]) == (1, 0)
    assert reused["top_orders"]["made_by"] == [{"run_id": again.run_id, "partitions": 1}]
    assert page["intervals"][1]["run"]["run_id"] == again.run_id


def test_verdicts_of_gates_are_told_with_their_warnings(ledger, ask):
    run = make_whole(ledger, day(0))
    run.warn("shipping_priority", [2, 5])
    MadeRun(ledger, day(0)).attempt(
        "shipping_priority", [7], state=PartitionState.BLOCKED, refused=("expect_not_null",), failure="refused"
    )
    cell = cells_of(ask("intervals"), day(0))["shipping_priority"]
    assert (cell["judged"], cell["refused"], cell["warned"], cell["state"]) == (SPLITS, 1, 2, "blocked")


@pytest.mark.parametrize(("state", "expected"), [("running", "running"), ("failed", "failed")])
def test_airflow_decides_whether_a_run_goes_on(ledger, ask, state, expected):
    """A process that was killed could not tell the ledger."""
    name = f"{state}__{time.time_ns()}"
    make_dag_run(PIPELINE, f"{name}__{day(0)}", {}, state)
    run = MadeRun(ledger, day(0), name).begin()
    run.attempt("orders", range(3), ends=False)
    (row,) = ask("intervals")["intervals"]
    assert row["run"]["active"] is (state == "running")
    assert {cell["stage"]: cell["state"] for cell in row["cells"]}["orders"] == expected


def test_pages_go_back_in_time_until_there_is_no_more(ledger, ask):
    for number in range(7):
        MadeRun(ledger, day(number)).begin()
    shown, before = [], {}
    while True:
        page = ask("intervals", limit=3, **before)
        shown.append([row["interval"] for row in page["intervals"]])
        if page["following"] is None:
            break
        before = {"before": page["following"]}
    assert shown == [[day(6), day(5), day(4)], [day(3), day(2), day(1)], [day(0)]]
    assert page["total"] == 7


@pytest.fixture
def four_days(ledger):
    """The first is whole, the second failed, the third never got to anything, and the fourth is blocked."""
    make_whole(ledger, day(0))
    make_failed(ledger, day(1), "orders_by_customer", 5)
    MadeRun(ledger, day(2), hours=1).begin().end()
    make_whole(ledger, day(3))
    blocked = MadeRun(ledger, day(3), "again", hours=2).begin()
    blocked.attempt("shipping_priority", [3], state=PartitionState.BLOCKED, refused=("no nulls",), failure="refused")
    blocked.fail()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, [3, 2, 1, 0]),
        ({"look": "failed"}, [3, 1]),
        ({"look": "needed"}, [3, 2, 1]),
        ({"look": "needed", "before": day(3)}, [2, 1]),
        ({"first": day(1), "last": day(2)}, [2, 1]),
        ({"last": day(1), "look": "failed"}, [1]),
        ({"first": day(4)}, []),
    ],
)
def test_intervals_are_filtered_over_all_pages(four_days, ask, query, expected):
    page = ask("intervals", **query)
    assert [row["interval"] for row in page["intervals"]] == [day(number) for number in expected]
    assert page["total"] == 4


def test_intervals_on_other_pages_are_counted(four_days, ask):
    page = ask("intervals", limit=1, look="failed")
    assert (page["looks"], page["following"]) == ({"all": 4, "failed": 2, "needed": 3}, day(3))
    assert ask("intervals", last=day(1))["looks"] == {"all": 2, "failed": 1, "needed": 1}


@pytest.mark.parametrize("query", [{"look": "green"}, {"first": "yesterday"}, {"last": "2026-13-01"}])
def test_a_query_for_intervals_that_makes_no_sense_is_refused(api, bearer, ledger, query):
    assert api.get(f"{API}/intervals", headers=bearer("viewer"), params=query).status_code == 422


def test_two_intervals_are_compared_stage_by_stage(four_days, ask):
    told = {one["stage"]: one for one in ask("comparison", one=day(0), other=day(3))["stages"]}
    judged = told["shipping_priority"]
    assert (judged["one"]["refused"], judged["other"]["refused"], judged["equal"]) == (0, 1, SPLITS)
    assert (judged["one"]["partitions"], judged["other"]["consumable"]) == (SPLITS, SPLITS - 1)
    assert told["orders"]["one"]["rows"] == told["orders"]["other"]["rows"] > 0


def test_an_unknown_interval_cannot_be_compared(api, bearer, four_days):
    asked = {"one": day(0), "other": "1999-01-01"}
    answer = api.get(f"{API}/comparison", headers=bearer("viewer"), params=asked)
    assert (answer.status_code, "1999-01-01" in answer.json()["detail"]) == (404, True)


def test_a_page_behind_an_unknown_interval_is_refused(api, bearer, ledger):
    answer = api.get(f"{API}/intervals", headers=bearer("viewer"), params={"before": "1999-01-01"})
    assert (answer.status_code, "1999-01-01" in answer.json()["detail"]) == (404, True)


def test_growth_is_listed_oldest_first(ledger, ask):
    make_whole(ledger, day(1), size=3.0)
    make_whole(ledger, day(0))
    history = ask("history")
    assert history["intervals"] == [day(0), day(1)]
    top = history["stages"][-1]
    assert (top["stage"], top["seconds"], top["rows"], top["bytes"]) == (
        "top_orders",
        [0.5, 1.5],
        [100, 300],
        [100_000, 300_000],
    )


def test_a_recovery_names_the_partitions_that_were_not_computed_again(ledger, ask):
    run = make_failed(ledger, day(0), "orders_by_customer", 5).begin()
    run.attempt("orders_by_customer", range(5, SPLITS))
    run.end()
    (one,) = ask("recoveries")["recoveries"]
    assert (one["interval"], one["subject"], one["attempts"]) == (day(0), "orders_by_customer", 2)
    assert (one["reused"], one["saved_seconds"], one["failure"]) == (5, 2.5, FAILURE)
    assert one["failed_at"] < one["recovered_at"]


@pytest.fixture
def five_runs(ledger):
    """One that did all, one that found all but one stage done, one that failed, and two for what is blocked then."""
    make_whole(ledger, day(0)).date_end(1)
    again = MadeRun(ledger, day(0), "backfill", hours=2).begin()
    again.attempt("top_orders", range(1))
    again.end()
    make_failed(ledger, day(1), "orders_by_customer", 5)
    make_whole(ledger, day(2)).date_end(1)
    blocked = MadeRun(ledger, day(2), "again", hours=2).begin()
    blocked.attempt("shipping_priority", [3], state=PartitionState.BLOCKED, refused=("no nulls",), failure="refused")
    blocked.fail()


def squares_of(page):
    return {run["run_id"]: {one["stage"]: one for one in run["squares"]} for run in page["runs"]}


def run_id(number, name="scheduled"):
    return f"{PIPELINE}/{name}__{day(number)}"


def test_the_matrix_has_the_work_of_each_run_on_each_stage_and_the_work_it_saved(five_runs, ask):
    page = ask("run-matrix")
    squares = squares_of(page)
    assert list(squares) == [run_id(2, "again"), run_id(2), run_id(1), run_id(0, "backfill"), run_id(0)]
    assert (page["stages"][-1], page["following"], page["looked_at"]) == ("top_orders", None, 5)
    assert {one["outcome"] for one in squares[run_id(0)].values()} == {"ran"}
    reused = squares[run_id(0, "backfill")]
    assert (reused["orders"]["outcome"], reused["orders"]["counts"]) == ("reused", {"reused": SPLITS})
    assert (reused["orders"]["spared"], reused["orders"]["seconds"]) == (0.5 * SPLITS, 0.0)
    # The made attempt says nothing of its data's being gone, so that the ledger takes it for lost.
    assert reused["top_orders"]["counts"] == {"healed": 1, "ran": 1}
    failed = squares[run_id(1)]
    assert [one["outcome"] for one in failed.values()] == ["ran"] * 3 + ["failed", "none", "none"]
    half = failed["orders_by_customer"]
    assert (half["counts"], half["attempts"]) == ({"missing": SPLITS - 5, "ran": 5}, 1)
    assert (half["cause"], half["failure"]) == ("recoverable failure, rule anything_else", FAILURE)
    blocked = squares[run_id(2, "again")]["shipping_priority"]
    assert blocked["outcome"] == "blocked"
    assert blocked["counts"]["blocked"] == 1
    assert blocked["counts"]["reused"] == SPLITS - 1


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"outcome": "blocked"}, [run_id(2, "again")]),
        ({"outcome": "failed"}, [run_id(1)]),
        ({"outcome": "reused"}, [run_id(2, "again"), run_id(0, "backfill")]),
        ({"outcome": "reused", "stage": "top_orders"}, [run_id(2, "again")]),
        ({"first": day(1), "last": day(1)}, [run_id(1)]),
        ({"outcome": "ran", "last": day(0)}, [run_id(0, "backfill"), run_id(0)]),
        ({"limit": 2, "before": run_id(1)}, [run_id(0, "backfill"), run_id(0)]),
        ({"outcome": "held"}, []),
    ],
)
def test_runs_are_filtered_on_the_server(five_runs, ask, query, expected):
    assert list(squares_of(ask("run-matrix", **query))) == expected


def test_runs_are_turned_page_by_page(five_runs, ask):
    shown, before = [], {}
    while True:
        page = ask("run-matrix", limit=2, **before)
        shown.append(list(squares_of(page)))
        if page["following"] is None:
            break
        before = {"before": page["following"]}
    assert [len(one) for one in shown] == [2, 2, 1]
    assert len({one for page in shown for one in page}) == 5


@pytest.mark.parametrize(
    ("query", "status", "told"),
    [
        ({"outcome": "green"}, 422, "healed"),
        ({"stage": "nowhere", "outcome": "ran"}, 404, "nowhere"),
        ({"before": "never"}, 404, "never"),
    ],
)
def test_a_query_for_runs_that_makes_no_sense_is_refused(api, bearer, five_runs, query, status, told):
    answer = api.get(f"{API}/run-matrix", headers=bearer("viewer"), params=query)
    assert (answer.status_code, told in answer.text) == (status, True)


@pytest.mark.parametrize("path", ["intervals", "history", "run-matrix"])
def test_whoever_has_the_answer_as_it_is_is_told_so(api, bearer, ledger, path):
    make_whole(ledger, day(0))
    first = api.get(f"{API}/{path}", headers=bearer("viewer"))
    known = {"If-None-Match": first.headers["etag"], **bearer("viewer")}
    assert api.get(f"{API}/{path}", headers=known).status_code == 304
    make_failed(ledger, day(1), "orders", 3)
    assert api.get(f"{API}/{path}", headers=known).status_code == 200


def test_a_hundred_thousand_partitions_and_a_thousand_intervals_have_a_small_answer(api, bearer, ledger, monkeypatch):
    monkeypatch.setattr(keeping, "QUICK_SECONDS", 0)
    make_many_runs(day(number) for number in range(990))
    for number in range(990, 999):
        make_whole(ledger, day(number))
    make_huge(ledger, day(999), 25_006)
    headers, taken = bearer("viewer"), []
    for path in ("intervals", "history", "intervals", "history", "recoveries", "run-matrix"):
        began = time.perf_counter()
        answer = api.get(f"{API}/{path}", headers=headers)
        taken.append(time.perf_counter() - began)
        assert (answer.status_code, len(answer.content) < MOST_BYTES) == (200, True), path
    page = api.get(f"{API}/intervals", headers=headers).json()
    newest = page["intervals"][0]["cells"][0]
    assert (page["total"], newest["computed"]) == (1000, 25_006)
    assert (newest["counts"], newest["wanted"]) == ({"consumable": SPLITS}, SPLITS)  # as many as are declared
    assert max(taken) < 5, taken  # far above what it takes, for machines that have other work
    assert max(taken[2:4]) < taken[0], "what took long is kept"


def pinned(api, headers, *intervals, **wanted):
    return api.post(f"{API}/pins", headers=headers, json={"intervals": intervals, **wanted})


@pytest.mark.parametrize(
    ("role", "may"), [("admin", True), ("op", True), ("user", True), ("viewer", False), (None, False)]
)
def test_pinning_needs_the_right_to_change_runs_and_the_page_says_who_has_it(ledger, api, bearer, role, may):
    make_whole(ledger, day(0))
    assert pinned(api, bearer(role), day(0)).status_code == (200 if may else 403)
    assert (day(0) in ledger.pins.holding(PIPELINE)) == may
    page = api.get(f"{API}/intervals", headers=bearer(role))
    assert page.status_code != 200 or page.json()["may_change"] == may


def test_nobody_pins_without_logging_in_or_from_another_site(ledger, api, bearer):
    make_whole(ledger, day(0))
    assert pinned(api, {}, day(0)).status_code == 401
    assert pinned(api, {**bearer("admin"), "Origin": "https://elsewhere.example"}, day(0)).status_code == 403
    assert ledger.pins.holding(PIPELINE) == {}


def test_an_interval_is_pinned_and_unpinned_with_a_name_and_a_reason(ledger, api, ask, bearer):
    for number in (0, 1):
        make_whole(ledger, day(number))
    answer = pinned(api, bearer("op"), day(0), day(1), why=" the audit ").json()
    assert answer == {"intervals": [day(0), day(1)], "pinned": True, "released": 0}
    rows = {row["interval"]: row["pin"] for row in ask("intervals")["intervals"]}
    assert [(one["by"], one["reason"]) for one in rows.values()] == [("op user", "the audit")] * 2
    assert pinned(api, bearer("op"), day(1), pinned=False).json()["pinned"] is False
    rows = {row["interval"]: row["pin"] for row in ask("intervals")["intervals"]}
    assert (rows[day(0)]["reason"], rows[day(1)]) == ("the audit", None)


@pytest.mark.parametrize(
    ("intervals", "wanted", "status", "told"),
    [
        ((day(0), day(9)), {}, 404, f"interval on record of {PIPELINE} '{day(9)}'"),
        ((day(0),), {"pinned": False}, 404, f"pinned interval of {PIPELINE} '{day(0)}'"),
        ((), {}, 422, ""),
        ((day(0),), {"until": "tomorrow"}, 422, ""),
    ],
)
def test_if_one_interval_cannot_be_pinned_or_unpinned_none_is(ledger, api, bearer, intervals, wanted, status, told):
    make_whole(ledger, day(0))
    answer = pinned(api, bearer("admin"), *intervals, **wanted)
    assert (answer.status_code, told in answer.text) == (status, True)
    assert ledger.pins.holding(PIPELINE) == {}
