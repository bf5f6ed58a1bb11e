"""What the stages of a region are computed from, and what for, in one attempt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from stagehold.gates.earlier_figures import INTERVALS, EarlierFigures, earlier_figures
from stagehold.gates.suite import Suite
from stagehold.gates.suite_files import suite_of
from stagehold.lake.commit.staging import DATA_FOLDER, SCRIPT_FOLDER
from stagehold.lake.store.location import table_location
from stagehold.model.context import StageContext, StageSecrets, seed_of
from stagehold.model.keys.interval_key import end_of
from stagehold.model.records import Attempt, Cell
from stagehold.model.source_position import SourcePosition
from stagehold.plan.resume.decisions import ResumePlan
from stagehold.plan.split.regions import sources_within
from stagehold.plan.state.earlier_state import Earlier
from stagehold.run.delivery.wave import StageTask
from stagehold.run.functions.stage_inputs import Reading
from stagehold.run.lease.region_tables import RegionTables
from stagehold.run.planning.acceptance import waivers_for
from stagehold.run.planning.earlier_states import KnownIntervals, earlier_intervals, earlier_states
from stagehold.run.planning.planning import begins_with_of
from stagehold.run.planning.task import RegionTask
from stagehold.sources.attempt_sources import Sources, is_incremental
from stagehold.sources.declared_reads import stage_files
from stagehold.spec.pipeline import Pipeline, Stage


class StageTasks:
    """What the stages of a region are computed from, and what for, in the attempt that has these ``tables`` and
    ``sources``.
    """

    def __init__(self, task: RegionTask, attempt: Attempt, tables: RegionTables, sources: Sources) -> None:
        self.task, self.attempt, self.tables, self.sources = task, attempt, tables, sources
        self.workplace = tables.workplace

    def reading(self, pipeline: Pipeline, plan: ResumePlan) -> Reading:
        request, place = self.task.request, self.workplace
        begins_with = begins_with_of(request)
        return Reading(
            pipeline,
            plan.by_stage,
            self.sources,
            self._context,
            place.settings.project,
            earlier=self.earlier(pipeline),
            rescaled=begins_with.rescaled(pipeline) if begins_with else {},
            script_output=self.script_output,
        )

    def script_output(self, stage: Stage) -> str:
        """Where its script writes: among the files of the attempt, which are swept if that dies."""
        place, request = self.workplace.settings.lake_uri, self.task.request
        location = table_location(place, request.pipeline.name, stage, request.interval)
        return f"{location.uri}/{DATA_FOLDER}/{self.attempt.attempt_id}/{SCRIPT_FOLDER}"

    def earlier(self, pipeline: Pipeline) -> Mapping[str, Earlier]:
        request = self.task.request
        known = KnownIntervals.of(self.workplace.ledger, self.workplace.settings)
        return earlier_states(pipeline, request.interval, known, begins_with_of(request))

    def stage_task(self, stage: Stage, pipeline: Pipeline) -> StageTask:
        place, suite = self.workplace, self.suite(stage, pipeline)
        return StageTask(
            stage=stage,
            cell=self.tables.cell(stage.name),
            attempt=self.attempt,
            location=self.tables.location(stage.name),
            positions=self.positions(stage, pipeline),
            suite=suite.of_partitions if suite else None,
            whole=suite.of_stage if suite else None,
            waivers=waivers_for(pipeline, self.task.request.interval, place.ledger, place.settings).get(stage.name, ()),
        )

    def positions(self, stage: Stage, pipeline: Pipeline) -> tuple[SourcePosition, ...]:
        """The positions that the interval takes of the sources of which the stage is directly computed."""
        incremental = [source for source in sources_within(stage, pipeline) if is_incremental(source)]
        return tuple(self.sources.taken_of(source) for source in incremental)

    def suite(self, stage: Stage, pipeline: Pipeline) -> Suite | None:
        """What judges the stage, with the figures and parameters of its interval; None without a gate."""
        if stage.gate is None:
            return None
        settings = self.workplace.settings
        found = suite_of(pipeline, stage.gate, settings)
        earlier = self._earlier_figures(stage, pipeline) if found.compares else found.earlier
        return replace(found, parameters=self._params(stage), earlier=earlier)

    def _earlier_figures(self, stage: Stage, pipeline: Pipeline) -> EarlierFigures:
        """The figures as they are now: an interval that runs meanwhile may change them later."""
        known = KnownIntervals.of(self.workplace.ledger, self.workplace.settings, with_stateless=True)
        intervals = earlier_intervals(pipeline, stage, self.task.request.interval, known)[:INTERVALS]
        records = [known.newest(Cell(pipeline.name, stage.id, interval)) for interval in intervals]
        return earlier_figures(records, stage.partitions)

    @cached_property
    def _secrets(self) -> StageSecrets:
        return self.task.find_secrets(self.workplace.settings)

    def _params(self, stage: Stage) -> Mapping[str, Any]:
        return {**self.task.pipeline.params, **self.task.request.params, **stage.params}

    def _context(self, stage: Stage, partitions: tuple[int, ...]) -> StageContext:
        task = self.task
        return StageContext(
            pipeline=task.pipeline.name,
            stage=stage.name,
            interval=task.request.interval,
            logical_date=task.logical_date,
            partitions=partitions,
            seed=seed_of(task.pipeline.name, stage.id, task.request.interval),
            params=self._params(stage),
            restored_from=task.request.restore.snapshot if task.request.restore else None,
            interval_end=end_of(task.request.interval, task.pipeline.schedule),
            secrets=self._secrets,
            files=stage_files(stage, Path(self.workplace.settings.project)),
        )
