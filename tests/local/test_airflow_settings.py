from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from stagehold.local.airflow_configuration import admin_password, airflow_environment, airflow_home, service_environment
from stagehold.settings import Settings, load_settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=str(tmp_path / "home"), airflow_port=8123, lease_seconds=7)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("AIRFLOW__API__HOST", "127.0.0.1"),
        ("AIRFLOW__API__PORT", "8123"),
        ("AIRFLOW__API__BASE_URL", "http://127.0.0.1:8123"),
        ("AIRFLOW__CORE__EXECUTOR", "LocalExecutor"),
        ("AIRFLOW__CORE__LOAD_EXAMPLES", "False"),
        ("AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME", "0.2"),
        ("AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL", "1"),
        ("AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT", "7"),
    ],
)
def test_airflow_is_given(settings: Settings, variable: str, value: str) -> None:
    assert airflow_environment(settings)[variable] == value


def test_everything_airflow_keeps_is_under_home(settings: Settings) -> None:
    environment = airflow_environment(settings)
    for variable in (
        "AIRFLOW_HOME",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE",
    ):
        assert settings.home in environment[variable]


def test_secrets_are_made_once_per_home_and_kept_to_their_owner(settings: Settings) -> None:
    first = airflow_environment(settings)
    assert airflow_environment(settings) == first
    assert {stat.S_IMODE(file.stat().st_mode) for file in airflow_home(settings).glob("*.json")} == {0o600}
    other = airflow_environment(replace(settings, home=f"{settings.home}-2"))
    for variable in ("AIRFLOW__API_AUTH__JWT_SECRET", "AIRFLOW__API__SECRET_KEY", "AIRFLOW__CORE__FERNET_KEY"):
        assert other[variable] != first[variable]


def test_a_password_is_made_up_once_and_a_given_one_replaces_it(settings: Settings) -> None:
    made_up = admin_password(settings)
    assert admin_password(settings) == made_up
    assert admin_password(replace(settings, admin_password="given")) == "given"
    assert admin_password(settings) == "given"
    assert json.loads((airflow_home(settings) / "passwords.json").read_text()) == {"admin": "given"}


def test_another_airflow_of_this_machine_has_no_say(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "postgresql://production")
    monkeypatch.setenv("AIRFLOW__CORE__AUTH_MANAGER", "elsewhere.Manager")
    environment = service_environment(settings)
    assert "production" not in environment["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"]
    assert "AIRFLOW__CORE__AUTH_MANAGER" not in environment


def test_services_read_the_same_settings_and_find_the_code(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/mine")
    environment = service_environment(replace(settings, project="/project"))
    assert load_settings(environment) == replace(settings, project="/project")
    paths = environment["PYTHONPATH"].split(":")
    assert paths[0].endswith("include")
    assert paths[1:] == ["/project", "/mine"]
