"""Holds no DAG: raises what is wrong with the pipeline files in include/pipelines, so that Airflow shows it as an
import error with file and line, while the good files stay DAGs in stagehold_pipelines.py."""

from __future__ import annotations

from stagehold.airflow.dag.compile import compile_folder
from stagehold.settings import load_settings

problems = compile_folder(load_settings()).problems
if problems:
    raise ExceptionGroup(f"{len(problems)} pipeline file(s) cannot be used", problems)
