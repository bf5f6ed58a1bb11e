"""What the stages of a region are computed from and for, in one attempt."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stagehold.gates.earlier_figures import INTERVALS, EarlierFigures, earlier_figures
from stagehold.gates.suite import Suite
from stagehold.gates.suite_files import find_suite
from stagehold.ledger.ledger import Ledger
from stagehold.model.context import StageContext
from stagehold.model.records import Attempt, Cell
from stagehold.model.source_position import SourcePosition
from stagehold.plan.resume.decisions import ResumePlan
from stagehold.plan.split.regions import is_divisible, sources_within
from stagehold.plan.state.earlier import Earlier
from stagehold.plan.waves.interval import DeclaredInterval, WaveInterval, adaptive_interval
from stagehold.plan.waves.sizing import WaveSizer
from stagehold.run.delivery.wave import StageTask
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.functions.stage_inputs import Reading
from stagehold.run.lease.region_tables import RegionTables
from stagehold.run.planning.earlier import KnownIntervals, earlier_intervals, earlier_states
from stagehold.run.planning.planning import begins_with_of
from stagehold.run.planning.task import RegionTask
from stagehold.run.planning.vouched import waivers_for
from stagehold.settings import Settings
from stagehold.sources.attempt_sources import Sources, is_incremental
from stagehold.spec.pipeline import Pipeline, Stage


@dataclass(frozen=True)
class GivenToStages:
    """Of the attempt that has these ``tables`` and ``sources``."""

    task: RegionTask
    attempt: Attempt
    tables: RegionTables
    sources: Sources
    workplace: Workplace

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
        )

    def earlier(self, pipeline: Pipeline) -> Mapping[str, Earlier]:
        request = self.task.request
        known = KnownIntervals.of(self.workplace.ledger, self.workplace.settings)
        return earlier_states(pipeline, request.interval, known, begins_with_of(request))

    def stage_task(self, stage: Stage, pipeline: Pipeline) -> StageTask:
        place, suite = self.workplace, self._suite(stage.gate, stage, pipeline) if stage.gate else None
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
        """What the interval takes of the sources that the stage is computed from at once."""
        incremental = [one for one in sources_within(stage, pipeline) if is_incremental(one)]
        return tuple(self.sources.taken_of(source) for source in incremental)

    def _suite(self, gate: str, stage: Stage, pipeline: Pipeline) -> Suite:
        settings = self.workplace.settings
        found = find_suite(gate, Path(settings.suites), Path(settings.project))
        earlier = self._earlier_figures(stage, pipeline) if found.compares else found.earlier
        return replace(found, parameters=self._params(stage), earlier=earlier)

    def _earlier_figures(self, stage: Stage, pipeline: Pipeline) -> EarlierFigures:
        """As they are now: an interval that runs meanwhile may say something else later."""
        known = KnownIntervals.of(self.workplace.ledger, self.workplace.settings, with_stateless=True)
        intervals = earlier_intervals(pipeline, stage, self.task.request.interval, known)[:INTERVALS]
        records = [known.newest(Cell(pipeline.name, stage.id, interval)) for interval in intervals]
        return earlier_figures(records, stage.partitions)

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
            seed=zlib.crc32(f"{task.pipeline.name}/{stage.id}/{task.request.interval}".encode()),
            params=self._params(stage),
            restored_from=task.request.restore.snapshot if task.request.restore else None,
        )


RUNS_ASKED = 10  # newest runs among which one that timed the stage is looked for
ATTEMPTS_COUNTED = 500


def wave_sizer(stage: Stage, pipeline: Pipeline, ledger: Ledger, settings: Settings) -> WaveSizer:
    """The sizer for a stage, with what earlier runs and earlier waves of this one tell."""
    runs = [run.run_id for run in ledger.runs.recent(RUNS_ASKED, pipeline.name)]
    return WaveSizer(
        interval=wave_interval(pipeline, ledger),
        slots=settings.spark_cores * 2,
        known=ledger.partitions.seconds_each(stage.id, runs),
        undivided=not is_divisible(stage, pipeline),
    )


def wave_interval(pipeline: Pipeline, ledger: Ledger) -> WaveInterval:
    if isinstance(pipeline.wave, str):
        return adaptive_interval(ledger.attempts.recent(pipeline.name, ATTEMPTS_COUNTED))
    return DeclaredInterval(pipeline.wave.total_seconds())
