"""Has recorded partitions judged by the gate that their stage has now, and computes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from stagehold.errors import PartitionDataMissing, StageholdError
from stagehold.gates.judge import Measured
from stagehold.gates.verdicts import GateVerdict
from stagehold.lake.commit.committer import Committer
from stagehold.lake.commit.wave_commit import CommittedPartition, WaveCommit
from stagehold.lake.commit.wave_verdicts import WaveVerdicts
from stagehold.lake.copying import copied_for
from stagehold.lake.measure import PartitionMetrics
from stagehold.model.records import GateResult, PartitionRecord, PartitionState
from stagehold.plan.determinism.verification import as_damaged, same_content
from stagehold.plan.resume.decisions import Decision
from stagehold.run.delivery.comparison import mismatches
from stagehold.run.delivery.publisher import Publisher, PublishRight
from stagehold.run.delivery.ruling import Rulings, results, unmet, unmet_on_record, warn
from stagehold.run.delivery.setting_aside import as_blocking
from stagehold.run.delivery.wave import StageTask
from stagehold.run.equipment.engine import Session
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.faults import Point
from stagehold.spark.session.sessions import translate


@dataclass(frozen=True)
class JudgingAgain:
    """Of one stage, in one attempt.

    A partition that no longer passes is blocked from then on: nothing of ours reads it. What was published of it stays
    in its table, for whoever reads that, until it is computed again. One that was blocked and passes now is published.
    """

    task: StageTask
    session: Session
    publisher: Publisher
    committer: Committer
    workplace: Workplace

    def judge(self, decisions: Sequence[Decision], wave: int) -> Mapping[int, str]:
        """Publish what passes and was not published, and record them all; gives those that do not pass, and why.

        :raises GateErrored: it cannot judge them.
        :raises PartitionDataMissing: some are not what was recorded; that is on record, nothing else happened.
        """
        recorded = [decision.record for decision in decisions if decision.record is not None]
        judged = [one for one in recorded if self._is_judged(one)]
        measured = self._measured([one for one in recorded if not self._is_judged(one)])
        right = self.publisher.right_to(self.task.stage.name, decisions)
        records = [one for one in recorded if one.partition in right.partitions]
        self._refuse_damaged([one for one in records if not self._is_judged(one)], measured, right)
        verdicts = [one for one in measured.verdicts if one.partition in right.partitions]
        rulings = self._rulings(records, verdicts, judged)
        ruled = [replace(one, refused=rulings.of_partition(one.partition).refused) for one in records]
        lacking = [one for one in ruled if one.partition not in rulings.blocked and self._lacks(one)]
        said = results(self.task, verdicts, datetime.now(UTC))
        published = self._publish(lacking, said, right, wave) if lacking else {}
        self._record([published.get(one.partition, one) for one in ruled], said, rulings, right, wave)
        if published:
            self._verdicts_of(wave).forget()
        self._tell(records, rulings)
        warn(self.task, verdicts, rulings, self.workplace)
        return rulings.blocked

    def _lacks(self, record: PartitionRecord) -> bool:
        """Whether it has to be published if it passes; where all are judged together, that comes later."""
        return record.version is None and self.task.whole is None

    def _is_judged(self, record: PartitionRecord) -> bool:
        """By this very suite: then a waiver began or ended, and nothing is read. What is held has passed it."""
        kept_back = bool(record.refused) or record.state is PartitionState.HELD
        return record.judged == self.task.judge and kept_back

    def _rulings(
        self, records: Sequence[PartitionRecord], verdicts: Sequence[GateVerdict], judged: Sequence[PartitionRecord]
    ) -> Rulings:
        failures = self.workplace.ledger.gates.failures(self.task.cell) if judged else ()
        refused = {**unmet_on_record(judged, failures), **unmet(verdicts)}
        fingerprints = {one.partition: one.fingerprint for one in records}
        return Rulings.of({one: some for one, some in refused.items() if one in fingerprints}, fingerprints, self.task)

    def _measured(self, records: Sequence[PartitionRecord]) -> Measured:
        """What the gate says of them; without a gate nothing is read. Nothing of what cannot be read."""
        if self.task.suite is None or not records:
            return _as_recorded(records)
        try:
            measured = self.session.judge(records, self.task.suite)
            return replace(measured, verdicts=tuple(as_blocking(one, self.task.suite) for one in measured.verdicts))
        except StageholdError:
            raise
        except Exception as error:
            unreadable = mismatches(records, self.session) if translate(error) is None else []
            if not unreadable:
                raise
            found = {one.record.partition for one in unreadable}
            return _as_recorded([one for one in records if one.partition not in found])

    def _refuse_damaged(self, records: Sequence[PartitionRecord], measured: Measured, right: PublishRight) -> None:
        found = {one.partition: one.fingerprint for one in measured.metrics}
        damaged = [
            one
            for one in records
            if one.partition not in found or not same_content(one.fingerprint, found[one.partition])
        ]
        if damaged:
            now = datetime.now(UTC)
            self.workplace.ledger.partitions.record([as_damaged(one, now) for one in damaged], right.heartbeat.lease)
            raise PartitionDataMissing(self.task.stage.name, [one.partition for one in damaged])

    def _record(
        self,
        records: Sequence[PartitionRecord],
        said: Sequence[GateResult],
        rulings: Rulings,
        right: PublishRight,
        wave: int,
    ) -> None:
        now, ledger = datetime.now(UTC), self.workplace.ledger
        judged = [
            replace(
                one,
                state=rulings.of_partition(one.partition).state_in(self.task, published=one.version is not None),
                run_id=self.task.attempt.run_id,
                attempt_id=self.task.attempt.attempt_id,
                epoch=right.attempt.epoch,
                wave=wave,
                recorded_at=now,
                reason=rulings.of_partition(one.partition).reason,
                judged=self.task.judge,
            )
            for one in records
        ]
        with ledger.together():
            ledger.partitions.record(judged, right.heartbeat.lease)
            ledger.gates.record(said)

    def _verdicts_of(self, wave: int) -> WaveVerdicts:
        return WaveVerdicts(self.task.location.uri, self.task.attempt.attempt_id, wave)

    def _publish(
        self, records: Sequence[PartitionRecord], said: Sequence[GateResult], right: PublishRight, wave: int
    ) -> Mapping[int, PartitionRecord]:
        """Files of another table, of which a run begins with refused data, are copied into the stage's own."""
        location, attempt_id = self.task.location, self.task.attempt.attempt_id
        lacking = {one.partition for one in records}
        kept = [one for one in said if one.partition in lacking]
        self._verdicts_of(wave).keep(self.workplace.ledger.gates.as_stored(kept))
        self.workplace.faults.reach(Point.BEFORE_PUBLISH, self.task.stage.name, wave)
        right.heartbeat.check()
        here = [one if one.table == location.uri else copied_for(one, location.uri, attempt_id) for one in records]
        commit = WaveCommit(
            run_id=self.task.attempt.run_id,
            stage=self.task.stage.id,
            attempt_id=attempt_id,
            epoch=right.attempt.epoch,
            wave=wave,
            partitions=tuple(CommittedPartition.of(replace(one, judged=self.task.judge)) for one in here),
            cut_into=self.task.stage.partitions,
            positions=self.task.positions,
            note="judged again",
        )
        landed = self.committer.publish(location, commit)
        self.workplace.faults.reach(Point.AFTER_PUBLISH, self.task.stage.name, wave)
        return {
            one.partition: replace(
                one, table=location.uri, version=landed.version, files=landed.files.get(one.partition, one.files)
            )
            for one in here
        }

    def _tell(self, records: Sequence[PartitionRecord], rulings: Rulings) -> None:
        suite, judged = self.task.suite, len(records)
        said = rulings.in_words(suite.name, judged) if suite else f"without a gate, {judged} partitions may be read"
        self.workplace.progress(f"{self.task.stage.name}: {said}; they were judged again, and not computed")


def _as_recorded(records: Sequence[PartitionRecord]) -> Measured:
    return Measured(tuple(PartitionMetrics(one.partition, one.rows, one.fingerprint) for one in records))
