"""Checkpoints and gate rates of a pipeline, inside Airflow's own app."""

from __future__ import annotations

import pytest
from tests.airflow.made_runs import NULLS, RANGE, observe
from tests.airflow.pipeline_page.made_checkpoints import FAILURE, make_checkpoints, take_checkpoint

from stagehold.ledger.ledger import Ledger
from stagehold.settings import load_settings

pytestmark = pytest.mark.airflow

DAG = "/stagehold/api/dags/shipping_priority"
PATHS = ["checkpoints", "checkpoints/1?run={run}", "gate-rates", "savepoint-choices"]


@pytest.fixture
def checkpointed(half_done):
    """The half-done run, of which a checkpoint was completed, one failed, and one is in progress."""
    make_checkpoints(half_done)
    return half_done


def run_of(run) -> str:
    return f"{run.dag_id}/{run.run_id}"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("role", "expected"), [("admin", 200), ("op", 200), ("user", 200), ("viewer", 200), (None, 403)]
)
def test_looking_needs_the_right_to_see_runs(api, bearer, checkpointed, path, role, expected):
    answer = api.get(f"{DAG}/{path.format(run=run_of(checkpointed))}", headers=bearer(role))
    assert answer.status_code == expected


@pytest.mark.parametrize("path", PATHS)
def test_nobody_looks_without_logging_in(api, path):
    assert api.get(f"{DAG}/{path.format(run='any')}").status_code == 401


@pytest.mark.parametrize("path", PATHS)
def test_a_dag_that_is_not_ours_has_none(api, bearer, synced_airflow, path):
    answer = api.get(f"/stagehold/api/dags/stagehold_maintenance/{path.format(run='any')}", headers=bearer("admin"))
    assert (answer.status_code, "is not a Stagehold pipeline" in answer.text) == (404, True)


def test_checkpoints_are_counted_and_listed_newest_first(api, bearer, checkpointed):
    page = api.get(f"{DAG}/checkpoints?limit=3", headers=bearer("viewer")).json()
    told = [(one["number"], one["state"], one["acknowledged"], one["asked"]) for one in page["checkpoints"]]
    assert told == [(3, "in_progress", 0, 2), (2, "failed", 1, 2), (1, "completed", 2, 2)]
    first = page["checkpoints"][2]
    assert (first["run_id"], first["interval"]) == (run_of(checkpointed), checkpointed.run_id)
    assert (first["bytes_written"], first["bytes_full"], first["trigger"]) == (2048, 5120, "periodic")
    assert page["counts"]["triggered"] == sum(page["counts"][one] for one in ("completed", "failed", "in_progress"))
    assert page["completed"] == first
    assert first["alignment"] is not None
    assert [one["alignment"] for one in page["checkpoints"][:2]] == [None, None]
    assert page["failed"]["failure"] == FAILURE


def test_completed_checkpoints_are_summed_up(api, bearer, checkpointed):
    summary = api.get(f"{DAG}/checkpoints", headers=bearer("viewer")).json()["summary"]
    assert summary["checkpoints"] >= 1
    written, full = summary["bytes_written"], summary["bytes_full"]  # of other tests' checkpoints, too
    assert written["least"] <= 2048 <= written["most"]
    assert written["least"] <= written["average"] <= written["p99"] <= written["most"]
    assert full["least"] <= 5120 <= full["most"]
    assert summary["duration"]["least"] <= summary["duration"]["p50"] <= summary["duration"]["most"]
    assert summary["alignment"]["least"] >= 0


def test_a_percentile_is_one_of_the_values():
    from stagehold.airflow.pipeline_page.checkpoint_page import spread

    found = spread([float(number) for number in range(200, 0, -1)])
    assert (found.least, found.average, found.p50, found.p99, found.most) == (1, 100.5, 100, 198, 200)
    assert {*spread([7.0]).model_dump().values()} == {7.0}


def test_the_contents_of_a_checkpoint_are_listed_by_stage(api, bearer, checkpointed):
    path = f"{DAG}/checkpoints/4?run={run_of(checkpointed)}"
    with Ledger.open(load_settings().ledger_url) as ledger:
        _, covers, _ = ledger.pipelines.changed(0, 0)
        take_checkpoint(checkpointed, ledger, 4, covers)
    told = api.get(path, headers=bearer("viewer")).json()["stages"]
    held = {one["stage"]: (one["region"], one["partitions"]) for one in told}
    assert held["orders"] == ("orders", 16)
    assert held["orders_by_customer"] == ("orders_by_customer", 5)
    assert "top_orders" not in held


