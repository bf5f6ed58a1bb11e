"""What starts the runs of a pipeline's DAG: times, news of assets, or a timetable of the author's."""

from __future__ import annotations

import sys
from datetime import timedelta
from functools import reduce
from importlib import import_module
from operator import and_, or_
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetAlias, AssetOrTimeSchedule, CronTriggerTimetable

from stagehold.code.project import code_folders, compile_modules_of
from stagehold.errors import InvalidSpec, SpecProblem
from stagehold.model.keys.interval_key import PRESETS
from stagehold.spec.loading.schedule_checks import AssetCondition, AssetName, asset_condition

if TYPE_CHECKING:
    from airflow.sdk import DAG
    from airflow.sdk.definitions.asset import BaseAsset

    from stagehold.spec.pipeline import Pipeline

AT_ITS_TIME = timedelta(0)


def dag_schedule(pipeline: Pipeline, project: str) -> Any:
    """:raises InvalidSpec: the timetable cannot be made."""
    starts = pipeline.starts
    if starts.timetable is not None:
        return _timetable(pipeline, starts.timetable, project)
    if starts.assets is None:
        return pipeline.schedule
    assets = _condition(asset_condition(starts.assets))
    if pipeline.schedule is None:
        return assets
    times = CronTriggerTimetable(
        PRESETS.get(pipeline.schedule, pipeline.schedule), timezone="UTC", run_immediately=AT_ITS_TIME
    )
    return AssetOrTimeSchedule(timetable=times, assets=assets)


def wait_for_the_next_time(dag: DAG) -> None:
    """Have the first run wait for the next time of the schedule. Airflow's ``run_immediately=False`` runs at once
    within a tenth of the period: a nightly DAG that is switched on within 2.4 hours of its time would run for the night
    before.
    """
    if isinstance(dag.timetable, CronTriggerTimetable):
        dag.timetable.run_immediately = AT_ITS_TIME


def _condition(found: AssetCondition) -> BaseAsset:
    """Assets by reference: who publishes one says where it is. Airflow (3.3) tells a run nothing of the news that such
    a reference has started it for; of an alias, by which a table of ours is told, it does.
    """
    if isinstance(found, AssetName):
        return Asset.ref(uri=found.name) if found.is_uri else AssetAlias(found.name) | Asset.ref(name=found.name)
    return reduce(and_ if found.every else or_, map(_condition, found.parts))


def _timetable(pipeline: Pipeline, reference: str, project: str) -> Any:
    module, _, name = reference.partition(":")
    compile_modules_of(Path(project))
    sys.path.extend(folder for folder in map(str, code_folders(Path(project))) if folder not in sys.path)
    try:
        return getattr(import_module(module), name)(**pipeline.starts.arguments)
    except Exception as error:
        problem = f"{reference}, which cannot be made ({type(error).__name__}: {error})"
        allowed = "a timetable of Airflow, with the `arguments` that it takes"
        raise InvalidSpec(pipeline.file, [SpecProblem(1, "schedule.timetable", problem, allowed)]) from error
