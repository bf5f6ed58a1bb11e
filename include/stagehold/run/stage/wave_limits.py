"""What the ledger knows of how quickly a stage works and how often its pipeline fails."""

from __future__ import annotations

from stagehold.ledger.ledger import Ledger
from stagehold.plan.split.regions import is_divisible
from stagehold.plan.waves.interval import DeclaredInterval, WaveInterval, adaptive_interval
from stagehold.plan.waves.sizing import WaveSizer
from stagehold.settings import Settings
from stagehold.spec.pipeline import Pipeline, Stage

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
