"""`stagehold status` says what is known of services that somebody else runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.conftest import free_port
from tests.foreign_programs import listening, says
from typer.testing import CliRunner

from stagehold.cli.main import app

HEALTHY = json.dumps({"metadatabase": {"status": "healthy"}, "triggerer": {"status": None}})


def airflow(answers: str = "200 OK", body: str = HEALTHY) -> bytes:
    return f"HTTP/1.1 {answers}\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("STAGEHOLD_HOME", str(tmp_path))
    monkeypatch.setenv("STAGEHOLD_AIRFLOW_TOKEN", "s3cret")
    monkeypatch.chdir(tmp_path)
    return monkeypatch


def status() -> tuple[str, dict[str, dict[str, str]]]:
    """What people are told, and what programs are told of each service."""
    text, document = (CliRunner().invoke(app, ["status", *more]) for more in ([], ["--json"]))
    assert (text.exit_code, document.exit_code) == (0, 0), text.output
    assert "s3cret" not in text.output + document.output
    return text.output, {service["service"]: service for service in json.loads(document.stdout)["elsewhere"]}


def test_without_such_settings_nothing_is_said_of_them(elsewhere: pytest.MonkeyPatch) -> None:
    text, services = status()
    assert services == {}
    assert "somebody else" not in text


def test_an_airflow_that_answers_says_how_its_parts_are(elsewhere: pytest.MonkeyPatch) -> None:
    with listening(says(airflow())) as port:
        elsewhere.setenv("STAGEHOLD_AIRFLOW_URL", f"http://127.0.0.1:{port}")
        text, services = status()
    assert services["airflow"]["state"] == "answers"
    assert services["airflow"]["known"] == "metadatabase healthy; commands are let in"
    assert "metadatabase healthy" in text
    assert "`stagehold up` starts them" not in text


@pytest.mark.parametrize(
    ("answer", "state", "known"),
    [
        (airflow("401 Unauthorized"), "set wrongly", "STAGEHOLD_AIRFLOW_TOKEN"),
        (airflow(body="<html>"), "set wrongly", "STAGEHOLD_AIRFLOW_URL"),
        (b"", "does not answer", "Run the command again"),
    ],
)
def test_an_airflow_that_is_no_use_is_told_with_what_to_do(
    elsewhere: pytest.MonkeyPatch, answer: bytes, state: str, known: str
) -> None:
    with listening(says(answer)) as port:
        elsewhere.setenv("STAGEHOLD_AIRFLOW_URL", f"http://127.0.0.1:{port}")
        text, services = status()
    assert services["airflow"]["state"] == state
    assert known in services["airflow"]["known"]
    assert known in " ".join(text.split())


def test_a_spark_server_that_is_away_or_set_wrongly_is_told(elsewhere: pytest.MonkeyPatch) -> None:
    elsewhere.setenv("STAGEHOLD_SPARK_REMOTE", f"sc://127.0.0.1:{free_port()}/;token=s3cret")
    _, services = status()
    assert services["spark"]["state"] == "does not answer"
    elsewhere.setenv("STAGEHOLD_SPARK_REMOTE", "sc://no-such.invalid:1/;token=s3cret")
    _, services = status()
    assert (services["spark"]["state"], services["spark"]["address"]) == ("set wrongly", "sc://no-such.invalid:1")


@pytest.mark.spark
def test_a_spark_server_that_answers_says_its_version(elsewhere: pytest.MonkeyPatch, spark_remote: str) -> None:
    elsewhere.setenv("STAGEHOLD_SPARK_REMOTE", spark_remote)
    _, services = status()
    assert services["spark"]["state"] == "answers"
    assert services["spark"]["known"].startswith("Spark 4.")


@pytest.mark.spark
def test_check_spark_says_what_is_there(elsewhere: pytest.MonkeyPatch, spark_remote: str) -> None:
    elsewhere.setenv("STAGEHOLD_SPARK_REMOTE", spark_remote)
    checked = CliRunner().invoke(app, ["check", "--spark", "--json"])
    assert checked.exit_code == 0, checked.output
    facts = json.loads(checked.stdout)["facts"]
    assert [(fact["what"], fact["change"]) for fact in facts] == [
        (what, "") for what in ("session", "Delta", "Python of workers", "lake")
    ]
    elsewhere.setenv("STAGEHOLD_LAKE", "/proc/no-lake")
    refused = CliRunner().invoke(app, ["check", "--spark"])
    assert refused.exit_code == 1
    assert "lake: Mount the same folder" in " ".join(refused.output.split())
    elsewhere.setenv("STAGEHOLD_SPARK_REMOTE", f"{spark_remote.partition('/;')[0]}/;token=other")
    stranger = CliRunner().invoke(app, ["check", "--spark"])
    assert stranger.exit_code == 1
    assert "does not accept the token" in " ".join(stranger.output.split())
