"""The overview's routes inside Airflow's own app: who may call them, what they say, and what they keep back."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from stagehold.airflow.pipeline_page.pipeline_responses import Staleness
from stagehold.errors.ledger_errors import LedgerUnavailable
from stagehold.ledger.ledger import Ledger
from stagehold.run.clearing.garbage_collector import MAINTENANCE
from stagehold.settings import load_settings
from stagehold.spec.loading import loader

pytestmark = pytest.mark.airflow

OVERVIEW, SIZES, STALE = (f"/stagehold/api/overview{path}" for path in ("", "/sizes", "/stale"))
SUMMING_SECONDS = 30


@pytest.mark.parametrize("path", [OVERVIEW, SIZES, STALE])
@pytest.mark.parametrize(
    ("role", "expected"), [("admin", 200), ("op", 200), ("user", 200), ("viewer", 200), (None, 403)]
)
def test_looking_needs_the_right_to_see_dags(api, bearer, synced_airflow, path, role, expected):
    assert api.get(path, headers=bearer(role)).status_code == expected


@pytest.mark.parametrize("path", [OVERVIEW, SIZES, STALE])
def test_nobody_looks_without_logging_in(api, path):
    assert api.get(path).status_code == 401


def row_of(api, headers, name: str) -> dict:
    (row,) = [one for one in api.get(OVERVIEW, headers=headers).json()["pipelines"] if one["name"] == name]
    return row


def test_a_pipeline_tells_its_newest_interval_and_why_it_needs_a_look(api, bearer, stopped):
    row = row_of(api, bearer("viewer"), "shipping_priority")
    assert row["newest"]["mark"]["interval"] == stopped
    assert (row["newest"]["mark"]["word"], row["newest"]["state"]) == ("silent", None)
    assert row["marks"][-1] == row["newest"]["mark"]
    assert row["schedule"] == "0 2 * * *"


def test_airflows_word_about_a_run_counts(api, bearer, half_done):
    words = {one["run_id"]: one["word"] for one in row_of(api, bearer("viewer"), half_done.dag_id)["marks"]}
    assert words[f"{half_done.dag_id}/{half_done.run_id}"] == "failed"


def test_what_airflow_changes_of_a_run_is_seen_at_once(api, bearer, half_done):
    """States and briefs are kept from one request to the next."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import delete, update

    this, own = (DagRun.dag_id == half_done.dag_id, DagRun.run_id == half_done.run_id), half_done.dag_id
    for state in ("queued", "success", "running", "failed"):
        with create_session() as session:
            session.execute(update(DagRun).where(*this).values(state=state))
        for _ in range(2):
            row = row_of(api, bearer("viewer"), own)
            words = {one["run_id"]: (one["word"], one["need"]) for one in row["marks"]}
            word, need = words[f"{own}/{half_done.run_id}"]
            assert (word, need) == (state, {"success": "incomplete", "failed": "failed"}.get(state))
            running = api.get(OVERVIEW, headers=bearer("viewer"), params={"kind": "running", "search": own}).json()
            assert bool(running["pipelines"]) is (row["active"] > 0)
    with create_session() as session:
        session.execute(delete(DagRun).where(*this))
    marks = {one["run_id"]: one for one in row_of(api, bearer("viewer"), own)["marks"]}
    assert marks[f"{own}/{half_done.run_id}"]["step"] == "run"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"search": "SHIPPING"}, {"shipping_priority"}),
        ({"search": "shipping", "kind": "failing"}, {"shipping_priority"}),
        ({"search": "shipping", "kind": "current"}, set()),
        ({"search": "customer_totals", "kind": "stale"}, set()),
        ({"owner": "airflow", "search": "customer_totals"}, {"customer_totals"}),
        ({"owner": "nobody"}, set()),
        ({"tag": "none has it"}, set()),
    ],
)
def test_pipelines_are_searched_for_on_the_server(api, bearer, stopped, query, expected):
    told = api.get(OVERVIEW, headers=bearer("viewer"), params=query).json()
    assert {one["name"] for one in told["pipelines"]} == expected
    assert (told["found"], told["me"]) == (len(expected), "viewer user")


def test_pages_hold_each_pipeline_once(api, bearer, synced_airflow):
    pages, offset = [], 0
    while not pages or pages[-1]["pipelines"]:
        pages.append(api.get(OVERVIEW, headers=bearer("viewer"), params={"limit": 1, "offset": offset}).json())
        offset += 1
    names = [one["name"] for page in pages for one in page["pipelines"]]
    assert len(names) == len({*names}) == pages[0]["found"] == pages[0]["total"] > 1


@pytest.mark.parametrize("query", [{"kind": "green"}, {"order": "luck"}, {"limit": 0}, {"limit": 201}, {"offset": -1}])
def test_what_cannot_be_asked_is_refused(api, bearer, synced_airflow, query):
    assert api.get(OVERVIEW, headers=bearer("viewer"), params=query).status_code == 422


def test_each_interval_that_needs_somebody_says_why_and_what_to_press(api, bearer, refused_run):
    marks = {one["run_id"]: one for one in row_of(api, bearer("viewer"), refused_run.dag_id)["marks"]}
    mark = marks[f"{refused_run.dag_id}/{refused_run.run_id}"]
    assert (mark["need"], mark["step"]) == ("blocked", "look")
    assert "5 blocked" in mark["reason"]


