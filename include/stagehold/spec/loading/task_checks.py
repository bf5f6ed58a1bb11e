"""What must hold of the stages that become one task: how their partitions are split and co-located, and `airflow:`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from stagehold.code.project import Function, functions, load_module
from stagehold.model.graph import fused
from stagehold.model.units import AUTO
from stagehold.spec.draft import Draft
from stagehold.spec.form import show
from stagehold.spec.loading.named_code import job_problem
from stagehold.spec.pipeline import Exchange
from stagehold.spec.settings.airflow_settings import CALLBACKS, OF_SLOTS, OF_THE_ORDER, TaskSettings
from stagehold.spec.settings.fields import SpecPart
from stagehold.spec.settings.launch_settings import Launcher, Resources, conf_refusal
from stagehold.spec.settings.run_settings import ScheduleMode
from stagehold.spec.settings.split_forms import Assignment
from stagehold.spec.yaml import FieldPath, Problem

CUT_ALIKE = "only where all stages that run together are cut alike"


def check_shares(draft: Draft) -> Iterator[Problem]:
    """Whether the partitions of a region can go together, because tasks split them or stages are co-located."""
    doubtful = draft.is_doubtful("speculation") or draft.is_doubtful("stages")
    if (
        draft.form.speculation is not None
        and not doubtful
        and all(stage.max_parallel_tasks == 1 for stage in draft.stages.values())
    ):
        yield Problem(
            ("speculation",),
            "a mapping",
            "only with max_parallel_tasks on a stage: a task helps with other shares of its region",
        )
    for region in regions_of(draft):
        yield from _check_tasks(draft, region)
        yield from _check_assignment(draft, region)
        yield from _check_co_location(draft, region)


def regions_of(draft: Draft) -> Iterator[tuple[str, ...]]:
    """Stages that become one task: joined by outputs that are consumed while they are produced, or by their author."""
    names = list(draft.stages)
    glued = (
        (names.index(producer), names.index(reader))
        for reader in names
        for producer in draft.edges(reader)
        if producer in draft.stages and draft.types[producer].consumed_while_produced
    )
    for component in fused(glued, [draft.stages[name].co_location for name in names]):
        yield tuple(names[place] for place in component)


def _check_tasks(draft: Draft, region: Sequence[str]) -> Iterator[Problem]:
    split = {
        name: draft.stages[name].max_parallel_tasks for name in region if draft.stages[name].max_parallel_tasks > 1
    }
    for name, tasks in split.items():
        path, count = ("stages", name, "max_parallel_tasks"), draft.counts.get(name)
        gathers = any(edge.exchange is Exchange.GATHER for edge in draft.edges(name).values())
        if count is not None and name not in draft.auto and tasks > count:
            yield Problem(
                path,
                show(tasks),
                f"at most the stage's partitions, {count}{', since it gathers its input' if gathers else ''}",
            )
        if name in draft.auto:
            yield Problem(
                path,
                f"{tasks} with partitions: {AUTO}",
                "a fixed number of partitions: tasks are made before the run decides it",
            )
        if tasks != max(split.values()):
            yield Problem(path, show(tasks), f"one number for all stages that run together: {', '.join(split)}")
        obstacle = _cut_differently(draft, region)
        if obstacle:
            yield Problem(path, f"{tasks}, but {obstacle}", CUT_ALIKE)


def _check_assignment(draft: Draft, region: Sequence[str]) -> Iterator[Problem]:
    if all(draft.stages[name].max_parallel_tasks == 1 for name in region):
        for name in region:
            source = draft.stages[name].source
            if source is not None and source.asked_for:
                yield Problem(
                    ("stages", name, "source", "splits"),
                    f"assignment: {Assignment.DYNAMIC}",
                    "only with max_parallel_tasks: 2 or more: it is these tasks that ask for splits",
                )


def _check_co_location(draft: Draft, region: Sequence[str]) -> Iterator[Problem]:
    groups = {name: draft.stages[name].co_location for name in region if draft.stages[name].co_location is not None}
    for name, group in groups.items():
        path = ("stages", name, "co_location")
        if list(groups.values()).count(group) == 1:
            yield Problem(
                path, show(group), "the name that another stage has, too: the two are computed by the same tasks"
            )
        obstacle = _cut_differently(draft, region)
        if obstacle:
            yield Problem(path, f"{group}, but {obstacle}", CUT_ALIKE)


def _cut_differently(draft: Draft, region: Sequence[str]) -> str | None:
    """Why partition i of these stages cannot be made from partition i of the others, if so."""
    found = {name: f"{AUTO} ({draft.auto[name]})" if name in draft.auto else draft.counts.get(name) for name in region}
    counts = {name: count for name, count in found.items() if count is not None}
    if len(set(counts.values())) > 1:
        return " and ".join(f"{name} has {count}" for name, count in counts.items()) + " partitions"
    for reader in region:
        for producer, edge in draft.edges(reader).items():
            if producer in region and edge.exchange is not Exchange.FORWARD:
                return f"{reader} reads {producer} {edge.exchange}"
    return None


def _check_executor_config(config: Mapping[str, JsonValue] | None, path: FieldPath) -> Iterator[Problem]:
    if config:
        from stagehold.spec.loading.executor_checks import check_executor_config  # few pipelines have any

        yield from check_executor_config(config, path)


def check_airflow(draft: Draft) -> Iterator[Problem]:
    """Whether `airflow:` of a pipeline and its stages can be done: callbacks are there, and nothing is said twice."""
    sections: dict[FieldPath, TaskSettings] = {("airflow",): draft.form.airflow}
    sections |= {("stages", name, "airflow"): stage.airflow for name, stage in draft.stages.items()}
    for path, section in sections.items():
        yield from _check_slots(section, path, draft)
        yield from _check_executor_config(section.executor_config, (*path, "executor_config"))
        for field in CALLBACKS:
            yield from _check_callbacks(getattr(section, field, ()), (*path, field), draft.project)
    runs = draft.form.airflow.max_active_runs
    if runs not in (None, 1) and draft.form.schedule_mode is ScheduleMode.EAGER:
        yield Problem(("airflow", "max_active_runs"), show(runs), "1 with schedule_mode: eager")
    for region in regions_of(draft):
        yield from _check_agreement(draft, region, "airflow", TaskSettings)


def check_resources(draft: Draft) -> Iterator[Problem]:
    """Whether `resources:` can be given: to an application that is started for the region."""
    sections: dict[FieldPath, Resources] = {("resources",): draft.form.resources}
    sections |= {("stages", name, "resources"): stage.resources for name, stage in draft.stages.items()}
    shared = draft.form.launcher is Launcher.SERVER and not draft.is_broken("launcher")
    for path, section in sections.items():
        if shared and section.model_fields_set:
            allowed = "only with `launcher: submit`: the server that all share is started with STAGEHOLD_SPARK_CONF"
            yield Problem(path, "a mapping", allowed)
        for name in section.conf:
            if refusal := conf_refusal(name):
                why, instead = refusal
                yield Problem((*path, "conf", name), f"{show(name)}, {why}", instead)
    for region in regions_of(draft):
        yield from _check_agreement(draft, region, "resources", Resources)


def _check_slots(section: TaskSettings, path: FieldPath, draft: Draft) -> Iterator[Problem]:
    """Modes that count the slots of Spark's pool may not be led astray; nor may a mode that orders tasks itself."""
    mode = draft.form.schedule_mode
    counted = OF_SLOTS if mode is not ScheduleMode.LAZY_FROM_SOURCES else ()
    ordered = OF_THE_ORDER if mode is ScheduleMode.EAGER else ()
    for field in (*counted, *ordered):
        if getattr(section, field) is not None:
            yield Problem((*path, field), show(getattr(section, field)), f"nothing with schedule_mode: {mode}")
    if (
        section.pool_slots is not None
        and section.pool is None
        and (path == ("airflow",) or not draft.form.airflow.pool)
    ):
        yield Problem((*path, "pool_slots"), show(section.pool_slots), "only with a pool")


