"""Puts the data that a run takes over from a checkpoint or savepoint in the place where its interval has its data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from stagehold.lake.commit.committed_waves import Landed
from stagehold.lake.commit.staging import DATA_FOLDER
from stagehold.lake.commit.wave_commit import Claim, CommittedPartition, WaveCommit
from stagehold.lake.copying import copied_for
from stagehold.lake.published import files_of_snapshot, live_files
from stagehold.lake.read import table_schema
from stagehold.lake.tables import ensure_table
from stagehold.ledger.leases import Heartbeat
from stagehold.model.records import Attempt, GateResult, PartitionRecord
from stagehold.model.source_position import SourcePosition
from stagehold.plan.resume.decisions import Decision
from stagehold.run.delivery.publish import Publication, as_landed, publish, under
from stagehold.run.lease.region_tables import RegionTables
from stagehold.run.planning.snapshots import BeginsWith
from stagehold.spec.pipeline import Stage

WAVE = 1  # the first wave of the attempt in its stage; computed waves come after it


class RestoredData:
    """What one attempt takes over, under its lease. Data that was put in place counts as the run's own from then on: it
    is not put there twice.
    """

    def __init__(self, begins_with: BeginsWith, tables: RegionTables, attempt: Attempt, heartbeat: Heartbeat) -> None:
        self.begins_with, self.tables, self.attempt, self.heartbeat = begins_with, tables, attempt, heartbeat

    def put(self, stage: Stage, decisions: Sequence[Decision], positions: tuple[SourcePosition, ...]) -> int:
        """Have the interval begin with the partitions that these decisions take over; return their number.

        Files that are already in the stage's own table of this interval are recorded again, and nothing is copied. The
        same goes for partitions that a published table has just like that and, in a sandbox, for files that production
        keeps. All others are published in one commit, after their files were copied if need be.

        :param positions: positions of the incremental sources that the rows are made from, which each commit has.
        """
        taken = [
            decision.record
            for decision in decisions
            if decision.restored and decision.record and not decision.action.computes
        ]
        if not taken:
            return 0
        location, place, name = self.tables.location(stage.name), self.tables.workplace, self.begins_with.name
        lacking = self._lacking(stage, [record for record in taken if record.state.readable])
        here = {record.partition: record for record in (self._brought(stage, lacking) if lacking else ())}
        apart = {record.partition: self._apart(stage, record) for record in taken if record.state.kept_back}
        commit = WaveCommit(
            run_id=self.attempt.run_id,
            stage=stage.id,
            attempt_id=self.attempt.attempt_id,
            epoch=self.attempt.epoch,
            wave=WAVE,
            partitions=tuple(map(CommittedPartition.of, here.values())),
            cut_into=stage.partitions,
            positions=positions,
            note=f"from {name}",
        )

        def recorded(landed: Landed | None) -> list[PartitionRecord]:
            put = {number: as_landed(record, location, landed) for number, record in here.items()} if landed else {}
            again = put | apart
            return [replace(under(commit, again.get(record.partition, record)), reason=commit.note) for record in taken]

        what = Publication(stage.name, location, WAVE, commit if here else None, self._results(stage, taken))
        publish(what, recorded, place.committer, self.heartbeat, place)
        place.progress(f"{stage.name}: {len(taken)} partitions from {name} ({location.uri})")
        return len(taken)

    def _apart(self, stage: Stage, record: PartitionRecord) -> PartitionRecord:
        """The partitions that may not be read yet. Those that another interval had published are not published here.
        Two intervals of one table must not share a file: replacing one interval would take the file from the other.
        """
        if self.begins_with.is_of_this_interval:
            return record
        uri = self.tables.location(stage.name).uri
        shared = stage.output.table is not None and record.table == uri
        mine = copied_for(record, uri, self.attempt.attempt_id) if shared else record
        return replace(mine, version=None)

    def _lacking(self, stage: Stage, records: Sequence[PartitionRecord]) -> list[PartitionRecord]:
        """Records of partitions that the table does not have as they are."""
        if stage.output.table is None:
            return [
                record for record in records if not (self._is_here(stage, record) or self._is_of_production(record))
            ]
        live = live_files(self.tables.location(stage.name).uri, self.begins_with.interval) or {}
        return [
            record
            for record in records
            if {file.path for file in record.files} != live.get(record.partition, frozenset())
        ]

    def _is_here(self, stage: Stage, record: PartitionRecord) -> bool:
        """Whether the file belongs to this interval. A published table is that of all intervals, so a file of another
        interval is copied.
        """
        own = record.table == self.tables.location(stage.name).uri and self.begins_with.is_of_this_interval
        return own and _is_staged(record)

    def _is_of_production(self, record: PartitionRecord) -> bool:
        """Whether a sandbox reads the file where it is. Only files that were copied for a savepoint have to be copied
        again, since files outside of `_data/` are deleted with it.
        """
        return self.tables.workplace.settings.reads_only(record.table) and _is_staged(record)

    def _brought(self, stage: Stage, records: Sequence[PartitionRecord]) -> list[PartitionRecord]:
        """The records with their files in the stage's table, which is made and fenced, so that one commit can refer to
        all of them.
        """
        location, committer = self.tables.location(stage.name), self.tables.workplace.committer
        claim = Claim(self.attempt.epoch, self.attempt.attempt_id)
        # One commit must not remove a file and add it again: readers do not agree on what that means.
        live = files_of_snapshot(location.uri)
        by_reference = {
            record.partition: self._is_here(stage, record) and live.isdisjoint(file.path for file in record.files)
            for record in records
        }
        copies = [
            record if by_reference[record.partition] else copied_for(record, location.uri, self.attempt.attempt_id)
            for record in records
        ]
        schema = table_schema(max(records, key=lambda record: record.version or 0))
        ensure_table(location, schema, claim, stage.output, as_recorded=True)
        committer.fence(location, claim, self.tables.rivals(stage.name))
        return copies

    def _results(self, stage: Stage, taken: Sequence[PartitionRecord]) -> list[GateResult]:
        """The verdicts on the partitions, as records of this attempt."""
        now = datetime.now(UTC)
        cells = {record.partition: record.cell for record in taken}
        return [
            replace(result, cell=cells[result.partition], attempt_id=self.attempt.attempt_id, recorded_at=now)
            for result in self.begins_with.verdicts(stage)
            if result.partition in cells
        ]


def _is_staged(record: PartitionRecord) -> bool:
    return all(file.path.startswith(f"{DATA_FOLDER}/") for file in record.files)
