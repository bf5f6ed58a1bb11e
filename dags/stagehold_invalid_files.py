"""Stands for the pipeline files in include/pipelines that cannot be used: Airflow shows what is wrong with them as an
import error of this file, while the good files stay DAGs in stagehold_pipelines.py."""

from __future__ import annotations

from stagehold.airflow.dag.compile import compile_folder
from stagehold.airflow.dag.project_dags import refused_files
from stagehold.settings import load_settings

settings = load_settings()
refused = refused_files(settings, compile_folder(settings).problems)  # a DAG that is not valid
