"""One stack for all end-to-end tests of a process: starting it costs more than any test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fuzz.doors.place import declare, pipeline_of
from fuzz.doors.wishes import Door
from tests.conftest import QUICK_JAVA, free_port
from tests.e2e.driven_airflow import DrivenAirflow
from tests.e2e.signalled import SIGNALLED
from tests.e2e.stack import BRIEF, SAMPLE, Stack

from stagehold.local.control import start_supervisor, stop_supervisor
from stagehold.local.demo.sample import make_sample
from stagehold.settings import Settings

if TYPE_CHECKING:
    from playwright.sync_api import Page

# Airflow ends a run of it that takes as long as its one stage does when it hangs, and no other.
HURRIED = """\
pipeline: hurried
run_timeout: 25s
wave: 100ms
stages:
  hurried:
    job: jobs.tpch:customer
    source: {kind: parquet, path: "${lake}/raw/customer/*.parquet", splits: 16}
"""

# Small, and due every night, so that Airflow can backfill it.
NIGHTLY = """\
pipeline: nightly
release: keep  # tests count what is computed for more dates than keep their outputs otherwise
schedule: "0 2 * * *"
wave: 100ms
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

# The same over files of its own, which a test may change, and without another try.
DATED = NIGHTLY.replace("pipeline: nightly\n", "pipeline: dated\nrestart: {strategy: none}\n")
for part, own in {"${lake}/raw/": "${lake}/dated/", "marts.nightly": "marts.dated"}.items():
    DATED = DATED.replace(part, own)

# All its tasks start at once, over mapped shares, and one that is done helps one that is slow.
AT_ONCE = """\
pipeline: at_once
schedule_mode: eager
speculation: {least_seconds: 5, multiplier: 1.0, finished_share: 0.5}
wave: 100ms
stages:
  customer:
    job: jobs.tpch:customer
    source: {kind: parquet, path: "${lake}/raw/customer/*.parquet", splits: 4}
    max_parallel_tasks: 2
  orders:
    job: jobs.tpch:orders
    source: {kind: parquet, path: "${lake}/raw/orders/*.parquet", splits: 2}
  orders_by_customer:
    job: jobs.tpch:orders_by_customer
    key: o_custkey
    partitions: 4
    max_parallel_tasks: 2
    inputs:
      customer: {exchange: keyed, key: c_custkey}
      orders: {exchange: keyed, key: o_custkey}
    output: {type: blocking_persistent, table: marts.at_once}
"""
# Share i of the second stage follows share i of the first.
CHAINED = """\
pipeline: chained
wave: 100ms
restart: {strategy: none}
stages:
  customer:
    job: jobs.tpch:customer
    source: {kind: parquet, path: "${lake}/raw/customer/*.parquet", splits: 4}
    max_parallel_tasks: 2
    output: {type: blocking}
  kept:
    job: tests.e2e.chaining:kept
    inputs: {customer: forward}
    max_parallel_tasks: 2
    output: {type: blocking_persistent, table: marts.chained}
  counted:
    job: tests.e2e.chaining:counted
    inputs: {kept: gather}
    output: {type: blocking}
"""
# Its tasks ask for splits.
ASKING = """\
pipeline: asking
wave: 100ms
stages:
  customer:
    job: jobs.tpch:customer
    source: {kind: parquet, path: "${lake}/raw/customer/*.parquet", splits: {count: 8, assignment: dynamic}}
    max_parallel_tasks: 2
    output: {type: blocking_persistent, table: marts.asking}
"""
# The sample in as few waves as show what happens between two waves of a stage.
SAMPLE_IN_BRIEF = """\
pipeline: brief
wave: 100ms
restart: {strategy: exponential-delay, initial: 1s, max: 1min}
stages:
  customer:
    job: jobs.tpch:customer
    source: {kind: parquet, path: "${lake}/raw/customer/*.parquet", splits: 4}
  orders:
    job: jobs.tpch:orders
    source: {kind: parquet, path: "${lake}/raw/orders/*.parquet", splits: 4}
  lineitem:
    job: jobs.tpch:lineitem
    source: {kind: parquet, path: "${lake}/raw/lineitem/*.parquet", splits: 4}
  orders_by_customer:
    job: jobs.tpch:orders_by_customer
    key: o_custkey
    partitions: 4
    inputs:
      customer: {exchange: keyed, key: c_custkey}
      orders: {exchange: keyed, key: o_custkey}
  shipping_priority:
    job: jobs.tpch:shipping_priority
    key: l_orderkey
    partitions: 16
    inputs:
      orders_by_customer: {exchange: keyed, key: o_orderkey}
      lineitem: {exchange: keyed, key: l_orderkey}
    gate: shipping_priority
  top_orders:
    job: jobs.tpch:top_orders
    inputs: {shipping_priority: gather}
    gate: top_orders
    output: {type: blocking_persistent, table: marts.brief}
"""
# It tells whoever wants to know, in lines of a file of its home.
TOLD = """\
pipeline: told
wave: 100ms
restart: {strategy: none}
on_failure: &notes
  notifier: tests.airflow.telling.notes:FileNotifier
  arguments: {path: told, text: "{{ stagehold.hook }}|{{ stagehold.interval }}|{{ stagehold.message }}"}
on_gate_warning:
  - {notifier: "tests.airflow.telling.notes:RaisingNotifier", arguments: {path: told, text: ""}}
  - *notes
on_resume: *notes
stages:
  customer:
    job: jobs.tpch:customer
    source: {kind: parquet, path: "${lake}/raw/customer/*.parquet", splits: 4}
    max_parallel_tasks: 2
    gate: told
    output: {type: blocking_persistent, table: marts.told}
"""
TOLD_SUITE = """\
suite: told
expectations:
  - {type: expect_column_values_to_not_be_null, column: c_custkey, severity: critical}
  - {type: expect_table_row_count_to_be_between, max_value: 1, severity: warning}
"""
# Its one stage is computed by a Spark application of its own.
SUBMITTED = SIGNALLED.replace("pipeline: signalled\n", "pipeline: submitted\nlauncher: submit\n").replace(
    "marts.signalled", "marts.submitted"
)
# The sample that keeps state, for dates that no other test runs it for.
RUNNING = (Path(Settings().pipelines) / "customer_totals.yaml").read_text()
for part, own in {"pipeline: customer_totals": "pipeline: running", "marts.customer_totals": "marts.running"}.items():
    RUNNING = RUNNING.replace(part, own)
