"""Whether `airflow:` of a pipeline and its stages can be done: callbacks are there, and nothing is said twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from stagehold.code.project import Function, functions, load_module
from stagehold.spec.checks.job import job_problem
from stagehold.spec.checks.shares import regions_of
from stagehold.spec.draft import Draft
from stagehold.spec.form import show
from stagehold.spec.settings.airflow_settings import CALLBACKS, OF_SLOTS, OF_THE_ORDER, TaskSettings
from stagehold.spec.settings.run_settings import ScheduleMode
from stagehold.spec.yaml import FieldPath, Problem


def check_airflow(draft: Draft) -> Iterator[Problem]:
    sections: dict[FieldPath, TaskSettings] = {("airflow",): draft.form.airflow}
    sections |= {("stages", name, "airflow"): stage.airflow for name, stage in draft.stages.items()}
    for path, section in sections.items():
        yield from _check_slots(section, path, draft)
        for field in CALLBACKS:
            yield from _check_callbacks(getattr(section, field, ()), (*path, field), draft.project)
    runs = draft.form.airflow.max_active_runs
    if runs not in (None, 1) and draft.form.schedule_mode is ScheduleMode.EAGER:
        yield Problem(("airflow", "max_active_runs"), show(runs), "1 with schedule_mode: eager")
    for region in regions_of(draft):
        yield from _check_agreement(draft, region)


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
    for one in named:
        problem = job_problem(one, None, project)
        if problem is not None:
            yield Problem(path, *problem)
            continue
        module, _, name = one.partition(":")
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


def _check_agreement(draft: Draft, region: Sequence[str]) -> Iterator[Problem]:
    """Stages that run together are one task."""
    for field in TaskSettings.model_fields:
        said = {
            name: getattr(draft.stages[name].airflow, field)
            for name in region
            if field in draft.stages[name].airflow.model_fields_set
        }
        if len(set(map(str, said.values()))) > 1:
            for name, value in said.items():
                allowed = f"one value for all stages that run together as one task: {', '.join(region)}"
                yield Problem(("stages", name, "airflow", field), show(value), allowed)
