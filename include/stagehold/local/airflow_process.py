"""`python -m stagehold.local.airflow_process COMMAND ...`: Airflow's command, in a process that has already imported
what its children need. They are forks of it, and each would take seconds to do so.

Savepoints of its SQLite database begin a transaction. Without one, SQLite's savepoint is a transaction of its own: its
end is visible at once, so that a backfill's first date runs while the second is still being cleared; and it begins with
a read, so that its first write fails at once when the scheduler has written in between. Airflow then deletes the dates
that it had begun, and its API server keeps a connection that can write no more.
"""

from __future__ import annotations

import runpy
import sys
from importlib import import_module

from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine

from stagehold.extras import Extra, is_installed
from stagehold.gates.judge import import_great_expectations

# What reads DAG files, and what runs a task. Nothing of the user's project, which may change while Airflow is up.
COMPILER = ("stagehold.airflow.dag.compile",)
RUNNER = ("stagehold.run.here.region", "stagehold.run.here.awaited_inputs", "pyspark.sql.connect.session", "deltalake")


def prepare(command: str) -> None:
    begin_before_savepoints()
    if command in ("scheduler", "dag-processor"):
        _import(COMPILER)
    if command == "scheduler":
        _import(RUNNER)
        if is_installed(Extra.GATES):
            import_great_expectations()


def _import(modules: tuple[str, ...]) -> None:
    for module in modules:
        import_module(module)


def begin_before_savepoints() -> None:
    """Have every engine that this process makes begin its transactions before savepoints."""
    event.listen(Engine, "savepoint", begin)


def begin(connection: Connection, _name: str) -> None:
    """Begin a write at once, so that it waits for its turn instead of failing later."""
    if connection.dialect.driver == "pysqlite" and not connection.connection.dbapi_connection.in_transaction:  # type: ignore[union-attr]
        connection.exec_driver_sql("BEGIN IMMEDIATE")


if __name__ == "__main__":
    prepare(sys.argv[1])
    runpy.run_module("airflow", run_name="__main__", alter_sys=True)