def _check_callbacks(named: Sequence[str], path: FieldPath, project: Path) -> Iterator[Problem]:
    for callback in named:
        problem = job_problem(callback, None, project)
        if problem is not None:
            yield Problem(path, *problem)
            continue
        module, _, name = callback.partition(":")
        found = load_module(module, project)
        function = functions(found)[name] if found else None
        if function is not None and not _takes_context(function):
            yield Problem(path, f"def {name}({_written(function)})", f"def {name}(context)")


def _takes_context(function: Function) -> bool:
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    needed = len(positional) - len(arguments.defaults)
    by_name = any(default is None for default in arguments.kw_defaults)
    return needed <= 1 and bool(positional or arguments.vararg) and not by_name


def _written(function: Function) -> str:
    return ", ".join(argument.arg for argument in (*function.args.posonlyargs, *function.args.args))


def _check_agreement(draft: Draft, region: Sequence[str], section: str, form: type[SpecPart]) -> Iterator[Problem]:
    """Stages that run together are one task."""
    sections = {name: getattr(draft.stages[name], section) for name in region}
    for field in form.model_fields:
        said = {name: getattr(one, field) for name, one in sections.items() if field in one.model_fields_set}
        if len(set(map(str, said.values()))) > 1:
            for name, value in said.items():
                allowed = f"one value for all stages that run together as one task: {', '.join(region)}"
                yield Problem(("stages", name, section, field), show(value), allowed)
