"""One stack for all end-to-end tests: starting it costs more than any test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.conftest import QUICK_JAVA, free_port
from tests.e2e.stack import PIPELINE, Stack

from stagehold.local.airflow_client import AirflowClient, DagRun
from stagehold.local.control import start_supervisor, stop_supervisor
from stagehold.local.sample import make_sample
from stagehold.settings import Settings

if TYPE_CHECKING:
    from playwright.sync_api import Page

# Airflow ends a run of it that takes as long as its one stage does when it hangs, and no other.
HURRIED = """\
pipeline: hurried
run_timeout: 25s
checkpoint: {interval: 100ms}
stages:
  hurried:
    job: jobs.tpch:customer
    source: {kind: parquet, path: "${lake}/raw/customer/*.parquet", splits: 16}
"""

# Small, and due every night, so that Airflow can backfill it.
NIGHTLY = """\
pipeline: nightly
schedule: "0 2 * * *"
checkpoint: {interval: 100ms}
stages:
  customer:
    job: jobs.tpch:customer
    source: {kind: parquet, path: "${lake}/raw/customer/*.parquet", splits: 2}
  orders:
    job: jobs.tpch:orders
    source: {kind: parquet, path: "${lake}/raw/orders/*.parquet", splits: 2}
  orders_by_customer:
    job: jobs.tpch:orders_by_customer
    key: o_custkey
    partitions: 2
    inputs:
      customer: {exchange: keyed, key: c_custkey}
      orders: {exchange: keyed, key: o_custkey}
    output: {type: blocking_persistent, table: marts.nightly}
"""


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    home = str(tmp_path_factory.mktemp("stack"))
    pipelines = shutil.copytree(Settings().pipelines, tmp_path_factory.mktemp("pipelines"), dirs_exist_ok=True)
    (pipelines / "hurried.yaml").write_text(HURRIED)
    (pipelines / "nightly.yaml").write_text(NIGHTLY)
    settings = Settings(
        home=home, pipelines=str(pipelines), spark_port=free_port(), airflow_port=free_port(), spark_java_options=QUICK_JAVA
    )
    make_sample(Path(settings.lake_uri), 0.01)
    start_supervisor(settings, print)
    try:
        with AirflowClient.local(settings) as airflow:
            airflow.await_dag(PIPELINE)
            airflow.await_dag("hurried")
            airflow.await_dag("nightly")
            yield Stack(settings, airflow)
    finally:
        stop_supervisor(settings)


@pytest.fixture
def page(stack: Stack) -> Iterator[Page]:
    from tests.e2e.browser import new_page

    with new_page(stack) as made:
        yield made


@pytest.fixture(scope="session")
def whole_run(stack: Stack) -> DagRun:
    """A run of the interval `whole` that nothing went wrong in."""
    return stack.run("whole")