def test_the_next_page_of_checkpoints_goes_on_where_the_first_one_ends(api, bearer, checkpointed):
    first, second = (
        api.get(f"{DAG}/checkpoints?limit=2&offset={offset}", headers=bearer("viewer")).json()["checkpoints"]
        for offset in (0, 2)
    )
    assert [one["number"] for one in (*first, *second)][:3] == [3, 2, 1]


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "offset=-1", "limit=a"])
def test_a_page_of_checkpoints_has_a_greatest_length(api, bearer, synced_airflow, query):
    assert api.get(f"{DAG}/checkpoints?{query}", headers=bearer("viewer")).status_code == 422


@pytest.mark.parametrize("path", ["checkpoints", "gate-rates"])
def test_whoever_has_the_answer_is_told_so(api, bearer, checkpointed, path):
    first = api.get(f"{DAG}/{path}", headers=bearer("viewer"))
    known = {"If-None-Match": first.headers["etag"], **bearer("viewer")}
    assert api.get(f"{DAG}/{path}", headers=known).status_code == 304


def test_the_answers_to_a_checkpoint_are_listed_by_region(api, bearer, checkpointed):
    path = f"{DAG}/checkpoints/2?run={run_of(checkpointed)}"
    regions = api.get(path, headers=bearer("viewer")).json()["regions"]
    told = {one["region"]: (one["acknowledged"], one["asked"], one["answered_at"] is None) for one in regions}
    assert told == {"orders": (1, 1, False), "lineitem": (0, 1, False)}
    (declined,) = (one["attempts"][0] for one in regions if one["region"] == "lineitem")
    assert (declined["answer"], declined["reason"]) == ("declined", "checkpoint_declined_task_closing")


@pytest.mark.parametrize(
    ("dag_id", "path"),
    [
        ("shipping_priority", "99?run={run}"),
        ("shipping_priority", "1?run=never/was"),
        ("customer_totals", "1?run={run}"),
    ],
)
def test_a_checkpoint_that_does_not_exist_or_is_another_pipelines_is_not_found(api, bearer, checkpointed, dag_id, path):
    url = f"/stagehold/api/dags/{dag_id}/checkpoints/{path.format(run=run_of(checkpointed))}"
    answer = api.get(url, headers=bearer("admin"))
    assert (answer.status_code, "There is no checkpoint" in answer.json()["detail"]) == (404, True)


def rate_of(api, bearer, interval: str, expectation: str) -> dict[str, int]:
    (stage,) = api.get(f"{DAG}/gate-rates", headers=bearer("viewer")).json()["stages"]
    assert (stage["stage"], stage["gate"]) == ("shipping_priority", "shipping_priority")
    (one,) = [one for one in stage["expectations"] if one["expectation"] == expectation]
    return next(rate["counts"] for rate in one["rates"] if rate["interval"] == interval)


def test_gate_rates_count_the_verdict_on_each_partition(api, bearer, refused_run):
    observe(refused_run, "shipping_priority", "7", 0)
    assert rate_of(api, bearer, refused_run.run_id, NULLS) == {"failed": 5}
    assert rate_of(api, bearer, refused_run.run_id, RANGE) == {"failed": 1}


def test_waived_partitions_are_counted_apart(api, bearer, refused_run):
    wish = {"stage": "shipping_priority", "expectation": NULLS, "partitions": [[3, 4]], "reason": "known"}
    api.post(f"{refused_run.url}/waive", headers=bearer("admin"), json=wish)
    assert rate_of(api, bearer, refused_run.run_id, NULLS) == {"failed": 3, "waived": 2}


@pytest.mark.parametrize(("role", "may"), [("admin", True), ("op", True), ("user", True), ("viewer", False)])
def test_the_answer_says_what_its_reader_may_do_with_savepoints(api, bearer, half_done, role, may):
    from stagehold.airflow.pipeline_page import savepoint_routes

    told = api.get(f"{DAG}/savepoint-choices", headers=bearer(role)).json()
    assert (told["may_change"], told["may_restore"]) == (may, may)
    assert told["may_dispose"] == (role in ("admin", "op"))
    assert told["runs"][0]["run_id"] == half_done.run_id
    assert len(told["runs"]) <= savepoint_routes.MOST_RUNS