def test_staleness_is_told_of_those_that_are_named(api, bearer, synced_airflow):
    told = api.get(STALE, headers=bearer("viewer"), params={"names": "customer_totals"}).json()
    assert [one["name"] for one in told["pipelines"]] == ["customer_totals"]


def test_a_pipeline_that_cannot_be_planned_hides_what_is_stale_of_no_other(api, bearer, synced_airflow, monkeypatch):
    def planned(pipeline, *rest):
        if pipeline.name == "shipping_priority":
            raise LedgerUnavailable("the ledger", "no route to host")
        return Staleness(
            pipeline=pipeline.name, planned_at=datetime.now(UTC), looked_at=("2026-11-20",), stale=(), unplanned=()
        )

    monkeypatch.setattr("stagehold.airflow.overview.overview.staleness", planned)
    told = api.get(STALE, headers=bearer("viewer")).json()
    lines = {one["name"]: one for one in told["pipelines"]}
    assert told["planned"] is True
    assert "no route to host" in lines["shipping_priority"]["problem"]
    assert (lines["customer_totals"]["problem"], lines["customer_totals"]["looked_at"]) == (None, 1)


def test_packages_are_named_with_their_versions(api, bearer, synced_airflow):
    told = {one["package"]: one["version"] for one in api.get(OVERVIEW, headers=bearer("viewer")).json()["versions"]}
    assert told.keys() == {"stagehold", "apache-airflow", "pyspark", "delta-spark", "deltalake", "great-expectations"}
    assert told["apache-airflow"].startswith("3.3")


def test_whoever_has_the_overview_as_it_is_is_told_so(api, bearer, half_done):
    first = api.get(OVERVIEW, headers=bearer("viewer"))
    known = {"If-None-Match": first.headers["etag"], **bearer("viewer")}
    assert api.get(OVERVIEW, headers=known).status_code == 304


@pytest.fixture
def leases(synced_airflow):
    names = ("shipping_priority/day/orders", "customer_totals/day/daily_orders", MAINTENANCE)
    with Ledger.open(load_settings().ledger_url) as ledger:
        held = [ledger.leases.acquire(name, "somebody|host|7|1", 60) for name in names]
        yield names
        for lease in held:
            ledger.leases.release(lease)


def test_leases_are_told_with_their_holders(api, bearer, leases):
    told = {one["name"]: one for one in api.get(OVERVIEW, headers=bearer("viewer")).json()["leases"]}
    assert told.keys() >= {*leases}
    assert told[leases[0]]["holder"] == "somebody (process 7 on host)"


def counted(api, headers) -> dict:
    """The sizes, once they are summed: who asks while that takes long does not wait for it."""
    deadline = time.monotonic() + SUMMING_SECONDS
    while not (sizes := api.get(SIZES, headers=headers).json())["counted"]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return sizes


def test_sizes_are_summed_from_what_is_on_record(api, bearer, own_ledger, half_done):
    sizes = counted(api, bearer("viewer"))
    (ledger,) = sizes["ledgers"]
    assert (ledger["back_end"], ledger["bytes"] > 10_000) == ("sqlite", True)
    assert ledger["schema_version"].isdigit()


@pytest.fixture
def few_rights(api, monkeypatch):
    """Of all DAGs the reader may see one."""
    from airflow.api_fastapi.app import get_auth_manager

    def one(**_):
        return {"customer_totals"}

    monkeypatch.setattr(get_auth_manager(), "get_authorized_dag_ids", one)


def test_who_may_see_one_pipeline_learns_of_no_other(api, bearer, half_done, leases, few_rights):
    counted(api, bearer("viewer"))
    overview, sizes, stale = (api.get(path, headers=bearer("viewer")) for path in (OVERVIEW, SIZES, STALE))
    assert [one["name"] for one in overview.json()["pipelines"]] == ["customer_totals"]
    assert {one["name"] for one in overview.json()["leases"]} == {leases[1], MAINTENANCE}
    assert [one["bytes"] for one in sizes.json()["ledgers"]] == [None]
    assert [one["name"] for one in stale.json()["pipelines"]] == ["customer_totals"]
    for answer in (overview, sizes, stale):
        assert "shipping_priority" not in answer.text


def test_who_may_see_dags_but_no_runs_learns_names_alone(api, bearer, half_done, leases, monkeypatch):
    monkeypatch.setattr("stagehold.airflow.overview.visible_pipelines.may_see_runs", lambda dag_ids, user: frozenset())
    overview, sizes, stale = (api.get(path, headers=bearer("viewer")).json() for path in (OVERVIEW, SIZES, STALE))
    assert {one["standing"] for one in overview["pipelines"]} == {"hidden"}
    assert (overview["leases"], sizes["ledgers"], sizes["pipelines"], stale["pipelines"]) == ([], [], [], [])


def test_who_asks_again_has_no_file_and_no_dag_read_anew(api, bearer, half_done, monkeypatch):
    """The sample's files were written long ago, so they are kept."""
    from airflow.models.serialized_dag import SerializedDagModel

    api.get(OVERVIEW, headers=bearer("viewer"))
    read: list[str] = []
    monkeypatch.setattr(loader, "read_document", lambda path: read.append(path.name))
    monkeypatch.setattr(SerializedDagModel, "get_latest_serialized_dags", lambda **asked: read.append("a DAG"))
    names = [one["name"] for one in api.get(OVERVIEW, headers=bearer("viewer")).json()["pipelines"]]
    assert "shipping_priority" in names
    assert api.get(f"{half_done.url}/grid", headers=bearer("viewer")).status_code == 200
    assert read == []
