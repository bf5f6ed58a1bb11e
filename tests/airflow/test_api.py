"""The web API inside Airflow's own app: who may call it, and what it says."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import ANY
from uuid import uuid4

import pytest
from sqlalchemy import delete
from tests.airflow.made_runs import HalfDone, make_dag_run, make_sources, moved_away
from tests.lake.paper_table import PaperTable

from stagehold.errors.run_errors import LeaseNotFreed
from stagehold.lake.commit.staged_committer import StagedCommitter
from stagehold.lake.store.location import table_location
from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.schema import events, transitions
from stagehold.ledger.ledger import Ledger
from stagehold.model.kept import MEGABYTE
from stagehold.model.records import TRACE, Event
from stagehold.plan.split.regions import stage_regions
from stagehold.run.journal import journal
from stagehold.run.planning.planning import RunRequest
from stagehold.run.planning.task import RegionTask
from stagehold.run.upkeep.run_archive import archive_runs
from stagehold.settings import load_settings
from stagehold.spec.loading.loader import find_pipeline

pytestmark = pytest.mark.airflow


@pytest.mark.parametrize("path", ["/grid", "/plan", "/timeline"])
@pytest.mark.parametrize(
    ("role", "expected"), [("admin", 200), ("op", 200), ("user", 200), ("viewer", 200), (None, 403)]
)
def test_reading_a_run_needs_the_right_to_see_it(api, bearer, half_done, path, role, expected):
    assert api.get(half_done.url + path, headers=bearer(role)).status_code == expected


@pytest.mark.parametrize("path", ["/grid", "/plan", "/timeline"])
def test_nobody_reads_a_run_without_logging_in(api, half_done, path):
    assert api.get(half_done.url + path).status_code == 401


@pytest.mark.parametrize(("role", "expected"), [("admin", 200), ("viewer", 200), (None, 403)])
def test_pipelines_are_listed_for_those_who_may_see_dags(api, bearer, role, expected):
    assert api.get("/stagehold/api/pipelines", headers=bearer(role)).status_code == expected


@pytest.mark.parametrize(("role", "expected"), [("admin", 200), ("viewer", 200), (None, 403)])
def test_the_health_of_the_server_is_shown_to_those_who_may_see_dags(api, bearer, role, expected):
    assert api.get("/stagehold/api/health", headers=bearer(role)).status_code == expected


def test_the_health_says_how_much_is_kept_of_what(api, bearer, half_done):
    api.get("/stagehold/api/overview", headers=bearer("viewer"))
    health = api.get("/stagehold/api/health", headers=bearer("viewer")).json()
    assert {"DAGs", "standings of intervals"} <= {one["kind"] for one in health["kept"]}
    assert health["kept_bytes"] == sum(one["bytes"] for one in health["kept"])
    assert 0 < health["kept_bytes"] < health["most_bytes"] == 64 * MEGABYTE < health["resident_bytes"]


def test_the_list_of_pipelines_names_their_stages(api, bearer):
    (line,) = [
        one
        for one in api.get("/stagehold/api/pipelines", headers=bearer("viewer")).json()
        if one["name"] == "shipping_priority"
    ]
    assert line["stages"][0] == "customer"


def test_pipelines_are_not_listed_without_logging_in(api):
    assert api.get("/stagehold/api/pipelines").status_code == 401


@pytest.mark.parametrize("path", ["docs", "redoc", "openapi.json"])
def test_no_page_about_the_api_is_public(api, path):
    assert api.get(f"/stagehold/{path}").status_code == 404


def test_the_scripts_are_public_and_asked_for_again_each_time(api):
    answer = api.get("/stagehold/static/run_page/run_page.js")
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-cache")


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param({"Origin": "http://testserver", "Sec-Fetch-Site": "same-origin"}, 200, id="our own page"),
        pytest.param({}, 200, id="a script"),
        pytest.param({"Origin": "https://evil.example"}, 403, id="another site"),
        pytest.param({"Origin": "null"}, 403, id="a sandboxed page"),
        pytest.param({"Sec-Fetch-Site": "same-site"}, 403, id="a sister domain"),
        pytest.param({"Sec-Fetch-Site": "cross-site"}, 403, id="a foreign page without origin"),
        pytest.param({"Content-Type": "text/plain"}, 415, id="what a form can send"),
        pytest.param({"Content-Type": "application/json; charset=utf-8"}, 200, id="JSON with its character set"),
    ],
)
def test_only_our_own_page_may_use_the_users_cookie(api, bearer, half_done, headers, expected):
    content = b'{"dry_run": true}'
    sent = {"Content-Type": "application/json", **bearer("admin"), **headers}
    assert api.post(half_done.url + "/resume", headers=sent, content=content).status_code == expected


@pytest.mark.parametrize("half_done", ["manual__2026-11-21T02:00:00+00:00", "a/b+c:d 100%?#"], indirect=True)
def test_any_run_id_is_found(api, bearer, half_done):
    assert api.get(half_done.url + "/grid", headers=bearer("viewer")).json()["run_id"] == half_done.run_id


def test_the_grid_shows_which_partitions_are_done(api, bearer, half_done):
    grid = api.get(half_done.url + "/grid", headers=bearer("viewer")).json()
    assert grid["headline"] == "Failed at orders_by_customer: 53 of 81 partitions are consumable"
    (stage,) = [one for one in grid["stages"] if one["name"] == "orders_by_customer"]
    assert [cell["state"] for cell in stage["cells"]] == ["consumable"] * 5 + ["failed"] * 11
    assert stage["cells"][0]["rows"] == 100
    assert stage["cells"][5]["reason"] == "never computed for this interval"
    assert grid["failures"][0]["failure"] == "Spark lost its server in the middle of orders_by_customer."
    assert grid["failures"][0]["cause"] == "recoverable failure, rule anything_else"
    assert grid["failures"][0]["labels"] == {"team": "orders"}
    assert "you cannot resume it" in grid["resume"]["refusal"]


def test_what_the_ledger_has_forgotten_of_a_run_is_shown_from_the_archive(api, bearer, half_done):
    before = api.get(half_done.url + "/timeline", headers=bearer("viewer")).json()
    settings, run_id = load_settings(), f"{half_done.dag_id}/{half_done.run_id}"
    with Ledger.open(settings.ledger_url) as ledger:
        (failed,) = (one for one in ledger.attempts.of_run(run_id) if one.failure)
        ledger.events.append(Event(run_id, TRACE, failed.attempt_id, "all of it", datetime.now(UTC)))
        archive_runs([run_id], ledger, settings.lake_uri)
    with Database(settings.ledger_url).writing() as connection:
        for table in (events, transitions):
            connection.execute(delete(table).where(table.c.run_id == run_id))
    (shown,) = api.get(half_done.url + "/grid", headers=bearer("viewer")).json()["failures"]
    assert shown["trace"] == "all of it"
    told = api.get(half_done.url + "/timeline", headers=bearer("viewer")).json()
    assert [line["text"] for line in told["lines"]][-1] == "running to failed: fail"
    assert (before["archived"], told) == (False, {**before, "archived": True})


def test_who_marked_a_run_or_cleared_it_is_in_its_history(api, bearer, half_done):
    before = api.get(half_done.url + "/timeline", headers=bearer("viewer")).json()["lines"]
    in_airflow = f"/api/v2/dags/{half_done.dag_id}"
    for method, path, body in [
        ("PATCH", f"/dagRuns/{half_done.run_id}", {"state": "success"}),
        ("PATCH", f"/dagRuns/{half_done.run_id}", {"note": "looked at it"}),
        ("POST", "/clearTaskInstances", {"dry_run": False, "dag_run_id": half_done.run_id, "task_ids": ["orders"],
         "only_failed": False, "reset_dag_runs": False}),
    ]:  # fmt: skip
        answer = api.request(method, in_airflow + path, json=body, headers=bearer("op"))
        assert answer.status_code == 200, answer.text
    told = api.get(half_done.url + "/timeline", headers=bearer("viewer")).json()["lines"]
    assert [line for line in told if line not in before][-2:] == [
        {"at": ANY, "of": "run", "text": "op user marked the run success, in Airflow"},
        {"at": ANY, "of": "run", "text": "op user cleared orders, in Airflow"},
    ]


def test_a_run_that_has_not_begun_has_no_history(api, bearer, synced_airflow):
    run = HalfDone("shipping_priority", f"manual__{uuid4()}")
    make_dag_run(run.dag_id, run.run_id, {}, state="queued")
    told = api.get(run.url + "/timeline", headers=bearer("viewer")).json()
    assert told == {"lines": [], "earlier": 0, "archived": False}


def test_the_page_names_the_command_where_the_tables_know_the_interval_and_the_ledger_does_not(
    api, bearer, synced_airflow
):
    interval = str(uuid4())
    run, settings, headers = HalfDone("shipping_priority", f"manual__{interval}"), load_settings(), bearer("viewer")
    make_sources(Path(settings.lake_uri))
    make_dag_run(run.dag_id, run.run_id, {"orders": "failed"}, conf={"interval": interval})
    assert api.get(run.url + "/plan", headers=headers).status_code == 200
    stage = find_pipeline(run.dag_id, settings).stage("orders")
    table = PaperTable(table_location(settings.lake_uri, run.dag_id, stage, interval)).create()
    StagedCommitter().fence(table.location, table.claim, [])
    answer = api.get(run.url + "/plan", headers=headers)
    assert answer.status_code == 409
    grid = api.get(run.url + "/grid", headers=headers).json()
    for told in (answer.json()["detail"], grid["looked"]["problem"], grid["resume"]["refusal"]):
        assert "`stagehold reconcile` rebuilds the ledger" in told


def test_the_page_says_why_a_try_could_not_even_begin(api, half_done, bearer):
    """Of the region that had failed before, it is the newest word."""
    settings = load_settings()
    pipeline = find_pipeline(half_done.dag_id, settings)
    region = next(one for one in stage_regions(pipeline) if one.name == "orders_by_customer")
    run_id = f"{half_done.dag_id}/{half_done.run_id}"
    task = RegionTask(RunRequest(pipeline, run_id, half_done.run_id, {}), region, "me", "airflow")
    with Ledger.open(settings.ledger_url) as ledger:
        waiting = journal.create_attempt(task, ledger)
        verdict = journal.fail(task, waiting, ledger, settings, LeaseNotFreed(region.name, "cli/another", None, 60))
    assert not verdict.decision.restart
    (failure,) = api.get(half_done.url + "/grid", headers=bearer("viewer")).json()["failures"]
    assert (failure["cause"], failure["epoch"]) == ("non_recoverable failure, rule lease_wait", 0)
    assert "is being worked on by cli/another" in failure["failure"]


def test_a_request_that_is_too_large_is_refused_and_not_sent_back(api, bearer, half_done):
    sent = b'{"dry_run": "' + b"x" * 1_000_000 + b'"}'
    headers = {**bearer("admin"), "Content-Type": "application/json"}
    for content in (sent, iter([sent[:500_000], sent[500_000:]])):  # the second has no length in its header
        answer = api.post(half_done.url + "/resume", headers=headers, content=content)
        assert (answer.status_code, len(answer.content) < 200) == (413, True)


@pytest.mark.parametrize(
    "body", ['{"dry_run": "no secret of mine"}', '{"no secret of mine": 1}', '{"dry_run": no secret of mine', '"no"']
)
def test_a_request_that_is_not_understood_is_not_sent_back(api, bearer, half_done, body):
    headers = {**bearer("admin"), "Content-Type": "application/json"}
    answer = api.post(half_done.url + "/resume", headers=headers, content=body)
    assert answer.status_code == 422
    assert all(set(problem) == {"type", "loc", "msg"} for problem in answer.json()["errors"])
    assert "no secret" not in answer.text or body.startswith('{"no secret')  # the name of a field is


def test_a_cookie_is_as_good_as_a_token(api, bearer, half_done):
    token = bearer("admin")["Authorization"].removeprefix("Bearer ")
    sent = {"Cookie": f"_token={token}", "Origin": "http://testserver", "Sec-Fetch-Site": "same-origin"}
    assert api.post(half_done.url + "/resume", headers=sent, json={}).status_code == 200


def test_a_field_that_is_not_known_is_refused(api, bearer, half_done):
    assert api.post(half_done.url + "/resume", headers=bearer("admin"), json={"dryrun": True}).status_code == 422


def test_a_run_that_does_not_exist_is_not_found_and_the_newest_are_named(api, bearer, half_done):
    answer = api.get("/stagehold/api/dags/shipping_priority/runs/never/grid", headers=bearer("admin"))
    assert answer.status_code == 404
    said, known = answer.json()["detail"].split(" Known: ")
    assert said == "There is no run 'shipping_priority/never'."
    assert f"shipping_priority/{half_done.run_id}" in known


def test_a_dag_without_regions_is_told_apart_politely(api, bearer, run_of_another):
    answer = api.get(run_of_another.url + "/grid", headers=bearer("admin"))
    assert (answer.status_code, "is not a Stagehold pipeline" in answer.json()["detail"]) == (404, True)


def test_whoever_has_the_page_as_it_is_is_told_so(api, bearer, half_done):
    first = api.get(half_done.url + "/grid", headers=bearer("viewer"))
    known = {"If-None-Match": first.headers["etag"], **bearer("viewer")}
    again = api.get(half_done.url + "/grid", headers=known)
    assert (again.status_code, again.content) == (304, b"")
    assert api.get(half_done.url + "/grid", headers={**known, **bearer("admin")}).status_code == 200


def test_a_page_says_when_the_lake_was_looked_into_also_to_whoever_has_it_already(api, bearer, half_done):
    before = datetime.now(UTC)
    first = api.get(half_done.url + "/grid", headers=bearer("viewer"))
    looked = first.json()["looked"]
    assert (looked["into"], looked["problem"]) == ("lake", None)
    assert before <= datetime.fromisoformat(looked["at"]) <= datetime.now(UTC)
    again = api.get(half_done.url + "/grid", headers={"If-None-Match": first.headers["etag"], **bearer("viewer")})
    assert again.status_code == 304
    # a page that takes long is kept for a while, and is as old as it says
    assert first.headers["stagehold-looked-at"] <= again.headers["stagehold-looked-at"] <= datetime.now(UTC).isoformat()


def test_without_the_lake_the_answer_has_the_ledgers_figures_and_the_reason(api, bearer, half_done):
    with moved_away(Path(load_settings().lake_uri)):
        answer = api.get(half_done.url + "/grid", headers=bearer("admin"))
    assert answer.status_code == 200
    told = answer.json()
    assert (told["consumable"], told["partitions"], told["planned"]) == (53, 81, False)
    assert (told["looked"]["into"], told["looked"]["at"]) == ("record", None)
    assert "has no files" in told["looked"]["problem"]
    assert told["resume"]["refusal"] == told["looked"]["problem"]
    known = {"If-None-Match": answer.headers["etag"], **bearer("admin")}
    assert api.get(half_done.url + "/grid", headers=known).json()["looked"]["into"] == "lake"


def test_figures_of_pipelines_and_intervals_are_those_on_record(api, bearer, half_done):
    for path in ("overview", f"dags/{half_done.dag_id}/intervals"):
        answer = api.get(f"/stagehold/api/{path}", headers=bearer("viewer"))
        assert answer.json()["looked"] == {"into": "record", "at": None, "problem": None}


def test_partitions_are_listed_by_range(api, bearer, half_done):
    cells = api.get(half_done.url + "/stages/orders_by_customer/cells?first=4&last=6", headers=bearer("viewer")).json()
    assert [(cell["partition"], cell["state"]) for cell in cells] == [(4, "consumable"), (5, "failed"), (6, "failed")]


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("orders/cells?first=5&last=4", 422, "a range of at most 2,000 partitions"),
        ("orders/cells?first=0&last=2000", 422, "a range of at most 2,000 partitions"),
        ("order/cells?first=0&last=1", 404, "no stage order. It has: customer, orders"),
    ],
)
def test_a_range_that_cannot_be_listed_is_refused_with_the_reason(api, bearer, half_done, path, status, said):
    answer = api.get(f"{half_done.url}/stages/{path}", headers=bearer("viewer"))
    assert (answer.status_code, said in answer.json()["detail"]) == (status, True)
