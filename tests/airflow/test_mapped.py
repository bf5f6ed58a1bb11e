"""A region that is split over mapped tasks, in Airflow's own metadata database."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from tests.airflow.made_runs import make_dag_run

from stagehold.model.partition_set import Share

pytestmark = pytest.mark.airflow

JOBS = "from stagehold import stage\n\n\n@stage\ndef first(ctx, source): ...\n\n\n@stage\ndef second(ctx, first): ...\n"
PIPELINE = """\
pipeline: {name}
stages:
  first:
    job: work:first
    source: {{kind: parquet, path: "${{lake}}/x/*.parquet", splits: 8}}
    max_parallel_tasks: 4
  second:
    job: work:second
    inputs: {{first: gather}}
"""


CHAINED = (
    PIPELINE
    + """\
  cleaned: {{job: "work:cleaned", inputs: {{first: forward}}, max_parallel_tasks: 4}}
  counted: {{job: "work:counted", inputs: {{cleaned: gather}}}}
"""
)
JOBS += "\n\n@stage\ndef cleaned(ctx, first): ...\n\n\n@stage\ndef counted(ctx, cleaned): ...\n"


@pytest.fixture
def mapped_dag(synced_airflow: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a pipeline whose DAG is stored; its first stage is four mapped tasks."""
    return stored_dag(PIPELINE, tmp_path, monkeypatch)


