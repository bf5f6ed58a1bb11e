"""Every pipeline file in include/pipelines as an Airflow DAG. A file that says something impossible is reported by
stagehold_invalid_files.py, because an error in a DAG file would stop every DAG of that file."""

from __future__ import annotations

from stagehold.airflow.dag.compile import compile_folder
from stagehold.settings import load_settings

for dag in compile_folder(load_settings()).dags:
    globals()[dag.dag_id] = dag
