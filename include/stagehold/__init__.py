"""Batch pipelines of PySpark stages that go on from the last consumable partition."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stagehold.model.context import SourceSplit, StageCheckpoint, StageContext, stage

if TYPE_CHECKING:
    from airflow.sdk import DAG, TaskGroup

    from stagehold.notebook.notebook_project import NotebookProject
    from stagehold.spec.python_declarations import PipelineDeclaration as Pipeline
    from stagehold.spec.python_declarations import StageDeclaration as Stage

# Without `open`, which is another thing everywhere else.
__all__ = ["Pipeline", "SourceSplit", "Stage", "StageCheckpoint", "StageContext", "dags", "stage", "task_group"]


def dags(path: str | Path) -> Mapping[str, DAG]:
    """The DAGs of a project's pipelines, for a file in Airflow's DAGs folder. One line is enough:

        import stagehold  # makes Airflow DAGs

        stagehold.dags("..")

    Airflow finds them by itself; they are also returned, by name. It reads only files in which the words "airflow" and
    "dag" stand somewhere, in a comment too.

    :param path: of the project, or of the folder of its pipeline files; seen from the calling file's folder.
    """
    from stagehold.airflow.dag.project_dags import project_dags

    caller = Path(inspect.stack(0)[1].filename).parent
    return project_dags((caller / path).resolve())


def task_group(pipeline: str, path: str | Path = "..", *, include: Collection[str] = (), **options: Any) -> TaskGroup:
    """The tasks of a pipeline as a group in a DAG of your own:

        with DAG("nightly", schedule="@daily"):
            ingest() >> stagehold.task_group("orders") >> tell()

    The DAG has the pages of the pipeline, its resume and its backfill. Several groups of one pipeline may stand in it,
    each with other stages; edges between their tasks are made.

    :param path: of the project, seen from the calling file's folder.
    :param include: the stages that are in the group; all by default.
    :param options: Airflow's, of the group, such as ``group_id`` and ``tooltip``.
    """
    from stagehold.airflow.dag.task_groups import pipeline_group

    caller = Path(inspect.stack(0)[1].filename).parent
    return pipeline_group(pipeline, (caller / path).resolve(), include, options)


def open(path: str | Path = ".", *, target: str | None = None) -> NotebookProject:
    """A project for a notebook or Python's prompt, by its folder:

        project = stagehold.open(".")
        project["orders"].plan("2026-11-20")
        project["orders"].stage("clean").inputs("2026-11-20")

    :param target: of the project's file, as `--target` chooses it.
    """
    import os

    from stagehold.notebook.notebook_project import NotebookProject
    from stagehold.settings import load_settings

    named = {} if target is None else {"STAGEHOLD_TARGET": target}
    return NotebookProject(load_settings({**os.environ, **named}, str(Path(path).resolve())))


def __getattr__(name: str) -> Any:
    """`Pipeline` and `Stage`, which Spark's workers, that import this module, have no use for."""
    if name not in ("Pipeline", "Stage"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from stagehold.spec import python_declarations

    return getattr(python_declarations, f"{name}Declaration")
