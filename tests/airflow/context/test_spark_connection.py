"""Airflow's connection `spark_default` names the master of pipelines that submit."""

from __future__ import annotations

import json

import pytest
from tests.run.here.paper_task import task_of

from stagehold.settings import Settings

pytestmark = pytest.mark.airflow


@pytest.mark.parametrize(
    ("connection", "master"),
    [
        ({"host": "spark://master", "port": 7077}, "spark://master:7077"),
        ({"host": "master", "port": 7077}, "spark://master:7077"),
        ({"host": "yarn"}, "yarn"),
        ({"host": "k8s://https://cluster", "port": 6443}, "k8s://https://cluster:6443"),
        ({"host": "local[*]"}, "local[*]"),
        (None, ""),
    ],
)
def test_the_master_is_the_connections_for_a_pipeline_that_submits(airflow_home, monkeypatch, connection, master):
    from stagehold.airflow.context.spark_connection import with_master

    if connection:
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", **connection}))
    submitted, shared = task_of("submit").pipeline, task_of("server").pipeline
    assert with_master(Settings(), submitted).spark_master == master
    assert with_master(Settings(), shared) == Settings()
    assert with_master(Settings(spark_master="local[3]"), submitted).spark_master == "local[3]"
