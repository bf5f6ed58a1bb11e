"""Who works for a run, over the web API: who may ask, and what the answer is made of."""

from __future__ import annotations

import pytest
from tests.airflow.made_runs import begin_attempt

from stagehold.ledger.ledger import Ledger
from stagehold.model.pulse import Memory, Pulse, Side
from stagehold.model.records import Lease
from stagehold.settings import load_settings

pytestmark = pytest.mark.airflow

PULSE = Pulse(
    stage="orders_by_customer",
    wave=3,
    doing=Side.READING,
    done=12,
    partitions=16,
    rows=24_000,
    bytes=5_000_000,
    read=9_000_000,
    rows_a_second=1200.4,
    bytes_a_second=250_000.0,
    seconds={Side.READING: 6.0, Side.WRITING: 2.0},
    memory=Memory(150_000_000, 2_000_000_000),
)


@pytest.fixture
def lease(half_done) -> Lease:
    """Of an attempt that computes, as its last heartbeat said."""
    taken = begin_attempt(half_done, "orders_by_customer", 60)
    with Ledger.open(load_settings().ledger_url) as ledger:
        return ledger.leases.renew(taken, 60, PULSE)


@pytest.mark.parametrize(("role", "expected"), [("admin", 200), ("viewer", 200), (None, 403)])
def test_leases_are_for_those_who_may_see_runs(api, bearer, half_done, role, expected):
    for url in (f"{half_done.url}/leases", f"/stagehold/api/dags/{half_done.dag_id}/leases"):
        assert api.get(url, headers=bearer(role)).status_code == expected


def test_the_lease_of_a_run_tells_its_holder_its_times_and_how_the_work_gets_on(api, bearer, half_done, lease):
    (told,) = api.get(f"{half_done.url}/leases", headers=bearer("viewer")).json()["leases"]
    assert (told["kind"], told["subject"], told["interval"]) == ("region", "orders_by_customer", half_done.run_id)
    assert told["run_id"] == f"{half_done.dag_id}/{half_done.run_id}"
    assert (told["owner"], told["host"], told["pid"], told["epoch"]) == ("ann", "host", 7, lease.epoch)
    assert told["taken_at"] <= told["renewed_at"] < told["expires_at"]
    assert 0 < told["seconds_left"] <= 60
    pulse = told["pulse"]
    assert (pulse["doing"], pulse["done"], pulse["partitions"]) == ("reading", 12, 16)
    assert (pulse["slowest"], pulse["share_of_slowest"]) == ("reading", 0.75)
    assert (pulse["client_bytes"], pulse["server_bytes"]) == (150_000_000, 2_000_000_000)


def test_those_of_a_pipeline_are_of_all_its_runs(api, bearer, half_done, lease):
    found = api.get(f"/stagehold/api/dags/{half_done.dag_id}/leases", headers=bearer("viewer")).json()["leases"]
    assert lease.name in [told["name"] for told in found]
    assert all(f"{half_done.dag_id}/" in told["name"] for told in found), "a Resume has one of its own: `resume of ...`"


def test_a_dag_that_is_none_of_ours_has_none_to_tell_of(api, bearer, run_of_another):
    answer = api.get(f"{run_of_another.url}/leases", headers=bearer("admin"))
    assert answer.status_code == 404
    assert run_of_another.dag_id in answer.json()["detail"]
