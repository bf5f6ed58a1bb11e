"""What `make compose-test` asks of an engine, and what it counts, without an engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzz.compose.containers import ONCE, STAYING, chosen_command, own_environment
from fuzz.compose.inside import known, recorded_twice
from tests.made_records import partition_record
from tests.test_compose import COMPOSE

from stagehold.local.setup.own_secrets import require_own_secrets
from stagehold.model.standing import PartitionState


def test_each_service_that_stays_is_killed_and_no_other() -> None:
    assert {name for name, service in COMPOSE.services.items() if not service.ends} == set(STAYING)
    assert {name for name, service in COMPOSE.services.items() if service.ends} == set(ONCE)


@pytest.mark.parametrize(
    ("given", "answering", "chosen"),
    [
        ("", ["docker", "podman-compose"], "docker compose"),
        ("", ["podman-compose"], "podman-compose"),
        ("podman-compose", ["docker", "podman-compose"], "podman-compose"),
        ("sudo docker compose", ["sudo"], "sudo docker compose"),
    ],
)
def test_the_command_is_the_one_that_is_given_or_the_first_that_answers(
    given: str, answering: list[str], chosen: str
) -> None:
    assert chosen_command(given, lambda command: command[0] in answering) == chosen


@pytest.mark.parametrize(
    ("given", "said"), [("", "neither of 'docker compose', 'podman-compose' answers"), ("x", "'x'")]
)
def test_without_one_it_is_told_what_to_install(given: str, said: str) -> None:
    with pytest.raises(SystemExit, match=f"COMPOSE: {said}.*make compose-test COMPOSE=podman-compose"):
        chosen_command(given, lambda command: False)


def test_the_containers_would_start_where_others_reach_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_PORT", "18080")
    made = own_environment()
    require_own_secrets(made | {"BIND_ADDRESS": "0.0.0.0"})
    assert made["AIRFLOW_PORT"] == "18080"
    assert made["COMPOSE_PARALLEL_LIMIT"] == "1"
    assert own_environment()["POSTGRES_PASSWORD"] != made["POSTGRES_PASSWORD"]


def test_a_partition_counts_as_computed_twice_if_two_records_say_that_it_can_be_read() -> None:
    kept_back = partition_record(1, state=PartitionState.BLOCKED)
    assert recorded_twice([partition_record(0), kept_back, partition_record(1)]) == []
    assert recorded_twice([partition_record(0), partition_record(1), partition_record(1)]) == ["joined 1"]


def test_of_a_run_that_did_not_end_well_there_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAGEHOLD_HOME", str(tmp_path))
    assert known("never") == {"same": False, "partitions": 0, "attempts": 0, "twice": []}
