"""A pipeline, or a part of it, as a group of tasks in a DAG of one's own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, TaskGroup
from airflow.sdk.definitions._internal.contextmanager import DagContext

from stagehold.airflow.dag.compile import region_tasks, run_params
from stagehold.airflow.dag.region_operator import TAG, RegionOperator, pipeline_named
from stagehold.errors import InvalidArgument, UnknownName
from stagehold.plan.split.regions import stage_regions
from stagehold.settings import load_settings
from stagehold.spec.loading.loader import find_pipeline

if TYPE_CHECKING:
    from airflow.sdk.definitions.mappedoperator import MappedOperator

    from stagehold.spec.pipeline import Pipeline


def pipeline_group(name: str, place: Path, include: Collection[str], options: Mapping[str, Any]) -> TaskGroup:
    """The group of a pipeline's tasks in the DAG of the calling file, which gets the pipeline's form and tag.

    :param include: stages of it; all by default. Tasks of others are in another group of the DAG, or their data is
        there already.
    :param options: Airflow's, of the group.
    :raises InvalidArgument: there is no DAG, or it has groups of another pipeline.
    :raises UnknownName: there is no such pipeline or stage.
    """
    dag, settings = DagContext.get_current(), load_settings(project=str(place))
    if dag is None:
        raise InvalidArgument("task_group", f"{name}, in no DAG", "a call within `with DAG(...)` or a @dag function")
    pipeline = find_pipeline(name, settings)
    wanted, before = _regions(pipeline, include), dict(_region_tasks(dag, pipeline))
    if twice := sorted(wanted & before.keys()):
        raise InvalidArgument("task_group", f"{', '.join(twice)} of {name} twice", "each stage in one group of a DAG")
    with TaskGroup(**{"group_id": name, **options}) as group:
        region_tasks(
            pipeline,
            dag,
            settings.spark_slots,
            project=settings.project,
            place=str(place),
            wanted=wanted,
            before=before,
        )
    dag.tags.add(TAG)
    for field, asked in run_params(pipeline).items():
        if field not in dag.params:
            dag.params[field] = asked
    return group


def _regions(pipeline: Pipeline, include: Collection[str]) -> frozenset[str]:
    """The regions with these stages: a task computes all of a region."""
    known = tuple(stage.name for stage in pipeline.stages)
    if unknown := [name for name in include if name not in known]:
        raise UnknownName("stage", unknown[0], known)
    regions = stage_regions(pipeline)
    return frozenset(region.name for region in regions if not include or {*include} & {*region.stages})


def _region_tasks(dag: DAG, pipeline: Pipeline) -> Iterator[tuple[str, RegionOperator | MappedOperator]]:
    """The tasks of the pipeline that the DAG has already, by region.

    :raises InvalidArgument: it has tasks of another one. Pages, restores and the ledger know one pipeline of a run.
    """
    for task in dag.tasks:
        if task.task_type == RegionOperator.__name__:
            found: Any = task
            if (other := pipeline_named(found)) != pipeline.name:
                raise InvalidArgument(
                    "task_group",
                    f"{pipeline.name} in the DAG {dag.dag_id}, which has tasks of {other}",
                    "one pipeline in a DAG, in one group or several. Give each its DAG, and have one follow the other "
                    'by `schedule: {assets: "..."}`',
                )
            yield (found.partial_kwargs["region"] if found.is_mapped else found.region_name), found