@pytest.fixture
def chained_dag(synced_airflow: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Likewise, with a stage that reads the first one share by share, and one that gathers what that gives."""
    return stored_dag(CHAINED, tmp_path, monkeypatch)


def stored_dag(pipeline: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db

    name = f"mapped_{uuid4().hex[:8]}"
    for folder in ("pipelines", "dags", "lake/x"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "work.py").write_text(JOBS)
    (tmp_path / "pipelines" / "mapped.yaml").write_text(pipeline.format(name=name))
    for index in range(8):
        (tmp_path / "lake" / "x" / f"{index}.parquet").touch()
    (tmp_path / "dags" / "mapped.py").write_text(
        "from airflow.sdk import DAG\n"
        "from stagehold.airflow.dag.compile import compile_folder\n"
        "from stagehold.settings import load_settings\n\n"
        "(mapped,) = compile_folder(load_settings()).dags\n"
    )
    for setting, folder in {"PIPELINES": "pipelines", "PROJECT": ".", "LAKE": "lake"}.items():
        monkeypatch.setenv(f"STAGEHOLD_{setting}", str(tmp_path / folder))
    monkeypatch.setenv("STAGEHOLD_LEDGER", f"sqlite:///{tmp_path / 'ledger.db'}")
    bag = DagBag(tmp_path / "dags", bundle_path=tmp_path / "dags")
    assert bag.import_errors == {}
    sync_bag_to_db(bag, "dags-folder", None)
    return name


def instances(dag_id: str, run_id: str) -> dict[tuple[str, int], str | None]:
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        found = session.scalars(
            select(TaskInstance).where(TaskInstance.dag_id == dag_id, TaskInstance.run_id == run_id)
        )
        return {(one.task_id, one.map_index): one.state and str(one.state) for one in found}


def test_every_share_is_an_instance_of_one_mapped_task_and_readers_wait_for_all(mapped_dag):
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.utils.session import create_session

    make_dag_run(mapped_dag, "manual__1", {})
    assert set(instances(mapped_dag, "manual__1")) == {
        ("first", 0),
        ("first", 1),
        ("first", 2),
        ("first", 3),
        ("second", -1),
    }
    with create_session() as session:
        dag = SerializedDagModel.get_dag(mapped_dag, session=session)
        assert dag is not None
        assert dag.get_task("second").upstream_task_ids == {"first"}
        assert len(str(dag.get_task("first").partial_kwargs["pipeline"])) < 50  # not the whole declaration, once more


def test_a_run_with_mapped_tasks_is_read_with_the_shares_of_the_instances(mapped_dag):
    from airflow.utils.session import create_session

    from stagehold.airflow.context.dag_places import DagPlace
    from stagehold.airflow.runs.dag_runs import placed_pipeline, read_dag_run
    from stagehold.ledger.ledger import Ledger
    from stagehold.settings import load_settings

    make_dag_run(mapped_dag, "manual__1", {"second": "upstream_failed"})
    settings = load_settings()
    with create_session() as session, Ledger.open(settings.ledger_url) as ledger:
        dag_run = read_dag_run(placed_pipeline(DagPlace(mapped_dag), session), "manual__1", session, ledger)
    assert [(task.name, task.map_index, task.share, task.state) for task in dag_run.tasks] == [
        ("first[0-1]", 0, Share(0, 1), "success"),
        ("first[2-3]", 1, Share(2, 3), "success"),
        ("first[4-5]", 2, Share(4, 5), "success"),
        ("first[6-7]", 3, Share(6, 7), "success"),
        ("second", -1, None, "upstream_failed"),
    ]
    assert dag_run.request.pipeline.name == mapped_dag


def test_a_resume_clears_just_the_instances_whose_shares_have_something_to_run(mapped_dag, api, bearer):
    from tests.airflow.made_runs import fill_ledger

    from stagehold.airflow.answering.api_server import server_ledger

    server_ledger.cache_clear()
    make_dag_run(mapped_dag, "manual__1", {"first": "failed", "second": "upstream_failed"})
    fill_ledger(mapped_dag, "manual__1", {"first": 5})
    _succeed(mapped_dag, "manual__1", (0, 1))
    answer = api.post(f"/stagehold/api/dags/{mapped_dag}/runs/manual__1/resume", json={}, headers=bearer("admin"))
    assert answer.status_code == 200, answer.text
    assert [task["name"] for task in answer.json()["cleared"]] == ["first[4-5]", "first[6-7]", "second"]
    states = instances(mapped_dag, "manual__1")
    assert (states["first", 0], states["first", 1]) == ("success", "success")
    assert {states["first", 2], states["first", 3], states["second", -1]} == {None}


def test_a_share_waits_for_its_own_share_of_the_stage_that_it_reads_and_a_gathering_stage_for_all(chained_dag):
    _begin(chained_dag, "manual__1")
    assert ready(chained_dag, "manual__1") == {("first", index) for index in range(4)}
    _succeed(chained_dag, "manual__1", (2,), "first")
    assert ready(chained_dag, "manual__1") == {("first", 0), ("first", 1), ("first", 3), ("cleaned", 2)}
    _succeed(chained_dag, "manual__1", (0, 1, 2, 3), "first")
    assert ready(chained_dag, "manual__1") == {("second", -1), *(("cleaned", index) for index in range(4))}
    _succeed(chained_dag, "manual__1", (0, 1, 2), "cleaned")
    assert ready(chained_dag, "manual__1") == {("second", -1), ("cleaned", 3)}
    _succeed(chained_dag, "manual__1", (3,), "cleaned")
    assert ready(chained_dag, "manual__1") == {("second", -1), ("counted", -1)}


def test_a_failed_share_holds_back_its_own_readers_alone(chained_dag):
    _begin(chained_dag, "manual__1")
    _succeed(chained_dag, "manual__1", (0, 1, 2), "first")
    _succeed(chained_dag, "manual__1", (3,), "first", "failed")
    assert ready(chained_dag, "manual__1") == {("cleaned", 0), ("cleaned", 1), ("cleaned", 2)}
    states = instances(chained_dag, "manual__1")
    assert states["cleaned", 3] == states["second", -1] == "upstream_failed"


def test_a_resume_clears_just_what_follows_of_a_chain(chained_dag, api, bearer):
    from tests.airflow.made_runs import fill_ledger

    from stagehold.airflow.answering.api_server import server_ledger

    server_ledger.cache_clear()
    failed = {"first": "success", "cleaned": "failed", "second": "success", "counted": "upstream_failed"}
    make_dag_run(chained_dag, "manual__1", failed)
    fill_ledger(chained_dag, "manual__1", {"first": 8, "cleaned": 5, "second": 1})
    _succeed(chained_dag, "manual__1", (0, 1), "cleaned")
    answer = api.post(f"/stagehold/api/dags/{chained_dag}/runs/manual__1/resume", json={}, headers=bearer("admin"))
    assert answer.status_code == 200, answer.text
    assert [task["name"] for task in answer.json()["cleared"]] == ["cleaned[4-5]", "cleaned[6-7]", "counted"]
    states = instances(chained_dag, "manual__1")
    assert {states["cleaned", 2], states["cleaned", 3], states["counted", -1]} == {None}
    assert {states["first", 3], states["cleaned", 1]} == {"success"}


def _begin(dag_id: str, run_id: str) -> None:
    """A run none of whose tasks has started."""
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session
    from sqlalchemy import update

    make_dag_run(dag_id, run_id, {}, "running")
    with create_session() as session:
        session.execute(update(TaskInstance).where(TaskInstance.dag_id == dag_id).values(state=None))


def ready(dag_id: str, run_id: str) -> set[tuple[str, int]]:
    """What the scheduler would start now."""
    from airflow.models.dagrun import DagRun
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        run = session.scalars(select(DagRun).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id)).one()
        run.dag = SerializedDagModel.get_dag(dag_id, session=session)
        found = run.task_instance_scheduling_decisions(session=session).schedulable_tis
        return {(one.task_id, one.map_index) for one in found}


def _succeed(dag_id: str, run_id: str, indexes: tuple[int, ...], task: str = "first", state: str = "success") -> None:
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session
    from sqlalchemy import update

    mine = (TaskInstance.dag_id == dag_id, TaskInstance.run_id == run_id, TaskInstance.task_id == task)
    with create_session() as session:
        chosen = update(TaskInstance).where(*mine, TaskInstance.map_index.in_(indexes))
        session.execute(chosen.values(state=state))
