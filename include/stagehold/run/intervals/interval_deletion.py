"""Takes an interval out: its rows leave the published tables, its files go, and a later run of it computes it again.

What happened stays on record. What it took of incremental sources it keeps, so a run of it takes the same once more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from stagehold.checkpoints.releasing import as_released
from stagehold.errors import CommitterRefused, IntervalNeeded, IntervalPinned, UnknownName
from stagehold.lake.available import present_files
from stagehold.lake.checkpoints.savepoints import Savepoints
from stagehold.lake.commit.staged_committer import StagedCommitter
from stagehold.lake.commit.wave_commit import Claim, WaveCommit
from stagehold.lake.published import shows_rows
from stagehold.lake.quarantine import quarantine_uri, take_out_quarantined
from stagehold.lake.store.location import OBJECT_STORE
from stagehold.ledger.leases import Heartbeat
from stagehold.model.records import Cell, Event
from stagehold.plan.split.regions import Region, stage_regions
from stagehold.run.clearing.cleared_interval import Cleared, ClearedInterval
from stagehold.run.clearing.interval_garbage import AgeLimits, IntervalCheckpoints, delete_garbage
from stagehold.run.delivery.publish import Publication, publish
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.faults import ClearingPoint
from stagehold.run.lease.region_tables import RegionTables
from stagehold.run.planning.earlier_states import later_intervals
from stagehold.spec.pipeline import Pipeline, Stage
from stagehold.spec.settings.output_settings import CommitterKind

WAVE = 1  # of the commit that takes rows out of a published table
DELETED = "deleted"  # the kind of the event that says who took the interval out


@dataclass(frozen=True)
class DeletedStage:
    """What goes of a stage; ``table`` is the published one that loses ``rows``, if any."""

    stage: str
    table: str | None
    partitions: int
    rows: int
    files: int
    bytes: int


@dataclass(frozen=True)
class AnnouncedDeletion:
    """What goes of an interval. Files that ``savepoints`` need are counted, and stay until those are disposed of."""

    interval: str
    stages: tuple[DeletedStage, ...]
    savepoints: tuple[str, ...]

    @property
    def bytes(self) -> int:
        return sum(stage.bytes for stage in self.stages)


class IntervalDeletion:
    """``who`` deletes the interval of ``place``, and ``why``."""

    def __init__(self, place: ClearedInterval, who: str, why: str = "") -> None:
        self.place, self.who, self.why = place, who, why

    @staticmethod
    def of(pipeline: Pipeline, interval: str, workplace: Workplace, who: str, why: str = "") -> IntervalDeletion:
        """:raises UnknownName: nothing is on record of the interval."""
        if not workplace.ledger.partitions.newest_of(pipeline.name, interval):
            known = workplace.ledger.partitions.intervals(pipeline.name, 10)
            raise UnknownName("interval on record", interval, known)
        return IntervalDeletion(ClearedInterval.of(pipeline, interval, workplace), who, why)

    def announced(self) -> AnnouncedDeletion:
        """What `carry_out` would take away."""
        every = Savepoints(self.place.workplace.settings.lake_uri).all()
        mine = (self.place.pipeline.name, self.place.request.interval)
        names = tuple(savepoint.name for savepoint in every if (savepoint.pipeline, savepoint.interval) == mine)
        return AnnouncedDeletion(self.place.request.interval, tuple(self._stages()), names)

    def refuse(self, together: Sequence[str] = ()) -> None:
        """:param together: intervals that are deleted before this one.

        :raises IntervalPinned: somebody pinned it.
        :raises IntervalNeeded: a later interval goes on with what this one keeps.
        :raises CommitterRefused: a commit of ours could get lost in a table.
        """
        own = self.place.request.interval
        self._refuse_pinned()
        for stage in self.place.pipeline.stages:
            later = later_intervals(self.place.pipeline, stage, own, self.place.ledger) if stage.state else ()
            needing = [interval for interval in later if interval not in together and self._is_there(stage, interval)]
            if needing:
                raise IntervalNeeded(self.place.pipeline.name, own, stage.name, needing)
            by_spark = stage.output.committer is CommitterKind.DELTA_SPARK
            if by_spark and stage.output.table and self.place.location(stage).uri.startswith(OBJECT_STORE):
                raise CommitterRefused(stage.name, self.place.location(stage).uri)

    def carry_out(self) -> tuple[Cleared, ...]:
        """Gives what was deleted. It may be repeated after a crash: rows leave their tables first, so whatever is left
        is still on record, and a run would compute again what is gone.

        :raises IntervalPinned: somebody has pinned it meanwhile.
        :raises LeaseHeld: somebody works on the interval.
        :raises CheckpointCorrupt: nobody knows what a checkpoint needs; rows are gone then, and files stay.
        """
        place, names = self.place, {stage.name for stage in self.place.stages}
        with place.held(names) as hearts:
            self._refuse_pinned()
            dropped = IntervalCheckpoints(place).drop_all()
            regions = stage_regions(place.pipeline)
            for region in regions:
                self._fence(region, hearts)
                self._take_out(region, hearts, own=False)
                self._take_out_quarantined(region)
            place.workplace.faults.reach(ClearingPoint.TAKEN_OUT, place.pipeline.name)
            self._record(hearts)
            for region in regions:  # now, since who comes after a crash before that reuses what is on record
                self._take_out(region, hearts, own=True)
            return (*dropped, *delete_garbage(place, names, hearts, AgeLimits(datetime.now(UTC))))

    def _refuse_pinned(self) -> None:
        if pin := self.place.pin:
            raise IntervalPinned(pin.pipeline, pin.interval, str(pin))

    def _fence(self, region: Region, hearts: Mapping[str, Heartbeat]) -> None:
        """Keep out attempts that still think that the region is theirs."""
        tables = RegionTables(self.place.task(region), self.place.workplace)
        for stage in self._stages_of(region):
            hearts[stage.name].check()
            StagedCommitter().fence(tables.location(stage.name), self._claim(stage, hearts), tables.rivals(stage.name))

    def _take_out(self, region: Region, hearts: Mapping[str, Heartbeat], *, own: bool) -> None:
        """Take the rows out of tables that stages own, or of published ones."""
        tables = RegionTables(self.place.task(region), self.place.workplace)
        for stage in self._stages_of(region):
            location = tables.location(stage.name)
            if (stage.output.table is None) == own and shows_rows(location.uri, location.interval):
                hearts[stage.name].check()
                nothing = self._nothing(stage, self._claim(stage, hearts))
                what = Publication(stage.name, location, WAVE, nothing)
                publish(what, lambda _: (), StagedCommitter(), hearts[stage.name], self.place.workplace)

    def _stages_of(self, region: Region) -> Iterator[Stage]:
        return (stage for stage in self.place.stages if stage.name in region.stages)

    def _claim(self, stage: Stage, hearts: Mapping[str, Heartbeat]) -> Claim:
        lease = hearts[stage.name].lease
        return Claim(lease.epoch, f"{self.place.request.run_id}/{lease.name.rpartition('/')[2]}")

    def _take_out_quarantined(self, region: Region) -> None:
        lake = self.place.workplace.settings.lake_uri
        for stage in self._stages_of(region):
            uri = quarantine_uri(lake, self.place.pipeline.name, stage)
            take_out_quarantined(uri, self.place.request.interval)

    def _nothing(self, stage: Stage, claim: Claim) -> WaveCommit:
        """A wave after which the stage has no partitions; the ledger is told when all tables have lost theirs."""
        note = f"{self.who} deleted {self.place.request.interval}{f': {self.why}' if self.why else ''}"
        return WaveCommit(
            run_id=self.place.request.run_id,
            stage=stage.id,
            attempt_id=claim.attempt_id,
            epoch=claim.epoch,
            wave=WAVE,
            partitions=(),
            cut_into=0,
            note=note,
        )

    def _record(self, hearts: Mapping[str, Heartbeat]) -> None:
        now, ledger = datetime.now(UTC), self.place.ledger
        with ledger.together():
            for stage, records in self.place.recorded().items():
                there = [record for record in records if record.state.keeps_files]
                ledger.partitions.record([as_released(record, now) for record in there], hearts[stage].lease)
            newest = ledger.runs.newest(self.place.pipeline.name, self.place.request.interval)
            if newest:
                text = f"{self.who} deleted the interval{f': {self.why}' if self.why else ''}"
                ledger.events.append(Event(newest.run_id, DELETED, self.place.request.interval, text, now))

    def _stages(self) -> Iterator[DeletedStage]:
        recorded = self.place.recorded()
        for stage in self.place.stages:
            there = [record for record in recorded.get(stage.name, ()) if record.state.keeps_files]
            history = self.place.ledger.partitions.history(self.place.cell(stage))
            paths = (file.path for record in history for file in record.all_files)
            present = present_files(self.place.location(stage).uri, paths)
            if there or present:
                yield DeletedStage(
                    stage=stage.name,
                    table=stage.output.table,
                    partitions=len(there),
                    rows=sum(record.rows for record in there),
                    files=len(present),
                    bytes=sum(present.values()),
                )

    def _is_there(self, stage: Stage, interval: str) -> bool:
        newest = self.place.ledger.partitions.newest(Cell(self.place.pipeline.name, stage.id, interval))
        return any(record.state.readable for record in newest)
