"""A command imports what it needs to answer, and nothing else: importing is most of what a short command does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stagehold.local.project.new_project import write_project

CODE = """
import json, sys
from typer.testing import CliRunner
from stagehold.cli.main import app
result = CliRunner().invoke(app, sys.argv[1:])
assert result.exit_code == 0, result.output
print(json.dumps(sorted(sys.modules)))
"""
SLOW = {"airflow", "deltalake", "duckdb", "great_expectations", "grpc", "httpx", "pandas", "pyarrow", "pyspark", "rich"}


@pytest.fixture
def project(tmp_path: Path, ledger_file: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STAGEHOLD_HOME", str(tmp_path / ".stagehold"))
    monkeypatch.setenv("STAGEHOLD_LEDGER", f"sqlite:///{ledger_file}")  # which Alembic need not make
    write_project(tmp_path)
    return tmp_path


def imported(*words: str, folder: Path) -> set[str]:
    own = {name: value for name, value in os.environ.items() if name != "STAGEHOLD_PIPELINES"}
    command = [sys.executable, "-c", CODE, *words]
    done = subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def packages(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def within(modules: set[str], *prefixes: str) -> list[str]:
    return sorted(name for name in modules if name.startswith(prefixes))


def test_status_imports_the_ledger_and_no_other_command(project: Path) -> None:
    modules = imported("status", "--json", folder=project)
    assert packages(modules) & (SLOW | {"croniter", "pydantic", "yaml"}) == set()
    assert "sqlalchemy.dialects.postgresql" not in modules
    assert within(modules, "stagehold.spec.", "stagehold.run.", "stagehold.gates.") == []
    assert set(within(modules, "stagehold.cli.")) <= {
        "stagehold.cli.common",
        "stagehold.cli.common.output",
        "stagehold.cli.common.request",
        "stagehold.cli.main",
        "stagehold.cli.sandbox",
        "stagehold.cli.service_commands",  # which says what is up
        "stagehold.cli.status",
    }
    assert len(within(modules, "stagehold.")) <= 100, within(modules, "stagehold.")


def test_a_plan_imports_nothing_that_runs_it(project: Path) -> None:
    modules = imported("plan", "customer_totals", "--json", folder=project)
    assert packages(modules) & SLOW == set()
    assert within(modules, "stagehold.spark.", "stagehold.run.here.", "stagehold.run.attempt.") == []
    assert len(within(modules, "stagehold.")) <= 210, within(modules, "stagehold.")
