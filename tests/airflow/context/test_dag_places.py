"""The place of a pipeline in Airflow, and the way back from it."""

from __future__ import annotations

import pytest

from stagehold.airflow.context.dag_places import DagPlace, places_of


def test_runs_of_two_dags_with_one_airflow_run_id_are_two_runs():
    assert DagPlace("a").run("scheduled__2026-11-21") != DagPlace("b").run("scheduled__2026-11-21")


def test_a_dag_with_one_pipeline_is_its_place_and_one_with_several_has_one_for_each():
    assert {name: str(place) for name, place in places_of("nightly", ["orders", "orders"]).items()} == {
        "orders": "nightly"
    }
    assert {name: str(place) for name, place in places_of("nightly", ["orders", "customers", "orders"]).items()} == {
        "orders": "nightly~orders",
        "customers": "nightly~customers",
    }


@pytest.mark.parametrize("place", [DagPlace("nightly"), DagPlace("a.b-c_d", "orders")])
@pytest.mark.parametrize("run_id", ["scheduled__2026-11-21T02:00:00+00:00", "by hand/twice~over", ""])
def test_a_place_and_a_run_are_found_again(place, run_id):
    assert DagPlace.parse(str(place)) == place
    assert DagPlace.of_run(place.run(run_id)) == (place, run_id)
