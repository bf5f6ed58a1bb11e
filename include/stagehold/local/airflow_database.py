"""Airflow's SQLite metadata database, migrated once per Airflow version and copied from then on."""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

from stagehold.errors import ServicesFailed
from stagehold.local.airflow_settings import airflow_database, airflow_home, service_environment
from stagehold.run.processes import start_process
from stagehold.settings import Settings


def prepare_database(settings: Settings) -> None:
    """Have this Airflow version's schema in the home's database; at once when it is there, quick when it is new."""
    database, marker, template = airflow_database(settings), airflow_home(settings) / "migrated", _template(settings)
    if database.exists() and marker.exists() and marker.read_text() == _version():
        return
    if not database.exists() and template.exists():
        _copy(template, database)
    else:
        fresh = not database.exists()
        _migrate(settings)
        if fresh:  # before anything of this home's own is in it
            _copy(database, template)
    marker.write_text(_version())


def _migrate(settings: Settings) -> None:
    command, log = [sys.executable, "-m", "airflow", "db", "migrate"], settings.home_path / "logs" / "airflow-migrate.log"
    code = start_process(command, environment=service_environment(settings), folder=airflow_home(settings), log=log).wait()
    if code:
        raise ServicesFailed("airflow db migrate", f"failed with code {code}", log.read_text(errors="replace").splitlines()[-8:])


def _copy(source: Path, target: Path) -> None:
    """Whole or not at all, and with what SQLite still has in its write-ahead log."""
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(draft)) as new:
        old.backup(new)
    draft.replace(target)


def _template(settings: Settings) -> Path:
    return Path(settings.cache) / "airflow" / f"migrated-{_version()}.db"


def _version() -> str:
    return version("apache-airflow-core")
