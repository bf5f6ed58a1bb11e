"""What `airflow:` of a pipeline and its stages says, as arguments of Airflow's DAG and operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stagehold.plan.split.regions import Region
from stagehold.spec.pipeline import Pipeline
from stagehold.spec.settings.airflow_settings import CALLBACKS, DagSettings, TaskSettings

OF_THE_DAG = ("description", "owner_links", "max_active_runs", "max_active_tasks")
OF_THE_DAG_TOO = ("max_consecutive_failed_dag_runs", "is_paused_upon_creation")
OTHER_NAMES = {
    "display_name": "dag_display_name",
    "on_run_success_callback": "on_success_callback",
    "on_run_failure_callback": "on_failure_callback",
}


@dataclass(frozen=True)
class ProjectFunction:
    """A function of the project that Airflow calls; imported when it is called, so that a DAG file imports no job."""

    reference: str
    project: str

    def __call__(self, context: Any) -> None:
        from stagehold.spark.session.project_modules import load_function

        function: Callable[[Any], Any] = load_function(self.reference, Path(self.project))
        function(context)


def dag_arguments(pipeline: Pipeline, project: str) -> dict[str, Any]:
    """Of the DAG alone; tags and what is not said are left to the caller and to Airflow."""
    said = _said(pipeline.airflow, project)
    arguments = {name: said[name] for name in (*OF_THE_DAG, *OF_THE_DAG_TOO) if name in said}
    return arguments | {theirs: said[ours] for ours, theirs in OTHER_NAMES.items() if ours in said}


def task_arguments(pipeline: Pipeline, region: Region, project: str) -> dict[str, Any]:
    """What the region's stages say; the pipeline's word counts where they say nothing."""
    said = _said(pipeline.airflow, project)
    for name in region.stages:
        said |= _said(pipeline.stage(name).airflow, project)
    return {name: value for name, value in said.items() if name in TaskSettings.model_fields}


def _said(section: DagSettings | TaskSettings, project: str) -> dict[str, Any]:
    given: Mapping[str, Any] = {name: getattr(section, name) for name in section.model_fields_set}
    return {
        name: _functions(value, project) if name in CALLBACKS else value
        for name, value in given.items()
        if value is not None
    }


def _functions(references: Sequence[str], project: str) -> list[ProjectFunction]:
    return [ProjectFunction(one, project) for one in references]
