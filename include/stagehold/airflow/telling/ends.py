"""The callbacks that Airflow calls when a run has failed: once, in its DAG processor, however the tasks ended."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from stagehold.airflow.context.dag_places import DagPlace, pipeline_named, places_in, region_tasks_of
from stagehold.airflow.context.run_names import run_tab
from stagehold.errors.base import StageholdError
from stagehold.errors.request_errors import UnknownName
from stagehold.errors.run_errors import LeaseHeld
from stagehold.model.records import RunState
from stagehold.settings import Settings, load_settings
from stagehold.spec.pipeline import Pipeline
from stagehold.spec.settings.airflow_settings import Hook

if TYPE_CHECKING:
    from airflow.sdk import DAG, Context

    from stagehold.airflow.telling.news import RunNews
    from stagehold.airflow.telling.untold import Untold
    from stagehold.ledger.ledger import Ledger

FIRST = 1  # the epoch of the first holder of a lease
FAILED = "failed"  # Airflow's word for the state of a task

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunFailed:
    """Notifies the notifiers of `on_failure`. Retries are not reported; a run that fails again is reported again."""

    pipeline: Pipeline
    project: str = ""

    def __call__(self, context: Context) -> None:
        from stagehold.airflow.telling.notifying import notify

        news = self._news(self._place(context["dag"]), context["run_id"])
        failed = notify(self.pipeline, news, context, self._settings.project)
        if failed:
            self._note(news.run_id, failed)

    @property
    def _settings(self) -> Settings:
        return load_settings(project=self.project)

    def _place(self, dag: DAG) -> DagPlace:
        return places_in(dag).get(self.pipeline.name, DagPlace(dag.dag_id))

    def _note(self, run_id: str, failed: Iterable[Untold]) -> None:
        from stagehold.airflow.telling.untold import note_untold
        from stagehold.chronicle.chronicle import open_ledger

        try:
            with open_ledger(self._settings) as ledger:
                note_untold(run_id, failed, ledger)
        except StageholdError:
            log.exception("it is not on record who was not told of %s", run_id)

    def _news(self, place: DagPlace, airflow_run_id: str) -> RunNews:
        """News of the failure. If the ledger is away, or does not know the run, it says only that the run failed."""
        from stagehold.airflow.telling.news import UNKNOWN, RunNews, first_line, news_of_run
        from stagehold.chronicle.chronicle import open_ledger

        settings, link = self._settings, run_tab(place, airflow_run_id)
        run_id = place.run(airflow_run_id)
        try:
            with open_ledger(settings) as ledger:
                return news_of_run(Hook.ON_FAILURE, ledger.runs.get(run_id), self.pipeline, ledger, settings, link)
        except StageholdError as error:
            cause = UNKNOWN if isinstance(error, UnknownName) else first_line(str(error))
            return RunNews(Hook.ON_FAILURE, self.pipeline.name, airflow_run_id, run_id, cause, link)


class PartFailed(RunFailed):
    """The same for a pipeline between tasks of somebody's own, or beside other pipelines. A run of the DAG may fail by
    those: nothing is told of a pipeline that has finished or has not begun, nor twice of one failure.
    """

    def __call__(self, context: Context) -> None:
        if self._is_news(context):
            super().__call__(context)

    def _is_news(self, context: Context) -> bool:
        """Without a record, whether one of its tasks has failed: it may have failed before it could make one."""
        from stagehold.chronicle.chronicle import open_ledger

        run_id, settings = self._place(context["dag"]).run(context["run_id"]), self._settings
        try:
            with open_ledger(settings) as ledger:
                if ledger.runs.get(run_id).state is RunState.FINISHED:
                    return False
                return is_first_to_tell(_failure_of(run_id, ledger), str(uuid4()), ledger, settings)
        except StageholdError:
            return FAILED in self._task_states(context)

    def _task_states(self, context: Context) -> Collection[str]:
        """States of its tasks in Airflow. If these cannot be asked for, one has failed: better told for nothing."""
        from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

        dag, run_id = context["dag"], context["run_id"]
        tasks = [task.task_id for task in region_tasks_of(dag) if pipeline_named(task) == self.pipeline.name]
        try:
            states = RuntimeTaskInstance.get_task_states(dag.dag_id, task_ids=tasks, run_ids=[run_id])
            return {str(state) for state in states.get(run_id, {}).values()}
        except Exception:
            log.exception("Airflow does not say which tasks of %s failed", run_id)
            return [FAILED]


def _failure_of(run_id: str, ledger: Ledger) -> str:
    """A name for the newest failure of a run: one that fails again after a resume has failed at another time."""
    changes = [one.recorded_at for one in ledger.transitions.of_run(run_id) if one.attempt_id is None]
    return f"{run_id}/failed/{changes[-1].isoformat()}" if changes else f"{run_id}/failed"


def is_first_to_tell(what: str, who: str, ledger: Ledger, settings: Settings) -> bool:
    """Whether nobody has asked that before: the name of what is told is a lease that only one can be the first to
    have.
    """
    try:
        lease = ledger.leases.acquire(what, who, settings.lease_seconds)
    except LeaseHeld:
        return False
    ledger.leases.release(lease)
    return lease.epoch == FIRST


def tell_of_part(pipeline: Pipeline, dag: DAG, project: str) -> None:
    """Have a DAG of somebody's own call the pipeline's notifiers of `on_failure`, beside what it calls anyway; once,
    however many groups of the pipeline it has.
    """
    own = dag.on_failure_callback
    called = own if isinstance(own, list) else [own] if own else []
    known = {one.pipeline.name for one in called if isinstance(one, RunFailed)}
    if pipeline.on_failure and pipeline.name not in known:
        dag.on_failure_callback = [*called, PartFailed(pipeline, project)]
        dag.has_on_failure_callback = True  # Airflow looked when the DAG was made


def failure_callback(pipeline: Pipeline, project: str = "") -> RunFailed | None:
    """The callback for the DAG of a pipeline; None if the pipeline has no notifiers for failures."""
    return RunFailed(pipeline, project) if pipeline.on_failure else None