# It keeps state, too, and a day of its source may change.
ACCRUED = """\
pipeline: accrued
schedule: "@daily"
release: keep  # a test counts what is computed
wave: 100ms
restart: {strategy: none}
stages:
  daily_orders:
    job: tests.e2e.accruing:daily_orders
    source: {kind: parquet, path: "${lake}/accrued/*.parquet", splits: 3}
    output: {type: blocking}
  customer_totals:
    job: jobs.customers:customer_totals
    inputs: {daily_orders: {exchange: keyed, key: o_custkey}}
    key: custkey
    partitions: 2
    state:
      totals: {kind: keyed, key: custkey, columns: {custkey: bigint, spent: "decimal(18,2)", orders: bigint}}
    output: {type: blocking_persistent, table: marts.accrued}
"""
PIPELINES = {
    "hurried": HURRIED,
    "nightly": NIGHTLY,
    "dated": DATED,
    "at_once": AT_ONCE,
    "chained": CHAINED,
    "asking": ASKING,
    "running": RUNNING,
    "accrued": ACCRUED,
    "told": TOLD,
    "signalled": SIGNALLED,
    "submitted": SUBMITTED,
    BRIEF: SAMPLE_IN_BRIEF,
}
DOORS = (Door.BACKFILL, Door.DAGS_TEST, Door.TAB)
SLOTS = 32


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests that take their process's stack down come behind all that need it, whatever their files are named."""
    items.sort(key=lambda item: item.get_closest_marker("takes_down") is not None)


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    home = str(tmp_path_factory.mktemp("stack"))
    pipelines = shutil.copytree(Settings().pipelines, tmp_path_factory.mktemp("pipelines"), dirs_exist_ok=True)
    suites = shutil.copytree(Settings().suites, tmp_path_factory.mktemp("suites"), dirs_exist_ok=True)
    for name, text in PIPELINES.items():
        (pipelines / f"{name}.yaml").write_text(text)
    (suites / "told.yaml").write_text(TOLD_SUITE)
    settings = Settings(
        home=home,
        pipelines=str(pipelines),
        suites=str(suites),
        spark_port=free_port(),
        airflow_port=free_port(),
        spark_java_options=QUICK_JAVA,
        spark_slots=SLOTS,
    )
    make_sample(Path(settings.lake_uri), 0.01)
    declare(settings, DOORS)
    start_supervisor(settings, print)
    try:
        with DrivenAirflow.local(settings) as airflow:
            for name in (SAMPLE, *PIPELINES, *map(pipeline_of, DOORS)):
                airflow.await_dag(name)
            yield Stack(settings, airflow)
    finally:
        stop_supervisor(settings)


@pytest.fixture
def page(stack: Stack) -> Iterator[Page]:
    from tests.e2e.browser import new_page

    with new_page(stack) as made:
        yield made


@pytest.fixture(scope="session")
def sample(stack: Stack) -> Stack:
    """For runs of the sample pipeline as it is."""
    return replace(stack, pipeline=SAMPLE)
