"""A nightly pipeline of three stages whose backfills are planned and run for real, but for Spark."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from tests.run.clearing.nights import PIPELINE, STAGES, Nights

from stagehold.model.backfill import Backfill, BackfillChoice
from stagehold.plan.backfill.backfill_plan import BackfillPlan
from stagehold.plan.split.regions import stage_regions
from stagehold.run.backfill.backfill_planning import plan_backfill
from stagehold.run.backfill.backfill_runs import IntervalOutcome, begin_backfill, run_intervals
from stagehold.run.here.region import work_on
from stagehold.run.planning.planning import RunRequest
from stagehold.run.planning.task import RegionOutcome, RegionTask
from stagehold.spec.settings.run_settings import ReleasePolicy

Computed = Mapping[tuple[str, str], frozenset[int]]  # partitions, by interval and stage


class PaperBackfill:
    """Its dates are those of `0 2 * * *`."""

    def __init__(self, folder: Path) -> None:
        self.nights = Nights(folder, ReleasePolicy.KEEP)
        changes = {"schedule": "0 2 * * *", "early_cutoff": False}
        self.nights.pipeline = self.nights.pipeline.model_copy(update=changes)

    def plan(self, choice: BackfillChoice) -> BackfillPlan:
        return plan_backfill(choice, self.nights.pipeline, self.nights.ledger, self.nights.settings)

    def begin(self, choice: BackfillChoice, token: str | None = None) -> Backfill:
        return begin_backfill(self.plan(choice), token, "me", self.nights.ledger)

    def run(self, backfill: Backfill) -> list[IntervalOutcome]:
        return list(self.running(backfill))

    def running(self, backfill: Backfill) -> Iterator[IntervalOutcome]:
        return run_intervals(backfill, self.nights.pipeline, self.nights.ledger, self.work)

    def work(self, request: RunRequest) -> RegionOutcome:
        """Each region in turn, as a run without Airflow does it."""
        if request.restore:
            self.nights.ledger.restores.ask(request.restore)
        outcomes = [
            work_on(RegionTask(request, region, f"cli/{request.run_id}", "cli"), self.nights.workplace)
            for region in stage_regions(self.nights.pipeline)
        ]
        return replace(
            outcomes[0],
            reused=sum(outcome.reused for outcome in outcomes),
            computed=sum(outcome.computed for outcome in outcomes),
        )

    def computed(self, outcomes: list[IntervalOutcome]) -> Computed:
        """What the runs of a backfill computed, as the ledger has it."""
        found: dict[tuple[str, str], set[int]] = defaultdict(set)
        for outcome in outcomes:
            for record in self.nights.ledger.partitions.of_run(outcome.run_id):
                if not record.taken_over:
                    found[outcome.interval, record.cell.stage].add(record.partition)
        return {place: frozenset(partitions) for place, partitions in found.items()}

    def forget(self, interval: str, stage: str) -> None:
        """Delete the files of a stage."""
        for record in self.nights.records(interval, stage):
            for file in record.files:
                Path(record.table, file.path).unlink(missing_ok=True)


def running(plan: BackfillPlan) -> Computed:
    """What a plan says would be computed."""
    return {
        (interval.interval, cell.stage): frozenset(cell.running)
        for interval in plan.intervals
        for cell in interval.cells
        if cell.runs
    }


def states(plan: BackfillPlan) -> dict[str, str]:
    """The first letters of the states of each interval's cells."""
    return {interval.interval: "".join(str(cell.state)[0] for cell in interval.cells) for interval in plan.intervals}


__all__ = ["PIPELINE", "STAGES", "PaperBackfill", "running", "states"]
