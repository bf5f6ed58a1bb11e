"""A pipeline, or a part of it, as a group of tasks in a DAG of one's own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, Param, TaskGroup
from airflow.sdk.definitions._internal.contextmanager import DagContext

from stagehold.airflow.context.dag_places import pipeline_named, region_named, region_tasks_of
from stagehold.airflow.context.restore_requests import RESTORE_PIPELINE
from stagehold.airflow.dag.compile import region_tasks, run_params
from stagehold.airflow.dag.region_operator import TAG
from stagehold.airflow.telling.ends import tell_of_part
from stagehold.errors import InvalidArgument, UnknownName
from stagehold.plan.split.regions import stage_regions
from stagehold.settings import load_settings
from stagehold.spec.loading.loader import find_pipeline

if TYPE_CHECKING:
    from stagehold.spec.pipeline import Pipeline


def pipeline_group(name: str, place: Path, include: Collection[str], options: Mapping[str, Any]) -> TaskGroup:
    """The group of a pipeline's tasks in the DAG of the calling file, which gets the pipeline's form, its
    notifiers and our tag.

    :param include: stages of it; all by default. Tasks of others are in another group of the DAG, or their data is
        there already.
    :param options: Airflow's, of the group.
    :raises InvalidArgument: there is no DAG, it has tasks of these stages, or another of its pipelines has another
        default for a parameter of the same name.
    :raises UnknownName: there is no such pipeline or stage.
    """
    dag, settings = DagContext.get_current(), load_settings(project=str(place))
    if dag is None:
        raise InvalidArgument("task_group", f"{name}, in no DAG", "a call within `with DAG(...)` or a @dag function")
    pipeline = find_pipeline(name, settings)
    wanted, others = _regions(pipeline, include), [one for one in _pipelines_in(dag) if one.name != name]
    before = {region_named(task): task for task in region_tasks_of(dag) if pipeline_named(task) == name}
    if twice := sorted(wanted & before.keys()):
        raise InvalidArgument("task_group", f"{', '.join(twice)} of {name} twice", "each stage in one group of a DAG")
    form = _form(pipeline, others, dag)
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
    tell_of_part(pipeline, dag, str(place))
    dag.tags.add(TAG)
    for field, asked in form.items():
        dag.params[field] = asked
    return group


def _regions(pipeline: Pipeline, include: Collection[str]) -> frozenset[str]:
    """The regions with these stages: a task computes all of a region."""
    known = tuple(stage.name for stage in pipeline.stages)
    if unknown := [name for name in include if name not in known]:
        raise UnknownName("stage", unknown[0], known)
    regions = stage_regions(pipeline)
    return frozenset(region.name for region in regions if not include or {*include} & {*region.stages})


def _pipelines_in(dag: DAG) -> Iterator[Pipeline]:
    """The pipelines that the DAG has tasks of already."""
    found = (task.partial_kwargs["pipeline"] if task.is_mapped else task.declared for task in region_tasks_of(dag))
    yield from {one.name: one for one in found}.values()


def _form(pipeline: Pipeline, others: Sequence[Pipeline], dag: DAG) -> Mapping[str, Param]:
    """The fields that the DAG's form gets. A field is for all pipelines of the DAG, but for those of a restore, which
    is of one. A field that the DAG's author declared stays as it is.
    """
    _refuse_two_defaults(pipeline, others, dag)
    form = {}
    for field, own in run_params(pipeline).items():
        there = dag.params.get_param(field) if field in dag.params else None
        if there is None or own.schema.get("title") == there.schema.get("title", field):
            form[field] = own if there is None else _joined(there, own)
    if others:
        form[RESTORE_PIPELINE] = _restored(
            [*dict.fromkeys((*map(pipeline_named, region_tasks_of(dag)), pipeline.name))]
        )
    return form


def _joined(there: Param, own: Param) -> Param:
    """A field of ours that takes what either takes."""
    choices = {
        name: [*there.schema[name], *(one for one in own.schema[name] if one not in there.schema[name])]
        for name in ("enum", "anyOf")
        if name in own.schema
    }
    return Param(there.value, there.description, schema={**there.schema, **choices})


def _restored(pipelines: Sequence[str]) -> Param:
    return Param(
        None,
        type=["null", "string"],
        enum=[None, *pipelines],
        values_display={"null": "None: nothing is restored"},
        title="Restore of",
        description="The pipeline that is restored, by one of the two fields about it; the others compute what is not "
        "consumable. The interval and all other fields are for each pipeline of the DAG.",
    )


def _refuse_two_defaults(pipeline: Pipeline, others: Sequence[Pipeline], dag: DAG) -> None:
    """:raises InvalidArgument: the form would give a parameter the default of another pipeline."""
    for other in others:
        for field in sorted(pipeline.params.keys() & other.params.keys()):
            mine, theirs = pipeline.params[field], other.params[field]
            if mine != theirs == dag.params[field]:
                raise InvalidArgument(
                    "task_group",
                    f"{pipeline.name} with {field}: {mine!r} beside {other.name} with {field}: {theirs!r}",
                    "parameters of one name with one default in all pipelines of a DAG, which has one form, or other "
                    f"names; or {field} among the DAG's own params",
                )
