"""What Airflow's children find imported: not by importing it here, where other tests have done so."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from stagehold.settings import Settings
from stagehold.spark.processes import python_environment

pytestmark = pytest.mark.airflow

FOR_A_TASK = {"airflow.sdk", "stagehold.run.here.region", "pyspark.sql.connect", "deltalake", "great_expectations"}
LOOK = """
import json, sys, threading
from sqlalchemy import Engine, event
from stagehold.local.airflow_process import begin
from stagehold.local.airflow_process import prepare
prepare(sys.argv[1])
begins = event.contains(Engine, "savepoint", begin)
json.dump({"modules": sorted(sys.modules), "threads": threading.active_count(), "begins": begins}, sys.stdout)
"""


def prepared(command: str, settings: Settings) -> set[str]:
    ended = subprocess.run(
        [sys.executable, "-c", LOOK, command],
        env=python_environment(settings),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    found = json.loads(ended.stdout.splitlines()[-1])
    assert found["threads"] == 1, "a fork has none of its parent's threads"
    assert found["begins"], "savepoints on SQLite are no transactions of their own"
    return set(found["modules"])


@pytest.mark.parametrize(
    ("command", "imported", "not_imported"),
    [
        ("scheduler", FOR_A_TASK, {"jobs"}),  # what the user may change while Airflow is up
        ("dag-processor", {"airflow.sdk", "stagehold.airflow.dag.compile"}, {"jobs", "pyspark", "great_expectations"}),
        ("api-server", set(), {"airflow", "pyspark"}),
    ],
)
def test_a_process_has_imported_what_its_children_need(
    own_settings: Settings, command: str, imported: set[str], not_imported: set[str]
) -> None:
    modules = prepared(command, own_settings)
    assert imported <= modules
    assert not not_imported & modules
