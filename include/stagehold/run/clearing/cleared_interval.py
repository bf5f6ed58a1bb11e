"""The place of clearing: one interval of a pipeline, and the leases of processes that could read or write there."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from stagehold.lake.store.location import TableLocation, table_location
from stagehold.ledger.leases import Heartbeat
from stagehold.ledger.ledger import Ledger
from stagehold.model.choices import Pin
from stagehold.model.records import Cell, PartitionRecord
from stagehold.plan.garbage import Why
from stagehold.plan.split.regions import Region, stage_regions
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.lease.leasing import kept_alive, take_lease
from stagehold.run.planning.planning import RunRequest, counted, in_its_form
from stagehold.run.planning.task import RegionTask
from stagehold.spec.pipeline import Pipeline, Stage

LAUNCHER = "gc"


@dataclass(frozen=True)
class Cleared:
    """Data that was deleted, or would be: of a stage, or files of dead attempts of a region; of the whole interval if
    ``stage`` is empty.
    """

    pipeline: str
    interval: str
    stage: str
    why: Why
    files: int
    bytes: int


class ClearedInterval:
    """An interval to clear; ``request`` has the pipeline in the form that its attempts have."""

    def __init__(self, request: RunRequest, workplace: Workplace) -> None:
        self.request, self.workplace = request, workplace

    @staticmethod
    def of(pipeline: Pipeline, interval: str, workplace: Workplace) -> ClearedInterval:
        run_id = f"{pipeline.name}/{LAUNCHER}__{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}"
        request = in_its_form(RunRequest(pipeline, run_id, interval, pipeline.params), workplace.ledger)
        return ClearedInterval(replace(request, pipeline=counted(request, workplace.ledger).pipeline), workplace)

    @property
    def ledger(self) -> Ledger:
        return self.workplace.ledger

    @property
    def pipeline(self) -> Pipeline:
        return self.request.pipeline

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Stages that may have a table."""
        return tuple(stage for stage in self.pipeline.stages if stage.output.may_have_table)

    @property
    def pin(self) -> Pin | None:
        """The pin that keeps its outputs now, if there is one."""
        interval = self.request.interval
        return self.ledger.pins.holding(self.pipeline.name, [interval]).get(interval)

    def __str__(self) -> str:
        return f"{self.pipeline.name} {self.request.interval}"

    def cleared(self, stage: str, why: Why, files: int, size: int) -> Cleared:
        return Cleared(self.pipeline.name, self.request.interval, stage, why, files, size)

    def cell(self, stage: Stage) -> Cell:
        return Cell(self.pipeline.name, stage.id, self.request.interval)

    def location(self, stage: Stage) -> TableLocation:
        return table_location(self.workplace.settings.lake_uri, self.pipeline.name, stage, self.request.interval)

    def recorded(self) -> Mapping[str, tuple[PartitionRecord, ...]]:
        """The newest records by stage name."""
        by_id = self.ledger.partitions.newest_of(self.pipeline.name, self.request.interval)
        return {stage.name: by_id[stage.id] for stage in self.pipeline.stages if stage.id in by_id}

    @contextmanager
    def held(self, stages: Collection[str]) -> Iterator[Mapping[str, Heartbeat]]:
        """Keep all others from computing or reading these stages inside the block. Returns the leases by stage, of all
        whose regions are held.

        This waits for nobody; a process that comes meanwhile waits.

        :raises LeaseHeld: a process is at work.
        """
        with ExitStack() as stack:
            hearts: dict[str, Heartbeat] = {}
            for region in self._concerned(stages):
                lease = take_lease(self.task(region), self.workplace)
                heart = stack.enter_context(kept_alive(lease, self.workplace))
                hearts |= dict.fromkeys(region.stages, heart)
            yield hearts

    def task(self, region: Region) -> RegionTask:
        """The task of a region, for work that is done in place of an attempt."""
        return RegionTask(self.request, region, owner=f"{LAUNCHER}/{self.request.run_id}", launcher=LAUNCHER)

    def _concerned(self, stages: Collection[str]) -> Iterator[Region]:
        """Regions that make or read one of these stages."""
        for region in stage_regions(self.pipeline):
            reads = {edge.stage for name in region.stages for edge in self.pipeline.stage(name).inputs}
            if not {*region.stages, *reads}.isdisjoint(stages):
                yield region
