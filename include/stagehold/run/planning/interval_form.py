"""The form in which an attempt of an interval computes a pipeline that lets outputs flow: which of them are stored."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from stagehold.errors import UnknownName
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Run
from stagehold.plan.restart.after_failure import CAUSES, in_stored_form
from stagehold.plan.waves.sizing import adaptive_interval
from stagehold.plan.waves.worth import Risk, StageCost, weighed
from stagehold.spec.pipeline import Pipeline
from stagehold.spec.settings.run_settings import ExecutionMode

if TYPE_CHECKING:
    from stagehold.run.planning.planning import RunRequest

RUNS_ASKED = 10  # before this one; outputs that none of them has stored are stored once more, to know what they cost
ATTEMPTS_COUNTED = 500


def interval_form(request: RunRequest, ledger: Ledger) -> Pipeline:
    """The pipeline as an attempt that begins now computes it: see `plan.restart.after_failure`, `plan.waves.worth`."""
    failed = ledger.attempts.failed(request.pipeline.name, request.interval, CAUSES)
    pipeline = in_stored_form(request.pipeline, failed)
    auto = pipeline.execution_mode is ExecutionMode.AUTO
    return in_weighed_form(pipeline, request.run_id, ledger) if auto else pipeline


def in_weighed_form(pipeline: Pipeline, run_id: str, ledger: Ledger) -> Pipeline:
    """The pipeline with each output stored that is worth it in a run, by what was on record when the run began."""
    run = _run(run_id, ledger)
    began = run.started_at if run else datetime.now(UTC)
    attempts = ledger.attempts.recent(pipeline.name, ATTEMPTS_COUNTED)
    rhythm = adaptive_interval([attempt for attempt in attempts if attempt.started_at < began])
    wave = rhythm.seconds(None) if isinstance(pipeline.wave, str) else pipeline.wave.total_seconds()
    return weighed(pipeline, _costs(pipeline, run, began, ledger), Risk(rhythm.seconds_between_failures, wave))


def _costs(pipeline: Pipeline, run: Run | None, before: datetime, ledger: Ledger) -> Mapping[str, StageCost]:
    """What stages took, by name, in the newest run that stored each output that could be computed along: what was
    computed along is in its reader's time.
    """
    runs = [earlier.run_id for earlier in ledger.runs.before(pipeline.name, run, RUNS_ASKED)]
    by_run = ledger.partitions.costs(runs, before)
    open_ones = [stage for stage in pipeline.stages if stage.output.falls_back]
    for costs in (by_run[run_id] for run_id in runs if run_id in by_run):
        if all(stage.id in costs and costs[stage.id][0] >= stage.partitions for stage in open_ones):
            timed = {stage.name: costs[stage.id] for stage in pipeline.stages if stage.id in costs}
            return {name: StageCost(seconds - storing, storing) for name, (_, seconds, storing) in timed.items()}
    return {}


def _run(run_id: str, ledger: Ledger) -> Run | None:
    try:
        return ledger.runs.get(run_id)
    except UnknownName:
        return None
