"""What OpenLineage's own provider writes of computed stages, in a process that has it installed."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.run.small_project import INTERVAL

pytestmark = [pytest.mark.airflow, pytest.mark.slow]

# Only what is not there anyway.
PACKAGES = (
    *("apache-airflow-providers-openlineage", "apache-airflow-providers-common-compat"),
    *("apache-airflow-providers-common-sql", "openlineage-integration-common", "openlineage-python"),
    *("openlineage-sql", "httpx2"),
)


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the provider, which no other test has."""
    folder = tmp_path_factory.mktemp("openlineage")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), *PACKAGES]
    subprocess.run(command, check=True, timeout=240)
    return folder


def emitted(tmp_path: Path, *paths: str, **environment: str) -> str:
    """What the module prints that emits the lineage of a small pipeline."""
    path = os.pathsep.join([*paths, *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-m", "tests.airflow.telling.emitting", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_computed_stage_is_one_event_with_the_verdicts_on_its_data(airflow_home, provider, tmp_path):
    events = tmp_path / "events"
    transport = json.dumps({"type": "file", "log_file_path": str(events), "append": True})
    emitted(tmp_path, str(provider), AIRFLOW__OPENLINEAGE__TRANSPORT=transport)
    (line,) = events.read_text().splitlines()
    event = json.loads(line)
    assert (event["eventType"], event["producer"]) == ("COMPLETE", "urn:stagehold")
    assert event["job"]["name"] == "sales.totals.totals"
    assert event["run"]["facets"]["parent"]["job"]["name"] == "sales.totals"
    facts = event["run"]["facets"]["stagehold"]
    assert [facts[name] for name in ("interval", "partitions", "computed", "waves")] == [INTERVAL, 2, 1, 1]
    lake = tmp_path / "lake"
    assert [one["name"] for one in event["inputs"]] == [f"{lake}/stages/sales/orders/{INTERVAL}"]
    (output,) = event["outputs"]
    assert (output["namespace"], output["name"]) == ("file", f"{lake}/marts/totals")
    statistics = output["outputFacets"]["outputStatistics"]
    assert [statistics[name] for name in ("rowCount", "size", "fileCount")] == [14, 30, 2]
    said = output["facets"]["dataQualityAssertions"]["assertions"]
    assert [(one["assertion"], one["success"], one["severity"]) for one in said] == [
        ("few(rows)", False, "warn"),
        ("not_null(price)", True, "error"),
    ]
    assert (said[0]["actual"], said[0]["description"]) == ("12", "not met by partition(s) 1")


def test_a_transport_that_fails_is_on_record_and_fails_nothing(airflow_home, provider, tmp_path):
    with socket.socket() as nobody:  # who listens there
        nobody.bind(("127.0.0.1", 0))
        host = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        settings = {"type": "http", "url": host, "retry": {"total": 0}, "timeout": 2}
        told = emitted(tmp_path, str(provider), AIRFLOW__OPENLINEAGE__TRANSPORT=json.dumps(settings))
    assert "not told: OpenLineage, of totals: ConnectionError: " in told


def test_without_a_transport_nothing_is_sent(airflow_home, provider, tmp_path):
    assert "openlineage" in emitted(tmp_path, str(provider)).splitlines()[-1]


def test_without_the_provider_nothing_of_it_is_imported(airflow_home, tmp_path):
    assert "openlineage" not in emitted(tmp_path).splitlines()[-1]
