"""Airflow's SQLite database, migrated once per Airflow version and then copied, with the pool of slots in it."""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

from stagehold.errors import ServicesFailed
from stagehold.local.airflow_configuration import airflow_database, airflow_home, service_environment
from stagehold.settings import SPARK_POOL, Settings
from stagehold.spark.processes import start_process

# What `airflow pools set` does, which takes it five seconds.
POOL = """
    INSERT INTO slot_pool (pool, slots, description, include_deferred)
    VALUES (?, ?, 'Slots of the Spark server, taken by region tasks', FALSE)
    ON CONFLICT (pool) DO UPDATE SET slots = excluded.slots
"""


def prepare_database(settings: Settings) -> None:
    """Have this Airflow version's schema in the home's database, and the pool with the slots that are set.

    At once when both are there, quick when the database is new.
    """
    _prepare_schema(settings)
    if settings.spark_slots:
        with closing(sqlite3.connect(airflow_database(settings))) as database, database:
            database.execute(POOL, (SPARK_POOL, settings.spark_slots))


def _prepare_schema(settings: Settings) -> None:
    database, marker, template = airflow_database(settings), airflow_home(settings) / "migrated", _template(settings)
    if database.exists() and marker.exists() and marker.read_text() == _version():
        return
    if not database.exists() and template.exists():
        _copy(template, database)
    else:
        fresh = not database.exists()
        _airflow(settings, "db", "migrate")
        if fresh:  # before anything of this home's own is in it
            _copy(database, template)
    marker.write_text(_version())


def _airflow(settings: Settings, *words: str) -> None:
    command, log = [sys.executable, "-m", "airflow", *words], settings.home_path / "logs" / f"airflow-{words[0]}.log"
    code = start_process(
        command, environment=service_environment(settings), folder=airflow_home(settings), log=log
    ).wait()
    if code:
        last_lines = log.read_text(errors="replace").splitlines()[-8:]
        raise ServicesFailed(f"airflow {words[0]} {words[1]}", f"failed with code {code}", last_lines)


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
