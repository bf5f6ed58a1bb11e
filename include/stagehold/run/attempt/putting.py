"""Puts what a run takes over from a checkpoint or savepoint where its interval has its data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from stagehold.lake.commit.staging import DATA_FOLDER
from stagehold.lake.commit.wave_commit import Claim, CommittedPartition, WaveCommit
from stagehold.lake.commit.wave_verdicts import WaveVerdicts
from stagehold.lake.copying import copied_for
from stagehold.lake.published import files_of_snapshot, live_files
from stagehold.lake.read import table_schema
from stagehold.lake.store.location import TableLocation
from stagehold.lake.tables import ensure_table
from stagehold.ledger.heartbeat import Heartbeat
from stagehold.model.records import Attempt, GateResult, PartitionRecord, PartitionState
from stagehold.model.source_position import SourcePosition
from stagehold.plan.resume.decisions import Decision
from stagehold.run.lease.tables import RegionTables
from stagehold.run.planning.snapshots import BeginsWith
from stagehold.spec.pipeline import Stage

WAVE = 1  # of the attempt in its stage; the waves that are computed come after it


@dataclass(frozen=True)
class Putting:
    """For one attempt, under its lease. What was put counts as the run's own from then on: nobody puts it twice."""

    begins_with: BeginsWith
    tables: RegionTables
    attempt: Attempt
    heartbeat: Heartbeat

    def put(self, stage: Stage, decisions: Sequence[Decision], positions: tuple[SourcePosition, ...]) -> int:
        """Have the interval begin with what these decisions say it takes over; gives the number of partitions.

        What lies in the stage's own table of this interval already is recorded again, and nothing is copied; likewise
        what a published table has just so, and, in a sandbox, what production keeps to itself. All else is published in
        one commit, after it was copied if need be.

        :param positions: of the incremental sources that the rows are made from, which each commit tells.
        """
        taken = [one.record for one in decisions if one.restored and one.record and not one.action.computes]
        if not taken:
            return 0
        location, place = self.tables.location(stage.name), self.tables.workplace
        lacking = self._lacking(stage, [one for one in taken if one.state is PartitionState.CONSUMABLE])
        now = datetime.now(UTC)
        results = self._results(stage, taken, now)
        again = self._published(stage, lacking, results, positions) if lacking else {}
        again |= {one.partition: self._apart(stage, one) for one in taken if one.state.kept_back}
        records = [self._as_ours(again.get(one.partition, one), now) for one in taken]
        with place.ledger.together():
            place.ledger.partitions.record(records, self.heartbeat.lease)
            place.ledger.gates.record(results)
        if lacking and results:
            self._verdicts(location).forget()
        place.progress(f"{stage.name}: {len(records)} partitions from {self.begins_with.name} ({location.uri})")
        return len(records)

    def _apart(self, stage: Stage, record: PartitionRecord) -> PartitionRecord:
        """What nobody may read yet. What another interval had published of it is not published here; and two intervals
        of one table must not have a file in common, which replacing the one would take from the other.
        """
        if self.begins_with.is_of_this_interval:
            return record
        uri = self.tables.location(stage.name).uri
        shared = stage.output.table is not None and record.table == uri
        mine = copied_for(record, uri, self.attempt.attempt_id) if shared else record
        return replace(mine, version=None)

    def _lacking(self, stage: Stage, records: Sequence[PartitionRecord]) -> list[PartitionRecord]:
        """Those that the table does not have as they are."""
        if stage.output.table is None:
            return [one for one in records if not (self._is_here(stage, one) or self._is_of_production(one))]
        live = live_files(self.tables.location(stage.name).uri, self.begins_with.interval) or {}
        return [one for one in records if {file.path for file in one.files} != live.get(one.partition, frozenset())]

    def _is_here(self, stage: Stage, record: PartitionRecord) -> bool:
        """A published table is that of all intervals, so a file of another one is copied as well."""
        own = record.table == self.tables.location(stage.name).uri and self.begins_with.is_of_this_interval
        return own and _is_staged(record)

    def _is_of_production(self, record: PartitionRecord) -> bool:
        """A sandbox reads such files where they lie; only what was copied for a savepoint has to be copied again, since
        files outside of `_data/` go with that.
        """
        return self.tables.workplace.settings.reads_only(record.table) and _is_staged(record)

    def _published(
        self,
        stage: Stage,
        records: Sequence[PartitionRecord],
        results: Sequence[GateResult],
        positions: tuple[SourcePosition, ...],
    ) -> dict[int, PartitionRecord]:
        location, committer = self.tables.location(stage.name), self.tables.workplace.committer
        claim = Claim(self.attempt.epoch, self.attempt.attempt_id)
        # One commit must not take out a file and put it back: readers do not agree on what that leaves.
        live = files_of_snapshot(location.uri)
        by_reference = {
            one.partition: self._is_here(stage, one) and live.isdisjoint(file.path for file in one.files)
            for one in records
        }
        copies = [
            one if by_reference[one.partition] else copied_for(one, location.uri, self.attempt.attempt_id)
            for one in records
        ]
        schema = table_schema(max(records, key=lambda one: one.version or 0))
        ensure_table(location, schema, claim, stage.output, as_recorded=True)
        committer.fence(location, claim, self.tables.rivals(stage.name))
        published = {one.partition for one in records}
        kept = [one for one in results if one.partition in published]
        self._verdicts(location).keep(self.tables.workplace.ledger.gates.as_stored(kept))
        self.heartbeat.check()
        landed = committer.publish(location, replace(self._commit(stage, copies), positions=positions))
        return {one.partition: replace(one, table=location.uri, version=landed.version) for one in copies}

    def _commit(self, stage: Stage, records: Sequence[PartitionRecord]) -> WaveCommit:
        return WaveCommit(
            run_id=self.attempt.run_id,
            stage=stage.id,
            attempt_id=self.attempt.attempt_id,
            epoch=self.attempt.epoch,
            wave=WAVE,
            partitions=tuple(map(CommittedPartition.of, records)),
            cut_into=stage.partitions,
            note=f"from {self.begins_with.name}",
        )

    def _as_ours(self, record: PartitionRecord, now: datetime) -> PartitionRecord:
        return replace(
            record,
            run_id=self.attempt.run_id,
            attempt_id=self.attempt.attempt_id,
            epoch=self.attempt.epoch,
            wave=WAVE,
            recorded_at=now,
            reason=f"from {self.begins_with.name}",
        )

    def _results(self, stage: Stage, taken: Sequence[PartitionRecord], now: datetime) -> list[GateResult]:
        """What gates said of it, as of this attempt."""
        cells = {one.partition: one.cell for one in taken}
        return [
            replace(one, cell=cells[one.partition], attempt_id=self.attempt.attempt_id, recorded_at=now)
            for one in self.begins_with.verdicts(stage)
            if one.partition in cells
        ]

    def _verdicts(self, location: TableLocation) -> WaveVerdicts:
        return WaveVerdicts(location.uri, self.attempt.attempt_id, WAVE)


def _is_staged(record: PartitionRecord) -> bool:
    return all(file.path.startswith(f"{DATA_FOLDER}/") for file in record.files)
