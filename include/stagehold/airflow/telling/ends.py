"""The callback that Airflow calls when a run has failed: once, in its DAG processor, however the tasks ended."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stagehold.airflow.context.dag_places import DagPlace
from stagehold.airflow.context.run_names import run_tab
from stagehold.errors.base import StageholdError
from stagehold.errors.request_errors import UnknownName
from stagehold.settings import load_settings
from stagehold.spec.pipeline import Pipeline
from stagehold.spec.settings.airflow_settings import Hook

if TYPE_CHECKING:
    from airflow.sdk import Context

    from stagehold.airflow.telling.news import RunNews
    from stagehold.airflow.telling.untold import Untold

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunFailed:
    """Notifies the notifiers of `on_failure`. Retries are not reported; a run that fails again is reported again."""

    pipeline: Pipeline
    project: str = ""

    def __call__(self, context: Context) -> None:
        from stagehold.airflow.telling.notifying import notify

        news = self._news(DagPlace(context["dag"].dag_id), context["run_id"])
        failed = notify(self.pipeline, news, context)
        if failed:
            self._note(news.run_id, failed)

    def _note(self, run_id: str, failed: Iterable[Untold]) -> None:
        from stagehold.airflow.telling.untold import note_untold
        from stagehold.chronicle.chronicle import open_ledger

        try:
            with open_ledger(load_settings(project=self.project)) as ledger:
                note_untold(run_id, failed, ledger)
        except StageholdError:
            log.exception("it is not on record who was not told of %s", run_id)

    def _news(self, place: DagPlace, airflow_run_id: str) -> RunNews:
        """News of the failure. If the ledger is away, or does not know the run, it says only that the run failed."""
        from stagehold.airflow.telling.news import UNKNOWN, RunNews, first_line, news_of_run
        from stagehold.chronicle.chronicle import open_ledger

        settings, link = load_settings(project=self.project), run_tab(place, airflow_run_id)
        run_id = place.run(airflow_run_id)
        try:
            with open_ledger(settings) as ledger:
                return news_of_run(Hook.ON_FAILURE, ledger.runs.get(run_id), self.pipeline, ledger, settings, link)
        except StageholdError as error:
            cause = UNKNOWN if isinstance(error, UnknownName) else first_line(str(error))
            return RunNews(Hook.ON_FAILURE, self.pipeline.name, airflow_run_id, run_id, cause, link)


def failure_callback(pipeline: Pipeline, project: str = "") -> RunFailed | None:
    """The callback for the DAG of a pipeline; None if the pipeline has no notifiers for failures."""
    return RunFailed(pipeline, project) if pipeline.on_failure else None
