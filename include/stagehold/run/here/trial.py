"""One partition of a stage, computed and judged for its author: nothing is written or recorded."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from stagehold.errors import InvalidArgument
from stagehold.gates.judge import import_great_expectations, judge_together
from stagehold.gates.suite import Suite
from stagehold.gates.verdicts import GateVerdict
from stagehold.lake.declared_columns import refuse_nulls
from stagehold.lake.measure import count_nulls
from stagehold.lake.store.columns import is_reserved
from stagehold.lake.store.files import files_at
from stagehold.model.keys.interval_key import moment_of
from stagehold.model.records import Attempt, AttemptState, Severity
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
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class StageTrial:
    """What a stage makes of one partition now: its first ``rows``, how many there are in all, and what its gate says.

    ``along`` are stages whose output was not there, so that it was computed on the way. ``counters`` are those of its
    function.
    """

    columns: tuple[str, ...]
    rows: Sequence[Mapping[str, Any]]
    count: int
    seconds: float
    verdicts: tuple[GateVerdict, ...]
    along: tuple[str, ...]
    counters: Mapping[str, int] = field(default_factory=dict)

    @property
    def refused(self) -> bool:
        return any(not verdict.passed and verdict.severity is Severity.CRITICAL for verdict in self.verdicts)


def try_stage(
    request: RunRequest, stage: str, partition: int, settings: Settings, progress: Progress, *, most: int
) -> StageTrial:
    """Compute a partition of a stage as a run would, from outputs that are consumable; others are computed on the way.

    Nothing is left in lake or ledger. Outputs that are there are read whatever they were made from.

    :param most: how many rows are shown.
    :raises InvalidArgument: the stage has no such partition
    :raises StageholdError: what a run of the stage would raise
    """
    with open_workplace(settings, progress) as workplace:
        refuse_lost_ledger(request, workplace.ledger, settings)
        view = IntervalView.of_run(request, workplace.ledger, settings)
        tried = view.pipeline.stage(stage)
        if not 0 <= partition < tried.partitions:
            raise InvalidArgument("--partition", str(partition), f"0 to {tried.partitions - 1}, those of {stage}")
        along = computed_along(view.pipeline, view.plan, stage, partition)
        with spark_server(settings, f"try {stage}", import_great_expectations if tried.gate else None):
            return _tried(view, tried, partition, along, workplace, most)


def computed_along(pipeline: Pipeline, plan: ResumePlan, stage: str, partition: int) -> tuple[str, ...]:
    """The stages before ``stage`` of which it needs a partition that is not there, in the pipeline's order."""
    there = {decision.stage: set[int]() for decision in plan.decisions}
    for decision in plan.decisions:
        if decision.reused:
            there[decision.stage].add(decision.partition)
    needed, found = [(stage, {partition})], set[str]()
    while needed:
        name, partitions = needed.pop()
        for edge in pipeline.stage(name).inputs:
            producer = pipeline.stage(edge.stage)
            wanted = partitions if edge.exchange is Exchange.FORWARD else {*range(producer.partitions)}
            if not wanted <= there[edge.stage]:
                found.add(edge.stage)
                needed.append((edge.stage, wanted))
    return tuple(each.name for each in pipeline.stages if each.name in found)


def _tried(
    view: IntervalView, stage: Stage, partition: int, along: Sequence[str], workplace: Workplace, most: int
) -> StageTrial:
    name, settings, pipeline = f"try-{uuid4()}", workplace.settings, _computing_along(view.pipeline, along)
    with session_of(name, (), settings, workplace.progress, pipeline.stall_timeout) as spark:
        send_project(spark, (pipeline.stage(each).job for each in (*along, stage.name)), Path(settings.project))
        tasks = _tasks(view, stage, name, workplace)
        frames = FrameBuilder(spark, tasks.reading(pipeline, view.plan), Intermediates())
        started = time.monotonic()
        scripts = [each for each in map(pipeline.stage, (*along, stage.name)) if each.is_script]
        reporting = reporting_queries(stage, (partition,), Path(settings.project))
        with _forgetting(map(tasks.script_output, scripts)), frames.computing(stage), reporting:
            schema = frames.check(stage, partition)
            frame = frames.output(stage, (partition,))
            kept = frame.drop(*filter(is_reserved, frame.columns)).persist()
            nulls = count_nulls(kept, schema)
            count, shown = kept.count(), kept.limit(most).toArrow()
            seconds = time.monotonic() - started
            counters = dict(frames.counted(stage, (partition,)).get(partition, ()))
            verdicts = _judged(kept, tasks.suite(stage, pipeline), partition)
    refuse_nulls(stage, {partition: nulls})
    return StageTrial(tuple(shown.column_names), shown.to_pylist(), count, seconds, verdicts, tuple(along), counters)


@contextmanager
def _forgetting(folders: Iterable[str]) -> Iterator[None]:
    """Delete behind the block what scripts wrote there."""
    try:
        yield
    finally:
        for folder in folders:
            files_at(folder).delete("")


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


def _judged(frame: DataFrame, suite: Suite | None, partition: int) -> tuple[GateVerdict, ...]:
    """What is about all partitions together is not judged."""
    own = suite.of_partitions if suite else None
    return judge_together(frame, own, partition) if own and own.expectations else ()
