"""What a stage's function is given and what it makes of it, as frames of one Spark session: nothing is left in the lake
or recorded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from stagehold.errors import InvalidArgument
from stagehold.gates.judge import import_great_expectations
from stagehold.gates.suite import Suite
from stagehold.lake.store.columns import is_reserved
from stagehold.lake.store.files import files_at
from stagehold.model.keys.interval_key import moment_of
from stagehold.model.records import Attempt, AttemptState
from stagehold.plan.resume.decisions import ResumePlan
from stagehold.plan.split.regions import stage_regions
from stagehold.run.attempt.stage_tasks import StageTasks
from stagehold.run.equipment.workplace import Progress, Workplace
from stagehold.run.functions.frame_builder import FrameBuilder
from stagehold.run.functions.function_errors import reporting_queries
from stagehold.run.functions.stage_inputs import Intermediates
from stagehold.run.here.region import open_workplace
from stagehold.run.lease.region_tables import RegionTables
from stagehold.run.planning.lost_ledger import refuse_lost_ledger
from stagehold.run.planning.planning import IntervalView, RunRequest
from stagehold.run.planning.task import RegionTask
from stagehold.run.stage.spark_engine import session_of
from stagehold.settings import Settings
from stagehold.spark.server.server import spark_server
from stagehold.spark.session.project_modules import send_project
from stagehold.spec.pipeline import Exchange, OutputType, Pipeline, Stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class StageFrames:
    """Frames of some ``partitions`` of a stage, which may be read as long as their session is open.

    ``along`` are stages whose output is not there, so that it is computed whenever it is read.
    """

    spark: SparkSession
    stage: Stage
    partitions: tuple[int, ...]
    along: tuple[str, ...]
    suite: Suite | None
    builder: FrameBuilder

    def inputs(self) -> dict[str, DataFrame]:
        """What the function is given for all of the partitions together, by the names of its parameters."""
        return self.builder.inputs(self.stage, self.partitions)

    def output(self) -> tuple[DataFrame, StructType]:
        """What the function makes of them, without columns of ours, and the declared schema.

        :raises StageholdError: what a run of the stage would raise
        """
        schema = self.builder.check(self.stage, self.partitions[0])
        frame = self.builder.output(self.stage, self.partitions)
        return frame.drop(*filter(is_reserved, frame.columns)), schema


@contextmanager
def stage_frames(
    request: RunRequest, stage: str, partitions: Collection[int], settings: Settings, progress: Progress
) -> Iterator[StageFrames]:
    """Open a session with the frames of a stage, made from outputs that are consumable, whatever they were made from.

    :param partitions: of the stage; all of them, if none is named.
    :raises InvalidArgument: the stage has no such partition
    """
    with open_workplace(settings, progress) as workplace:
        refuse_lost_ledger(request, workplace.ledger, settings)
        view = IntervalView.of_run(request, workplace.ledger, settings)
        found = view.pipeline.stage(stage)
        chosen = tuple(partitions) or tuple(range(found.partitions))
        _refuse_unknown(found, chosen)
        along = computed_along(view.pipeline, view.plan, stage, chosen)
        with spark_server(settings, f"look at {stage}", import_great_expectations if found.gate else None):
            yield from _opened(view, found, chosen, along, workplace)


def _refuse_unknown(stage: Stage, partitions: Sequence[int]) -> None:
    for partition in partitions:
        if not 0 <= partition < stage.partitions:
            allowed = f"0 to {stage.partitions - 1}, those of {stage.name}"
            raise InvalidArgument("--partition", str(partition), allowed)


def _opened(
    view: IntervalView, stage: Stage, partitions: tuple[int, ...], along: tuple[str, ...], workplace: Workplace
) -> Iterator[StageFrames]:
    settings, name, pipeline = workplace.settings, f"try-{uuid4()}", _computing_along(view.pipeline, along)
    with session_of(name, (), settings, workplace.progress, pipeline.stall_timeout) as spark:
        send_project(spark, (pipeline.stage(each).entries for each in (*along, stage.name)), Path(settings.project))
        tasks = _tasks(view, stage, name, workplace)
        builder = FrameBuilder(spark, tasks.reading(pipeline, view.plan), Intermediates())
        scripts = [each for each in map(pipeline.stage, (*along, stage.name)) if each.is_script]
        reporting = reporting_queries(stage, partitions, Path(settings.project))
        with _forgetting(map(tasks.script_output, scripts)), builder.computing(stage), reporting:
            yield StageFrames(spark, stage, partitions, along, tasks.suite(stage, pipeline), builder)


@contextmanager
def _forgetting(folders: Iterable[str]) -> Iterator[None]:
    """Delete behind the block what scripts wrote there."""
    try:
        yield
    finally:
        for folder in folders:
            files_at(folder).delete("")


def computed_along(pipeline: Pipeline, plan: ResumePlan, stage: str, partitions: Collection[int]) -> tuple[str, ...]:
    """The stages before ``stage`` of which its ``partitions`` need one that is not there, in the pipeline's order."""
    there = {decision.stage: set[int]() for decision in plan.decisions}
    for decision in plan.decisions:
        if decision.reused:
            there[decision.stage].add(decision.partition)
    needed, found = [(stage, {*partitions})], set[str]()
    while needed:
        name, read = needed.pop()
        for edge in pipeline.stage(name).inputs:
            producer = pipeline.stage(edge.stage)
            wanted = read if edge.exchange is Exchange.FORWARD else {*range(producer.partitions)}
            if not wanted <= there[edge.stage]:
                found.add(edge.stage)
                needed.append((edge.stage, wanted))
    return tuple(each.name for each in pipeline.stages if each.name in found)


def _tasks(view: IntervalView, stage: Stage, attempt_id: str, workplace: Workplace) -> StageTasks:
    """The tasks of an attempt that nobody records."""
    request, now = view.request, datetime.now(UTC)
    region = next(region for region in stage_regions(request.pipeline) if stage.name in region.stages)
    start = moment_of(request.interval, request.pipeline.schedule)
    task = RegionTask(request, region, owner=attempt_id, launcher="try", logical_date=start)
    whose = (request.run_id, request.pipeline.name, request.interval, region.name)
    attempt = Attempt(attempt_id, *whose, epoch=0, state=AttemptState.CREATED, started_at=now)
    return StageTasks(task, attempt, RegionTables(task, workplace), view.sources)


def _computing_along(pipeline: Pipeline, along: Sequence[str]) -> Pipeline:
    """The pipeline with outputs that are computed whenever they are read, in place of some that are not there."""
    return pipeline.model_copy(
        update={"stages": tuple(_unstored(stage) if stage.name in along else stage for stage in pipeline.stages)}
    )


def _unstored(stage: Stage) -> Stage:
    output = stage.output.model_copy(update={"type": OutputType.PIPELINED_BOUNDED, "fallback": None})
    return stage.model_copy(update={"output": output})
