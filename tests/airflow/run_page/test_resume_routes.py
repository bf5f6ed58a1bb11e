"""Resume and restores in the web API inside Airflow's own app: what they say, and that a resume really clears tasks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from uuid import uuid4

import pytest
from tests.airflow.made_runs import HalfDone, make_dag_run

from stagehold.ledger.attempts import Attempts
from stagehold.ledger.ledger import Ledger
from stagehold.ledger.partitions import Partitions
from stagehold.settings import load_settings

pytestmark = pytest.mark.airflow


@pytest.mark.parametrize(
    ("role", "expected"), [("admin", 200), ("op", 200), ("user", 200), ("viewer", 403), (None, 403)]
)
def test_resuming_needs_the_right_to_clear_tasks(api, bearer, half_done, role, expected):
    assert api.post(half_done.url + "/resume", headers=bearer(role), json={"dry_run": True}).status_code == expected


def test_nobody_resumes_without_logging_in(api, half_done):
    assert api.post(half_done.url + "/resume", json={}).status_code == 401


def test_the_preview_counts_what_is_reused(api, bearer, half_done):
    preview = api.get(half_done.url + "/plan", headers=bearer("admin")).json()
    assert (preview["refusal"], preview["reuse"], preview["run"]) == (None, 53, 28)
    assert [task["task_id"] for task in preview["tasks"]] == ["orders_by_customer", "shipping_priority", "top_orders"]


def states(half_done) -> dict[str, str | None]:
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        dag_run = session.scalar(
            select(DagRun).where(DagRun.dag_id == half_done.dag_id, DagRun.run_id == half_done.run_id)
        )
        return {"run": dag_run.state} | {
            instance.task_id: instance.state for instance in dag_run.get_task_instances(session=session)
        }


def notes(half_done) -> set[str | None]:
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        found = session.scalars(
            select(TaskInstance).where(TaskInstance.run_id == half_done.run_id, TaskInstance.state.is_(None))
        )
        return {instance.note for instance in found}


def test_a_dry_run_changes_nothing(api, bearer, half_done):
    before = states(half_done)
    answer = api.post(half_done.url + "/resume", headers=bearer("admin"), json={"dry_run": True}).json()
    assert len(answer["cleared"]) == 3
    assert states(half_done) == before


def test_a_dry_run_reads_what_is_on_record_once_and_no_more_than_it_says(api, bearer, half_done, monkeypatch):
    read: list[str] = []
    of_each, of_run = Partitions.newest_of_each, Attempts.of_run
    monkeypatch.setattr(Partitions, "newest_of_each", lambda self, *of: read.append("partitions") or of_each(self, *of))
    monkeypatch.setattr(Attempts, "of_run", lambda self, run: read.append("attempts") or of_run(self, run))
    api.post(half_done.url + "/resume", headers=bearer("admin"), json={"dry_run": True})
    api.get(half_done.url + "/plan", headers=bearer("admin"))
    assert read == ["partitions", "partitions"]


def test_a_resume_clears_exactly_what_it_says_in_the_same_run(api, bearer, half_done):
    answer = api.post(half_done.url + "/resume", headers=bearer("user"), json={}).json()
    assert [task["task_id"] for task in answer["cleared"]] == ["orders_by_customer", "shipping_priority", "top_orders"]
    assert states(half_done) == {
        "run": "queued",
        "customer": "success",
        "orders": "success",
        "lineitem": "success",
        "orders_by_customer": None,
        "shipping_priority": None,
        "top_orders": None,
    }
    (note,) = notes(half_done)
    assert note.startswith("Resumed by Stagehold: reuses 53 partitions, runs 28.")


def test_a_stage_is_computed_once_more_with_the_run_that_is_resumed(api, bearer, half_done):
    url, wanted = half_done.url + "/again", {"stages": ["customer"]}
    assert api.post(url, json=wanted).status_code == 401
    assert api.post(url, headers=bearer("viewer"), json=wanted).status_code == 403
    assert api.post(url, headers=bearer("admin"), json={"stages": ["nothing"]}).status_code == 404
    assert api.post(url, headers=bearer("admin"), json={"stages": []}).status_code == 422
    looked = api.post(url, headers=bearer("admin"), json={**wanted, "dry_run": True}).json()
    assert [task["task_id"] for task in looked["cleared"]][:2] == ["customer", "orders_by_customer"]
    with Ledger.open(load_settings().ledger_url) as ledger:
        assert ledger.restores.of_run(f"{half_done.dag_id}/{half_done.run_id}") == ()
        answer = api.post(url, headers=bearer("user"), json=wanted).json()
        (asked,) = ledger.restores.of_run(f"{half_done.dag_id}/{half_done.run_id}")
    assert answer == {**looked, "dry_run": False}
    assert asked.work_order.anew == ("customer",)
    assert states(half_done)["customer"] is None
    cells = api.get(half_done.url + "/grid", headers=bearer("user")).json()["resume"]
    assert cells["run"] == looked["run"]  # tasks and page see the same request


def test_airflows_audit_log_names_who_resumed(api, bearer, half_done):
    from airflow.models.log import Log
    from airflow.utils.session import create_session
    from sqlalchemy import select

    api.post(half_done.url + "/resume", headers=bearer("user"), json={})
    with create_session() as session:
        entry = session.scalars(
            select(Log).where(Log.event == "post_clear_task_instances").order_by(Log.id.desc())
        ).first()
        assert entry.owner == "user user"


def test_a_second_resume_is_refused_while_the_first_goes_on(api, bearer, half_done):
    api.post(half_done.url + "/resume", headers=bearer("admin"), json={})
    again = api.post(half_done.url + "/resume", headers=bearer("admin"), json={})
    assert again.status_code == 409
    assert "is still queued" in again.json()["detail"]


def test_of_three_resumes_at_once_one_is_carried_out(api, bearer, half_done):
    headers, barrier = bearer("admin"), Barrier(3)

    def press() -> tuple[int, str]:
        barrier.wait()
        answer = api.post(half_done.url + "/resume", headers=headers, json={})
        return answer.status_code, answer.text

    with ThreadPoolExecutor(3) as presses:
        answers = sorted(one.result() for one in [presses.submit(press) for _ in range(3)])
    assert [code for code, _ in answers] == [200, 409, 409], answers
    for _, text in answers[1:]:
        assert (
            "admin user resumed it at" in text or "is being resumed at this moment by admin user, who pressed" in text
        )
    assert len(notes(half_done)) == 1


def test_a_resume_that_comes_while_another_one_is_under_way_is_refused(api, bearer, half_done):
    with Ledger.open(load_settings().ledger_url) as ledger:
        ledger.leases.acquire(f"resume of {half_done.dag_id}/{half_done.run_id}", "another api-server", 60)
    answer = api.post(half_done.url + "/resume", headers=bearer("admin"), json={})
    assert (answer.status_code, "at this moment by somebody else." in answer.json()["detail"]) == (409, True)


def test_a_dry_run_is_answered_while_somebody_resumes(api, bearer, half_done):
    with Ledger.open(load_settings().ledger_url) as ledger:
        ledger.leases.acquire(f"resume of {half_done.dag_id}/{half_done.run_id}", "another api-server", 60)
    answer = api.post(half_done.url + "/resume", headers=bearer("admin"), json={"dry_run": True})
    assert (answer.status_code, answer.json()["run"]) == (200, 28)


def test_a_resume_leaves_no_lease_behind(api, bearer, half_done):
    for answered in (200, 409, 404):
        url = "/stagehold/api/dags/shipping_priority/runs/never" if answered == 404 else half_done.url
        assert api.post(url + "/resume", headers=bearer("admin"), json={}).status_code == answered
    with Ledger.open(load_settings().ledger_url) as ledger:
        assert ledger.leases.alive_among([f"resume of {half_done.dag_id}/{half_done.run_id}"], [], 1) == ()


def test_a_restore_of_an_interval_without_records_runs_all_of_it(api, bearer, half_done):
    make_dag_run("shipping_priority", f"{half_done.run_id} later", {}, conf={"restore_from_stage": "orders"})
    url = HalfDone("shipping_priority", f"{half_done.run_id} later").url
    shown = api.get(url + "/grid", headers=bearer("admin")).json()
    assert shown["resume"]["refusal"] is None
    assert (shown["resume"]["reuse"], shown["resume"]["run"]) == (0, 81)


def test_the_page_shows_what_a_restore_runs_again(api, bearer, half_done):
    again = f"{half_done.run_id} again"
    make_dag_run("shipping_priority", again, {}, conf={"interval": half_done.run_id, "restore_from_stage": "orders"})
    shown = api.get(HalfDone("shipping_priority", again).url + "/plan", headers=bearer("admin")).json()
    assert [task["name"] for task in shown["tasks"]] == [
        "orders",
        "orders_by_customer",
        "shipping_priority",
        "top_orders",
    ]
    assert (shown["reuse"], shown["run"]) == (32, 49)


@pytest.fixture
def savepoint(api, bearer, half_done) -> str:
    """Of the half-done run."""
    name = f"kept-{uuid4().hex[:8]}"
    made = api.post(f"{half_done.url}/savepoints", headers=bearer("admin"), json={"name": name})
    assert made.status_code == 201, made.text
    return name


def test_the_page_shows_what_a_run_begins_with_before_any_task_has_looked(api, bearer, half_done, savepoint):
    run = HalfDone("shipping_priority", f"{half_done.run_id} restored")
    make_dag_run(run.dag_id, run.run_id, {}, conf={"restore": savepoint})
    shown = api.get(run.url + "/grid", headers=bearer("viewer")).json()
    restore = shown["restore"]
    assert (restore["reference"], restore["problem"], restore["stage"]) == (savepoint, None, None)
    taken = restore["snapshot"]
    assert (taken["name"], taken["run_id"], taken["interval"]) == (
        savepoint,
        f"{half_done.dag_id}/{half_done.run_id}",
        half_done.run_id,
    )
    assert sum(cell["restored"] for stage in shown["stages"] for cell in stage["cells"]) == 53
    assert (shown["resume"]["reuse"], shown["resume"]["restored"], shown["resume"]["run"]) == (53, 53, 28)
    with Ledger.open(load_settings().ledger_url) as ledger:
        assert ledger.restores.of_run(f"{run.dag_id}/{run.run_id}") == ()  # looking notes nothing


def test_the_page_of_a_run_whose_savepoint_is_gone_shows_the_rest(api, bearer, half_done):
    run = HalfDone("shipping_priority", f"{half_done.run_id} restored")
    make_dag_run(run.dag_id, run.run_id, {}, conf={"restore": "gone"})
    shown = api.get(run.url + "/grid", headers=bearer("admin")).json()
    assert "There is no checkpoint 'gone' in lake" in shown["restore"]["problem"]
    assert (shown["restore"]["problem"], shown["partitions"]) == (shown["resume"]["refusal"], 81)
    refused = api.post(run.url + "/resume", headers=bearer("admin"), json={})
    assert (refused.status_code, refused.json()["detail"]) == (409, shown["restore"]["problem"])


@pytest.mark.parametrize(
    ("restore", "expected"),
    [
        ({"restore_from_stage": "orders"}, 200),
        ({"restore_from_stage": None}, 200),
        ({"restore_from_stage": "no_such_stage"}, 422),
        ({"restore": "latest"}, 200),
        ({"restore": "a/run#7", "allow_non_restored_state": True}, 200),
        ({"restore": 7}, 422),
        ({"restore": "kept", "allow_non_restored_state": "perhaps"}, 422),
    ],
)
def test_a_backfill_may_be_restored(api, bearer, restore, expected):
    asked = {
        "dag_id": "shipping_priority",
        "from_date": "2026-10-01T00:00:00Z",
        "to_date": "2026-10-03T23:00:00Z",
        "dag_run_conf": restore,
    }
    answer = api.post("/api/v2/backfills/dry_run", headers=bearer("admin"), json=asked)
    assert answer.status_code == expected
    assert expected != 200 or len(answer.json()["backfills"]) == 3
