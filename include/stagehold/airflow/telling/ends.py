"""What Airflow calls when a run has failed: once, in its DAG processor, however the tasks came to their ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stagehold.airflow.intervals import ledger_run_id
from stagehold.airflow.telling.tab import run_tab
from stagehold.settings import load_settings
from stagehold.spec.notifiers import Hook
from stagehold.spec.pipeline import Pipeline

if TYPE_CHECKING:
    from airflow.sdk import Context


@dataclass(frozen=True)
class RunFailed:
    """Tells the notifiers of `on_failure`. Retries are not told, and a run that fails again is told again."""

    pipeline: Pipeline

    def __call__(self, context: Context) -> None:
        from stagehold.airflow.telling.notifying import notify
        from stagehold.airflow.telling.reading import news_of_run
        from stagehold.lake.chronicle import open_ledger

        settings, dag_id = load_settings(), context["dag"].dag_id
        with open_ledger(settings) as ledger:
            run = ledger.runs.get(ledger_run_id(dag_id, context["run_id"]))
            link = run_tab(dag_id, context["run_id"])
            news = news_of_run(Hook.ON_FAILURE, run, self.pipeline, ledger, settings, link)
        notify(self.pipeline, news, context)


def failure_callback(pipeline: Pipeline) -> RunFailed | None:
    """For the DAG of a pipeline; none where nobody wants to be told."""
    return RunFailed(pipeline) if pipeline.on_failure else None
