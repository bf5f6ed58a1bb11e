"""The DAG files as Airflow loads them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from stagehold.lake.checkpoints.savepoints import Savepoint, Savepoints
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Run, RunState
from stagehold.settings import PROJECT, load_settings
from stagehold.spec.loading.loader import find_pipeline

pytestmark = pytest.mark.airflow

DAGS = PROJECT / "dags"
BROKEN = (
    "pipeline: broken\nstages:\n  first:\n    job: jobs.tpch:no_such_function\n    source: {kind: parquet, "
    "path: x, splits: 0}\n"
)
PARSE_SECONDS = 1.0
# Parses in a process of its own, because this one may have imported anything by now.
PROBE = """
import json, sys, time
from airflow.dag_processing.dagbag import DagBag
import airflow.sdk
started = time.process_time()
bag = DagBag(sys.argv[1])
seconds = time.process_time() - started
kept_away = ("pyspark", "delta", "deltalake", "great_expectations", "pandas", "pyarrow")
heavy = [name for name in kept_away if name in sys.modules]
print(json.dumps({"seconds": seconds, "heavy": heavy, "errors": bag.import_errors, "dags": sorted(bag.dags)}))
"""


@pytest.fixture(scope="module")
def bag(synced_airflow):
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(DAGS)


def edges(dag) -> dict[str, set[str]]:
    return {task.task_id: set(task.upstream_task_ids) for task in dag.tasks}


CHAIN = {
    "customer": set(),
    "orders": set(),
    "lineitem": set(),
    "orders_by_customer": {"customer", "orders"},
    "shipping_priority": {"orders_by_customer", "lineitem"},
    "top_orders": {"shipping_priority"},
}


def test_every_dag_file_loads(bag):
    assert bag.import_errors == {}
    assert set(bag.dags) >= {"shipping_priority", "handwritten_example"}


def test_a_pipeline_is_one_task_per_region_with_the_edges_of_its_inputs(bag):
    assert edges(bag.dags["shipping_priority"]) == CHAIN


def test_a_stage_that_keeps_state_waits_for_that_of_the_run_before(bag):
    assert {task.task_id: task.depends_on_past for task in bag.dags["customer_totals"].tasks} == {
        "daily_orders": False,
        "customer_totals": True,
    }


def test_the_handwritten_dag_runs_the_same_regions_and_a_task_of_its_own(bag):
    assert edges(bag.dags["handwritten_example"]) == {**CHAIN, "announce": {"top_orders"}}


def test_the_dag_follows_the_declared_schedule_and_does_not_catch_up(bag):
    dag = bag.dags["shipping_priority"]
    assert (dag.schedule, dag.catchup, dag.tags) == ("0 2 * * *", False, {"stagehold"})
    assert bag.dags["handwritten_example"].schedule is None


def test_switching_the_dag_on_starts_nothing_before_its_next_time(synced_airflow):
    from airflow.models.dag import DagModel
    from airflow.utils.session import create_session

    with create_session() as session:
        stored = session.get(DagModel, "shipping_priority")
        assert stored.next_dagrun_create_after > datetime.now(UTC)


@pytest.mark.parametrize("since", [timedelta(seconds=1), timedelta(minutes=4), timedelta(hours=2), timedelta(hours=23)])
def test_a_dag_switched_on_soon_after_its_time_waits_for_the_next_one(synced_airflow, monkeypatch, since):
    from airflow.models.serialized_dag import SerializedDagModel

    two_o_clock = datetime(2026, 3, 2, 2, tzinfo=UTC)
    monkeypatch.setattr("airflow.timetables.trigger.utcnow", lambda: two_o_clock + since)
    stored = SerializedDagModel.get_dag("shipping_priority")
    assert stored.next_dagrun_info(last_automated_run_info=None).run_after == two_o_clock + timedelta(days=1)


def test_the_form_offers_every_stage_to_restore_from(bag):
    param = bag.dags["shipping_priority"].params.get_param("restore_from_stage")
    assert param.schema["enum"] == [None, *CHAIN]
    assert (param.resolve(), param.resolve("orders")) == (None, "orders")


def test_no_parameter_of_a_pipeline_can_take_the_place_of_a_field_of_the_form(bag):
    from stagehold.spec.loading.pipeline_checks import OF_THE_FORMS

    dag = bag.dags["shipping_priority"]
    pipeline = find_pipeline("shipping_priority", load_settings())
    assert set(dag.params) - set(pipeline.params) == set(OF_THE_FORMS)


def test_a_stage_that_does_not_exist_is_refused_by_the_form(bag):
    from airflow.sdk.exceptions import ParamValidationError

    with pytest.raises(ParamValidationError):
        bag.dags["shipping_priority"].params.get_param("restore_from_stage").resolve("no_such_stage")


def test_the_documentation_lists_the_stages(bag):
    assert (
        "| top_orders | `jobs.tpch:top_orders` | 1 | shipping_priority (gather) | marts.top_orders | top_orders |"
        in str(bag.dags["shipping_priority"].doc_md)
    )


def test_dags_survive_being_stored_and_read_back(bag):
    from airflow.serialization.serialized_objects import DagSerialization

    stored = DagSerialization.from_dict(json.loads(json.dumps(DagSerialization.to_dict(bag.dags["shipping_priority"]))))
    assert [(task.pipeline_name, task.region_name) for task in stored.tasks] == [
        ("shipping_priority", stage) for stage in CHAIN
    ]


def test_parsing_is_quick_and_imports_neither_spark_nor_what_comes_with_it():
    answer = probe(DAGS)
    assert (answer["errors"], answer["heavy"]) == ({}, [])
    assert answer["seconds"] < PARSE_SECONDS


@pytest.fixture
def with_bad_file(tmp_path, monkeypatch):
    folder = tmp_path / "pipelines"
    shutil.copytree(PROJECT / "include" / "pipelines", folder)
    (folder / "broken.yaml").write_text(BROKEN)
    (folder / "unreadable.yaml").write_text("pipeline: [unclosed\n")
    copy = (folder / "shipping_priority.yaml").read_text()
    (folder / "zz_twin.yaml").write_text(copy)
    monkeypatch.setenv("STAGEHOLD_PIPELINES", str(folder))
    suites = tmp_path / "suites"
    shutil.copytree(PROJECT / "include" / "suites", suites)
    (suites / "of_the_table.yaml").write_text(
        "suite: t\nexpectations:\n  - {type: expect_table_row_count_to_equl, value: 3}\n"
    )
    gated = copy.replace("pipeline: shipping_priority", "pipeline: gated").replace(
        "gate: top_orders", "gate: of_the_table"
    )
    (folder / "gated.yaml").write_text(gated)
    monkeypatch.setenv("STAGEHOLD_SUITES", str(suites))


@pytest.mark.usefixtures("synced_airflow")
def test_twenty_runs_and_a_savepoint_leave_one_version_of_a_dag(tmp_path, monkeypatch):
    """Airflow keeps a new version of a DAG whose serialised form has changed."""
    from airflow.serialization.serialized_objects import DagSerialization

    from stagehold.airflow.dag.compile import compile_folder

    monkeypatch.setenv("STAGEHOLD_LAKE", str(tmp_path / "lake"))
    monkeypatch.setenv("STAGEHOLD_LEDGER", f"sqlite:///{tmp_path / 'ledger.db'}")
    settings, forms = load_settings(), set()
    with Ledger.open(settings.ledger_url) as ledger:
        for number in range(20):
            began = datetime(2026, 10, number + 1, tzinfo=UTC)
            run = Run(f"r{number}", "shipping_priority", f"{began:%Y-%m-%d}", "cli", RunState.CREATED, began)
            ledger.runs.create(run)
            saved = Savepoint(f"s{number}", "shipping_priority", run.interval, run.run_id, 1, "ann", "", began)
            Savepoints(settings.lake_uri).create(saved)
            dags = {dag.dag_id: dag for dag in compile_folder(settings).dags}
            forms.add(json.dumps(DagSerialization.to_dict(dags["shipping_priority"]), sort_keys=True))
    assert len(forms) == 1


def test_a_form_accepts_values_that_it_does_not_offer(bag):
    params = bag.dags["shipping_priority"].params
    assert params.get_param("restore").schema["examples"] == ["latest", "latest_or_none"]
    assert [params.get_param(name).resolve() for name in ("restore", "interval")] == [None, None]
    assert params.get_param("restore").resolve("a/run#3") == "a/run#3"
    assert params.get_param("interval").resolve("2030-01-01") == "2030-01-01"


@pytest.mark.parametrize("written", ["2023-02-30", "2024-1-5", "2024-11-05 25:00"])
def test_an_interval_that_looks_like_a_date_and_is_none_is_refused_by_the_form(bag, written):
    from airflow.sdk.exceptions import ParamValidationError

    with pytest.raises(ParamValidationError, match="is not valid under any of the given schemas") as refused:
        bag.dags["shipping_priority"].params.get_param("interval").resolve(written)
    assert "allowed: a date such as 2026-11-20" in str(refused.value)


@pytest.mark.usefixtures("with_bad_file")
def test_bad_files_are_import_errors_with_file_and_line_and_the_good_ones_stay():
    answer = probe(DAGS)
    assert "shipping_priority" in answer["dags"]
    (error,) = answer["errors"].values()
    assert error.startswith("PipelineFilesRefused: 4 pipeline file(s) cannot be used\n")
    assert "Traceback" not in error
    assert "of_the_table.yaml:3: expectations.0.type: got 'expect_table_row_count_to_equl'" in error
    assert "broken.yaml:4" in error
    assert "broken.yaml:5" in error
    assert "unreadable.yaml" in error
    assert "zz_twin.yaml:2: pipeline: got 'shipping_priority'" in error


def probe(dags: Path) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, str(dags)], capture_output=True, text=True, check=True, timeout=120
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("restart", "retries", "first_delay"),
    [
        ({"strategy": "none"}, 0, 1),
        ({"strategy": "fixed-delay", "attempts": 5, "delay": "7s"}, 100, 7),
        ({"strategy": "failure-rate", "failures": 3, "interval": "1min", "delay": "0s"}, 100, 0),
        ({"strategy": "exponential-delay", "initial": "2s", "max": "10s", "multiplier": 3}, 100, 2),
        ({}, 100, 1),
    ],
)
def test_airflow_leaves_every_retry_to_the_restart_strategy(built, restart, retries, first_delay):
    from stagehold.airflow.context.task_retries import StrategyRetryPolicy
    from stagehold.airflow.dag.compile import compile_pipeline

    for task in compile_pipeline(built({"restart": restart} if restart else {})).tasks:
        assert (task.retries, task.retry_delay) == (retries, timedelta(seconds=first_delay))
        assert isinstance(task.retry_policy, StrategyRetryPolicy)
        assert not task.retry_exponential_backoff


def test_stages_fused_by_a_pipelined_output_are_one_task(built):
    from stagehold.airflow.dag.compile import compile_pipeline

    dag = compile_pipeline(built({}, output={"type": "pipelined"}))
    assert edges(dag) == {"first__second": set()}


BLOCKING = {"type": "blocking"}  # else a forward input would fuse the two


def test_a_mapped_task_keeps_its_edges(built):
    from stagehold.airflow.dag.compile import compile_pipeline

    dag = compile_pipeline(built({}, BLOCKING, tasks=2))
    assert (edges(dag), dag.get_task("first").is_mapped) == ({"first": set(), "second": {"first"}}, True)


def test_an_eager_pipeline_has_no_edges_and_starts_its_first_regions_first(built):
    from stagehold.airflow.dag.compile import compile_pipeline

    dag = compile_pipeline(built({"schedule_mode": "eager"}, BLOCKING))
    assert edges(dag) == {"first": set(), "second": set()}
    assert dag.get_task("first").priority_weight > dag.get_task("second").priority_weight
    assert dag.max_active_runs == 1


def test_tasks_take_slots_of_the_pool_where_slots_are_set(built):
    from stagehold.airflow.dag.compile import compile_pipeline

    pooled = compile_pipeline(built({}, BLOCKING, tasks=2), slots=2)
    assert {(task.pool, task.pool_slots) for task in pooled.tasks} == {("stagehold", 1)}
    assert {task.pool for task in compile_pipeline(built({})).tasks} == {"default_pool"}


def test_too_few_slots_for_an_eager_pipeline_are_an_import_error(built):
    from stagehold.airflow.dag.compile import compile_pipeline
    from stagehold.errors.spec_errors import ScheduleRefused

    refusal = r"its 3 tasks start at once and take 3 slots, but there are 2\. .*STAGEHOLD_SPARK_SLOTS to 3"
    with pytest.raises(ScheduleRefused, match=refusal):
        compile_pipeline(built({"schedule_mode": "eager"}, BLOCKING, tasks=2), slots=2)


def test_the_pipelines_own_params_are_in_the_form_with_their_type(built):
    from stagehold.airflow.dag.compile import compile_pipeline

    params = compile_pipeline(built({"params": {"segment": "BUILDING", "limit": 10, "strict": True}})).params
    assert {name: (params.get_param(name).schema["type"], params[name]) for name in ("segment", "limit", "strict")} == {
        "segment": ("string", "BUILDING"),
        "limit": ("integer", 10),
        "strict": ("boolean", True),
    }


@pytest.fixture
def built(tmp_path):
    """Makes a pipeline of two stages from Python, with the given declarations added."""
    from stagehold.spec.loading.loader import build_pipeline

    (tmp_path / "work.py").write_text("def first(ctx, source): ...\n\n\ndef second(ctx, first): ...\n")

    def build(extra: dict, output: dict | None = None, tasks: int = 1):
        source = {"kind": "parquet", "path": "x", "splits": 2}
        first = {
            "job": "work:first",
            "source": source,
            "max_parallel_tasks": tasks,
            **({"output": output} if output else {}),
        }
        stages = {"first": first, "second": {"job": "work:second", "inputs": {"first": "forward"}}}
        return build_pipeline({"pipeline": "small", **extra, "stages": stages}, project=tmp_path, suites=tmp_path)

    return build
