"""What people vouch for, and what gates said of whole stages, by the names of stages. What people say of production
counts in a sandbox as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from stagehold.chronicle.chronicle import facts_told
from stagehold.ledger.ledger import Ledger
from stagehold.model.choices import Acceptance, Waiver
from stagehold.model.records import PartitionRecord, StageVerdict
from stagehold.plan.grounds.content_verdicts import content_of, last_verdict_on
from stagehold.plan.resume.waiving import in_force
from stagehold.settings import Settings
from stagehold.spec.pipeline import Pipeline

WaiversByStage = Mapping[str, tuple[Waiver, ...]]  # by the name of a stage, oldest first


def acceptances_for(
    pipeline: Pipeline, interval: str, own: Sequence[Acceptance], settings: Settings
) -> Mapping[str, tuple[Acceptance, ...]]:
    """Oldest first; those of production are older than a sandbox's ``own``."""
    told = facts_told(settings.production.lake_uri, Acceptance) if settings.sandbox else ()
    before = (
        acceptance
        for acceptance in told
        if acceptance.pipeline == pipeline.name and acceptance.interval in (None, interval)
    )
    every = (*before, *own)
    words = {
        stage.name: tuple(acceptance for acceptance in every if acceptance.stage == stage.id)
        for stage in pipeline.stages
    }
    return {name: acceptances for name, acceptances in words.items() if acceptances}


def waivers_for(pipeline: Pipeline, interval: str, ledger: Ledger, settings: Settings) -> WaiversByStage:
    """Waivers in force for the stages of the pipeline, by name."""
    return by_stage(pipeline, waivers_in_force(pipeline.name, interval, ledger, settings))


def said_waivers(
    pipeline: Pipeline, interval: str, ledger: Ledger, settings: Settings
) -> tuple[WaiversByStage, WaiversByStage]:
    """All waivers of an interval: those in force, and those that are not, or took others back."""
    said = all_waivers(pipeline.name, interval, ledger, settings)
    holding = in_force(said, datetime.now(UTC))
    past = [waiver for waiver in said if waiver not in holding]
    return by_stage(pipeline, holding), by_stage(pipeline, past)


def waivers_in_force(pipeline: str, interval: str, ledger: Ledger, settings: Settings) -> tuple[Waiver, ...]:
    """Waivers in force for all stages, whether or not the pipeline still has them."""
    return in_force(all_waivers(pipeline, interval, ledger, settings), datetime.now(UTC))


def all_waivers(pipeline: str, interval: str, ledger: Ledger, settings: Settings) -> tuple[Waiver, ...]:
    """Waivers in force, and those that were in force before."""
    return with_production(pipeline, interval, ledger.waivers.of(pipeline, interval), settings)


def with_production(pipeline: str, interval: str, own: Sequence[Waiver], settings: Settings) -> tuple[Waiver, ...]:
    """Waivers of a ledger and, if it is a sandbox's, those of production before them."""
    told = facts_told(settings.production.lake_uri, Waiver) if settings.sandbox else ()
    before = (waiver for waiver in told if (waiver.pipeline, waiver.interval) == (pipeline, interval))
    return (*before, *own)


def by_stage(pipeline: Pipeline, words: Sequence[Waiver]) -> WaiversByStage:
    """Waivers for the stages that the pipeline still has, by name."""
    by_name = {stage.name: tuple(waiver for waiver in words if waiver.stage == stage.id) for stage in pipeline.stages}
    return {name: waivers for name, waivers in by_name.items() if waivers}


def verdicts_of(pipeline: Pipeline, said: Sequence[StageVerdict]) -> Mapping[str, tuple[StageVerdict, ...]]:
    """What gates ``said`` of all partitions of stages together, by the names of stages."""
    by_name = {
        stage.name: tuple(verdict for verdict in said if verdict.cell.stage == stage.id) for stage in pipeline.stages
    }
    return {name: verdicts for name, verdicts in by_name.items() if verdicts}


def newest_verdict(records: Sequence[PartitionRecord], ledger: Ledger) -> StageVerdict | None:
    """What a gate said last of all these together, which are the newest of a stage."""
    cell = records[0].cell
    said = tuple(verdict for verdict in ledger.stage_verdicts.of(cell.pipeline, cell.interval) if verdict.cell == cell)
    return last_verdict_on(content_of(records), said) if said else None
