"""Who is told when a pipeline between tasks of somebody's own, or beside another pipeline, has failed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
from tests.airflow.dag.test_task_groups import BEGIN, FAILED, TWO, loaded, made_project

from stagehold.airflow.context.dag_places import DagPlace
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Run, RunState
from stagehold.model.states import RunEvent
from stagehold.settings import load_settings

pytestmark = pytest.mark.airflow

NOTES = "tests.airflow.telling.notes"
OWN_CALLBACK = """\
import stagehold
from airflow.sdk import DAG, task

def page_me(context): ...

with DAG("{dag}", schedule="@daily", on_failure_callback={own}):
"""


def notified(folder: Path, hook: str = "on_failure") -> Path:
    """A project whose pipelines `orders` and `customers` write what they tell of into files of their names."""
    made_project(folder)
    for name in ("orders", "customers"):
        file = folder / "include" / "pipelines" / f"{name}.yaml"
        arguments = f"{{path: {folder / name}, text: '{{{{ stagehold.message }}}}'}}"
        file.write_text(f"{file.read_text()}{hook}: {{notifier: '{NOTES}:FileNotifier', arguments: {arguments}}}\n")
    return folder


@pytest.mark.parametrize(("own", "others"), [("page_me", 1), ("[page_me, page_me]", 2), ("None", 0)])
def test_notifiers_of_a_failure_are_called_beside_what_the_dags_author_has_called(
    synced_airflow, tmp_path, own, others
):
    from stagehold.airflow.telling.ends import RunFailed

    bag = loaded(notified(tmp_path), TWO, OWN_CALLBACK.format(dag="mine", own=own))
    assert bag.import_errors == {}
    *called, orders, customers = bag.dags["mine"].on_failure_callback
    assert [one.__name__ for one in called] == ["page_me"] * others
    assert [one.pipeline.name for one in (orders, customers)] == ["orders", "customers"]
    assert isinstance(orders, RunFailed)


def test_a_dag_without_notifiers_calls_what_its_author_has_called(synced_airflow, tmp_path):
    project = made_project(tmp_path)
    dag = loaded(project, TWO, OWN_CALLBACK.format(dag="mine", own="page_me")).dags["mine"]
    assert dag.on_failure_callback.__name__ == "page_me"
    assert loaded(project, TWO).dags["mine"].has_on_failure_callback is False


@pytest.fixture(scope="module")
def telling(synced_airflow, tmp_path_factory) -> Path:
    """The project of a DAG whose two pipelines tell of their failures."""
    made = notified(tmp_path_factory.mktemp("telling"))
    assert loaded(made, TWO, BEGIN.replace("mine", "telling")).import_errors == {}
    return made


class FailedRun:
    """A run of the DAG `telling`, and what Airflow's DAG processor makes of it when it has failed."""

    def __init__(self, project: Path, states: dict[str, str]) -> None:
        self.project, self.run_id, self.states = project, f"manual__{uuid4()}", states

    def record(self, pipeline: str, *events: RunEvent) -> None:
        run_id = DagPlace("telling", pipeline).run(self.run_id)
        with Ledger.open(load_settings().ledger_url) as ledger:
            ledger.runs.start(Run(run_id, pipeline, self.run_id, "airflow", RunState.CREATED, datetime.now(UTC)))
            ledger.runs.apply(run_id, *events)

    def told(self) -> dict[str, int]:
        """How many messages there are of it for each pipeline, after the callbacks were called once more."""
        from airflow.dag_processing.dagbag import DagBag
        from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

        dag = DagBag(self.project / "dags", bundle_path=self.project / "dags").dags["telling"]
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(RuntimeTaskInstance, "get_task_states", self._asked)
            for callback in dag.on_failure_callback:
                callback({"dag": dag, "run_id": self.run_id, "reason": "task_failure"})
        files = {name: self.project / name for name in ("orders", "customers")}
        return {
            name: sum(self.run_id in line for line in file.read_text().splitlines()) if file.exists() else 0
            for name, file in files.items()
        }

    def _asked(self, dag_id: str, *, task_ids: list[str], run_ids: list[str]) -> dict[str, dict[str, str]]:
        """As Airflow answers (3.3): by run, and by task."""
        assert (dag_id, run_ids) == ("telling", [self.run_id])
        return {self.run_id: {task: state for task, state in self.states.items() if task in task_ids}}


def test_a_pipeline_that_failed_is_told_and_one_that_finished_or_never_began_is_not(telling):
    run = FailedRun(telling, FAILED)
    run.record("orders", RunEvent.FAIL, RunEvent.ALL_ENDED)
    assert run.told() == {"orders": 1, "customers": 0}
    again = FailedRun(telling, FAILED)
    again.record("orders", RunEvent.START, RunEvent.ALL_FINISHED)
    again.record("customers", RunEvent.FAIL, RunEvent.ALL_ENDED)
    assert again.told() == {"orders": 0, "customers": 1}
    link = (telling / "customers").read_text().split()[-1]
    assert link.endswith(f"/dags/telling/runs/{again.run_id}/plugin/stagehold?pipeline=customers")


def test_one_failure_is_told_once_and_another_of_the_run_again(telling):
    run = FailedRun(telling, FAILED)
    run.record("orders", RunEvent.FAIL, RunEvent.ALL_ENDED)
    assert [run.told()["orders"], run.told()["orders"]] == [1, 1]
    run.record("orders", RunEvent.FAIL, RunEvent.ALL_ENDED)
    assert run.told()["orders"] == 2


def test_a_failure_before_anything_is_on_record_is_told_by_the_states_of_its_tasks(telling):
    assert FailedRun(telling, FAILED).told() == {"orders": 1, "customers": 0}
    assert FailedRun(telling, dict.fromkeys(FAILED, "upstream_failed")).told() == {"orders": 0, "customers": 0}
