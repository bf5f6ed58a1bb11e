"""The task of a pipeline that nobody runs."""

from __future__ import annotations

from datetime import timedelta

from stagehold.plan.split.regions import stage_regions
from stagehold.run.planning.planning import RunRequest
from stagehold.run.planning.task import RegionTask
from stagehold.spec.pipeline import Pipeline, Stage
from stagehold.spec.settings.launch_settings import Launcher, Resources
from stagehold.spec.settings.restart import RestartSettings


def task_of(launcher: str, **resources: object) -> RegionTask:
    stage = Stage(name="one", job="jobs:one", partitions=1, max_parallelism=128)
    pipeline = Pipeline(
        name="paper",
        file="paper.yaml",
        stages=(stage,),
        launcher=Launcher(launcher),
        resources=Resources.model_validate(resources),
        restart=RestartSettings(initial=timedelta(milliseconds=1)),
        secrets=("api_token",),
    )
    (region,) = stage_regions(pipeline)
    return RegionTask(RunRequest(pipeline, "r1", "day", {}), region, "owner", "airflow")
