"""The tables of a region for one attempt: it fences them, looks through them for commits that were not recorded, and
sweeps them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from stagehold.lake.catalog_entry import unregistered
from stagehold.lake.commit.committed_waves import RECENT, Landed, committed
from stagehold.lake.commit.tokens import newest_epoch, tokens_of
from stagehold.lake.commit.wave_commit import Claim, CommittedPartition, WaveCommit
from stagehold.lake.commit.wave_verdicts import WaveVerdicts
from stagehold.lake.store.location import TableLocation, table_location
from stagehold.ledger.ledger import Ledger
from stagehold.model.partition_set import Share
from stagehold.model.records import Attempt, Cell, GateResult, Lease, PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.plan.determinism.verification import remark
from stagehold.plan.resume.waiving import as_retracted
from stagehold.run.delivery.publish import under
from stagehold.run.delivery.ruling import warn_unmet
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.lease.sweeping import Sweeper
from stagehold.run.planning.task import RegionTask


class RegionTables:
    """Tables of the stages whose output is stored."""

    def __init__(self, task: RegionTask, workplace: Workplace) -> None:
        self.task, self.workplace = task, workplace

    @property
    def stages(self) -> tuple[str, ...]:
        pipeline = self.task.pipeline
        return tuple(name for name in self.task.region.stages if pipeline.stage(name).output.stored)

    def cell(self, stage: str) -> Cell:
        return Cell(self.task.pipeline.name, self.task.pipeline.stage(stage).id, self.task.request.interval)

    def location(self, stage: str) -> TableLocation:
        task, lake = self.task, self.workplace.settings.lake_uri
        return table_location(lake, task.pipeline.name, task.pipeline.stage(stage), task.request.interval, task.share)

    def unregistered(self) -> list[tuple[str, str]]:
        """Those to register in the catalog, with their names there; a sandbox's are nobody else's business."""
        stages, settings = map(self.task.pipeline.stage, self.stages), self.workplace.settings
        return [] if settings.sandbox else unregistered(stages, settings.lake_uri)

    def waves_of(self, stage: str, attempt_id: str) -> int:
        """The highest number of a wave that the attempt has recorded for the stage."""
        newest = self.workplace.ledger.partitions.newest(self.cell(stage))
        return max((record.wave for record in newest if record.attempt_id == attempt_id), default=0)

    def rivals(self, stage: str) -> list[TableLocation]:
        """The table for attempts of other shares, as far as those shares overlap this share."""
        overlapping = self.workplace.ledger.leases.overlapping(self.task.lease_name, self.task.share)
        return [self.location(stage).of(share) for share in overlapping]

    def newest_epoch(self, share: Share | None = None) -> int:
        """The highest epoch that ever fenced or committed partitions of ``share``, in whatever cut; 0 if none did.

        The logs know it. The ledger draws epochs, and may be lost; tables are not lost with it. They include the tables
        of the other form.
        """
        pipeline = self.task.pipeline
        places = (self.location(name) for name in self.task.region.stages if pipeline.stage(name).output.may_have_table)
        return max((newest_epoch(tokens_of(place.uri), place.cell, share) for place in places), default=0)

    def fence(self, claim: Claim) -> None:
        """Fence the region's tables before anything is read, and whether or not anything is to be computed: what is
        adopted and planned cannot change after that.
        """
        for stage in self.stages:
            self.workplace.committer.fence(self.location(stage), claim, self.rivals(stage))

    def adopt(self, lease: Lease, limit: int | None = RECENT) -> None:
        """Record what earlier attempts committed and could not record.

        :param limit: how many of each table's newest commits are looked through; None for all.
        """
        for stage in self.stages:
            share, ledger = self.task.share, self.workplace.ledger
            adopted, said = adopt(self.cell(stage), self.location(stage), share, ledger, lease, limit)
            if adopted:
                which = f"{len(adopted)} partitions that an earlier attempt committed but could not record"
                self.workplace.progress(f"{stage}: adopted {which}")
                warn_unmet(self.task.request.run_id, stage, said, self.workplace)

    def sweep(self, stage: str, attempt: Attempt) -> None:
        """Delete the files of dead attempts of ``stage``, which ``attempt`` has fenced."""
        ledger, settings = self.workplace.ledger, self.workplace.settings
        swept = Sweeper(ledger, settings).sweep_behind(attempt, self.cell(stage), self.location(stage))
        if swept:
            files = sum(folder.files for folder in swept)
            self.workplace.progress(f"{stage}: deleted {files} files that dead attempts left")


ADOPTED = "adopted: committed by an attempt that died before it could record it"


def adopt(
    cell: Cell, location: TableLocation, share: Share | None, ledger: Ledger, lease: Lease, limit: int | None = RECENT
) -> tuple[Sequence[PartitionRecord], Sequence[GateResult]]:
    """Record what the table's log says is live but the ledger does not know. The commit proves that its gate passed;
    what the gate said is beside the files, and given with the records.

    Only commits newer than the ledger's record of a partition count: an older one was replaced on purpose. Commits
    count whatever share they were made for, their partitions only where they are in ``share``: others may be at work on
    the rest.

    :param limit: how many of the table's newest commits are looked through; None for all, as when the ledger was lost.
    """
    known = {record.partition: record for record in ledger.partitions.newest(cell)}
    every = committed(location, limit)
    found = [
        _remarked(as_record(cell, location.uri, landed, partition), known.get(partition.partition))
        for landed in every
        for partition in landed.commit.partitions
        if (share is None or partition.partition in share) and _is_newer(landed.commit, known.get(partition.partition))
    ]
    found += [
        _as_retracted(known[number], landed.commit)
        for landed in every
        for number in landed.commit.retracted
        if (share is None or number in share) and number in known and _is_newer(landed.commit, known[number])
    ]
    said = tuple(verdicts_beside(found))
    if found:
        with ledger.together():
            ledger.partitions.record(found, lease)
            ledger.gates.record(said)
    return found, said


def verdicts_beside(records: Iterable[PartitionRecord]) -> Iterator[GateResult]:
    """The verdicts that the waves which published these partitions left beside their files."""
    by_wave: dict[WaveVerdicts, set[tuple[Cell, int]]] = {}
    for record in records:
        by_wave.setdefault(WaveVerdicts.of(record), set()).add((record.cell, record.partition))
    for wave, places in by_wave.items():
        yield from (said for said in wave.read() if (said.cell, said.partition) in places)


def _is_newer(wave: WaveCommit, known: PartitionRecord | None) -> bool:
    return known is None or (wave.epoch, wave.wave) > (known.epoch, known.wave)


def as_record(cell: Cell, uri: str, landed: Landed, partition: CommittedPartition) -> PartitionRecord:
    """The record of a partition that the log says is live; how long it took is unknown."""
    wave = landed.commit
    return PartitionRecord(
        cell=cell,
        partition=partition.partition,
        state=PartitionState.CONSUMABLE,
        run_id=wave.run_id,
        attempt_id=wave.attempt_id,
        epoch=wave.epoch,
        wave=wave.wave,
        table=uri,
        version=landed.version,
        files=partition.files,
        rows=partition.rows,
        fingerprint=partition.fingerprint,
        compute_key=partition.compute_key,
        recorded_at=datetime.now(UTC),
        reason=f"{wave.note}; {ADOPTED}" if wave.note else ADOPTED,  # the note may say where it was taken over from
        kept=partition.kept,
        judged=partition.judged,
        refused=partition.refused,
        counted=partition.counted,
    )


def _as_retracted(known: PartitionRecord, wave: WaveCommit) -> PartitionRecord:
    """The record of a partition that the wave took out of its table. If the ledger has no record of a partition, there
    is nothing to record: it is in no table.
    """
    return replace(under(wave, as_retracted(known)), reason=wave.note)


def _remarked(record: PartitionRecord, before: PartitionRecord | None) -> PartitionRecord:
    odd = remark(before, compute_key=record.compute_key, fingerprint=record.fingerprint, healed=False)
    return replace(record, reason=f"{odd}; {ADOPTED}", unexplained=True) if odd else record
