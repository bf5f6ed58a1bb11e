"""The tables of a region as one attempt sees them: fenced, looked through for what is not recorded, swept."""

from __future__ import annotations

from dataclasses import dataclass

from stagehold.lake.commit.committed import RECENT
from stagehold.lake.commit.log_tokens import newest_epoch, tokens_of
from stagehold.lake.commit.wave_commit import Claim
from stagehold.lake.store.location import TableLocation, table_location
from stagehold.model.records import Attempt, Cell, Lease
from stagehold.model.share import Share
from stagehold.run.delivery.ruling import warn_unmet
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.lease.adoption import adopt
from stagehold.run.lease.sweeping import sweep_behind
from stagehold.run.planning.task import RegionTask


@dataclass(frozen=True)
class RegionTables:
    """Those of the stages whose output is stored."""

    task: RegionTask
    workplace: Workplace

    @property
    def stages(self) -> tuple[str, ...]:
        pipeline = self.task.pipeline
        return tuple(name for name in self.task.region.stages if pipeline.stage(name).output.stored)

    def cell(self, stage: str) -> Cell:
        return Cell(self.task.pipeline.name, self.task.pipeline.stage(stage).id, self.task.request.interval)

    def location(self, stage: str) -> TableLocation:
        task, lake = self.task, self.workplace.settings.lake_uri
        return table_location(lake, task.pipeline.name, task.pipeline.stage(stage), task.request.interval, task.share)

    def waves_of(self, stage: str, attempt_id: str) -> int:
        """The highest number of a wave that the attempt has recorded of the stage."""
        newest = self.workplace.ledger.partitions.newest(self.cell(stage))
        return max((one.wave for one in newest if one.attempt_id == attempt_id), default=0)

    def rivals(self, stage: str) -> list[TableLocation]:
        """The same table as attempts of other shares know it, as far as those overlap this one."""
        overlapping = self.workplace.ledger.leases.overlapping(self.task.lease_name, self.task.share)
        return [self.location(stage).of(share) for share in overlapping]

    def newest_epoch(self, share: Share | None = None) -> int:
        """The highest epoch that ever fenced or committed partitions of ``share``, in whatever cut; 0 if none did.

        The logs know it: the ledger draws epochs, and may be lost; tables are not lost with it. They include those of
        the other form.
        """
        pipeline = self.task.pipeline
        places = (self.location(name) for name in self.task.region.stages if pipeline.stage(name).output.may_have_table)
        return max((newest_epoch(tokens_of(place.uri), place.cell, share) for place in places), default=0)

    def fence(self, claim: Claim) -> None:
        """Before anything is looked at, and whether or not anything is to be computed:
        what is adopted and planned stays as it is.
        """
        for stage in self.stages:
            self.workplace.committer.fence(self.location(stage), claim, self.rivals(stage))

    def adopt(self, lease: Lease, limit: int | None = RECENT) -> None:
        """Record what earlier attempts committed and could not record.

        :param limit: how many of each table's newest commits are looked through; None for all.
        """
        for stage in self.stages:
            share, ledger = self.task.share, self.workplace.ledger
            adopted = adopt(self.cell(stage), self.location(stage), share, ledger, lease, limit)
            if adopted.records:
                which = f"{len(adopted.records)} partitions that an earlier attempt committed but could not record"
                self.workplace.progress(f"{stage}: adopted {which}")
                warn_unmet(self.task.request.run_id, stage, adopted.said, self.workplace)

    def sweep(self, stage: str, attempt: Attempt) -> None:
        """Delete what dead attempts left of ``stage``, which ``attempt`` has fenced."""
        ledger, settings = self.workplace.ledger, self.workplace.settings
        swept = sweep_behind(attempt, self.cell(stage), self.location(stage), ledger, settings)
        if swept:
            files = sum(one.files for one in swept)
            self.workplace.progress(f"{stage}: deleted {files} files that dead attempts left")
