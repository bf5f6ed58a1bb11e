"""`python -m stagehold.local.airflow_process COMMAND ...`: Airflow's command, in a process that has already imported
what its children need. They are forks of it, and each would take seconds to do so.
"""

from __future__ import annotations

import runpy
import sys
from importlib import import_module

from stagehold.gates.judge import preload
from stagehold.local.airflow_savepoints import begin_before_savepoints

# What reads DAG files, and what runs a task. Nothing of the user's project, which may change while Airflow is up.
COMPILER = ("stagehold.airflow.dag.compile",)
RUNNER = ("stagehold.run.here.region", "stagehold.run.here.awaited_inputs", "pyspark.sql.connect.session", "deltalake")


def prepare(command: str) -> None:
    begin_before_savepoints()
    if command in ("scheduler", "dag-processor"):
        _import(COMPILER)
    if command == "scheduler":
        _import(RUNNER)
        preload().join()


def _import(modules: tuple[str, ...]) -> None:
    for module in modules:
        import_module(module)


if __name__ == "__main__":
    prepare(sys.argv[1])
    runpy.run_module("airflow", run_name="__main__", alter_sys=True)
