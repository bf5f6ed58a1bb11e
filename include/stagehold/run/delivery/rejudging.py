"""Judges recorded partitions and computes nothing: each by the gate that its stage has now, or all together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from stagehold.errors import StageholdError
from stagehold.gates.judge import Measured
from stagehold.gates.suite import Suite
from stagehold.gates.verdicts import GateVerdict
from stagehold.lake.commit.committed_waves import Landed
from stagehold.lake.commit.wave_commit import CommittedPartition, WaveCommit
from stagehold.lake.measure import PartitionMetrics
from stagehold.model.records import WHOLE, PartitionRecord, StageVerdict
from stagehold.model.standing import PartitionState
from stagehold.plan.determinism.verification import same_content
from stagehold.plan.grounds.content_verdicts import content_of, verdict_on
from stagehold.plan.resume.decisions import Action, Decision
from stagehold.run.delivery.content_check import mismatches, refuse_damaged
from stagehold.run.delivery.good_rows import as_blocking
from stagehold.run.delivery.publish import Publication, as_landed, brought_to, publish, under, wave_of
from stagehold.run.delivery.ruling import Ruling, Rulings, results, unmet, unmet_on_record, warn
from stagehold.run.delivery.wave import EquippedStage, PublishRight
from stagehold.run.faults import TogetherPoint
from stagehold.spark.session.sessions import translate

NO_WAVE = 0  # for fault points: beforehand nobody knows how many waves there were


class Rejudging:
    """What it takes to judge one stage, in one attempt."""

    def __init__(self, equipped: EquippedStage) -> None:
        self.task, self.session, self.workplace = equipped.task, equipped.session, equipped.workplace
        self.publisher, self.committer = equipped.publisher, equipped.committer


class JudgingAgain(Rejudging):
    """Judges each partition by itself.

    A partition that no longer passes is blocked from then on: no stage reads it. Its published rows stay in its table,
    for other readers, until it is computed again. A partition that was blocked and passes now is published.
    """

    def judge(self, decisions: Sequence[Decision], wave: int) -> Mapping[int, str]:
        """Publish the partitions that pass and were not published, and record all; return those that do not pass, and
        why.

        :raises GateErrored: the gate cannot judge them.
        :raises PartitionDataMissing: data of some differs from its record; that is on record, and nothing else
            happened.
        """
        recorded = [decision.record for decision in decisions if decision.record is not None]
        judged = [record for record in recorded if self._is_judged(record)]
        measured = self._measured([record for record in recorded if not self._is_judged(record)])
        right = self.publisher.right_to(self.task.stage.name, decisions)
        records = [record for record in recorded if record.partition in right.partitions]
        self._refuse_damaged([record for record in records if not self._is_judged(record)], measured, right)
        verdicts = [verdict for verdict in measured.verdicts if verdict.partition in right.partitions]
        rulings = self._rulings(records, verdicts, judged)
        self._publish(records, verdicts, rulings, right, wave)
        self._tell(records, rulings)
        warn(self.task, verdicts, rulings, self.workplace)
        return rulings.blocked

    def _lacks(self, record: PartitionRecord) -> bool:
        """Whether the partition has to be published if it passes; where all are judged together, that comes later."""
        return record.version is None and self.task.whole is None

    def _is_judged(self, record: PartitionRecord) -> bool:
        """Whether this very suite has judged the partition. Then a waiver began or ended, and nothing is read. A held
        partition has passed it.
        """
        kept_back = bool(record.refused) or record.state is PartitionState.HELD
        return record.judged == self.task.judge and kept_back

    def _rulings(
        self, records: Sequence[PartitionRecord], verdicts: Sequence[GateVerdict], judged: Sequence[PartitionRecord]
    ) -> Rulings:
        failures = self.workplace.ledger.gates.failures(self.task.cell) if judged else ()
        refused = {**unmet_on_record(judged, failures), **unmet(verdicts)}
        fingerprints = {record.partition: record.fingerprint for record in records}
        return Rulings.of(
            {partition: expectations for partition, expectations in refused.items() if partition in fingerprints},
            fingerprints,
            self.task,
        )

    def _measured(self, records: Sequence[PartitionRecord]) -> Measured:
        """The verdicts on the partitions. Without a gate, and of data that cannot be read, nothing is read."""
        if self.task.suite is None or not records:
            return _as_recorded(records)
        try:
            measured = self.session.judge(records, self.task.suite)
            return replace(
                measured, verdicts=tuple(as_blocking(verdict, self.task.suite) for verdict in measured.verdicts)
            )
        except StageholdError:
            raise
        except Exception as error:
            unreadable = mismatches(records, self.session) if translate(error) is None else []
            if not unreadable:
                raise
            found = {record.partition for record, _ in unreadable}
            return _as_recorded([record for record in records if record.partition not in found])

    def _refuse_damaged(self, records: Sequence[PartitionRecord], measured: Measured, right: PublishRight) -> None:
        found = {metrics.partition: metrics.fingerprint for metrics in measured.metrics}
        damaged = [
            record
            for record in records
            if record.partition not in found or not same_content(record.fingerprint, found[record.partition])
        ]
        refuse_damaged(self.task.stage.name, damaged, right.heartbeat.lease, self.workplace.ledger)

    def _publish(
        self,
        records: Sequence[PartitionRecord],
        verdicts: Sequence[GateVerdict],
        rulings: Rulings,
        right: PublishRight,
        wave: int,
    ) -> None:
        location, own = self.task.location, wave_of(self.task, right, wave, "judged again")
        ruled = [replace(record, refused=rulings.of_partition(record.partition).refused) for record in records]
        lacking = [record for record in ruled if record.partition not in rulings.blocked and self._lacks(record)]
        here = {record.partition: record for record in brought_to(location, lacking, own.attempt_id)}
        partitions = tuple(CommittedPartition.of(replace(record, judged=self.task.judge)) for record in here.values())
        commit = replace(own, partitions=partitions) if lacking else None

        def recorded(landed: Landed | None) -> list[PartitionRecord]:
            published = (
                {number: as_landed(record, location, landed) for number, record in here.items()} if landed else {}
            )
            return [self._judged(published.get(record.partition, record), rulings, own) for record in ruled]

        said = results(self.task, verdicts, datetime.now(UTC))
        what = Publication(self.task.stage.name, location, wave, commit, said)
        publish(what, recorded, self.committer, right.heartbeat, self.workplace)

    def _judged(self, record: PartitionRecord, rulings: Rulings, wave: WaveCommit) -> PartitionRecord:
        ruling = rulings.of_partition(record.partition)
        return replace(
            under(wave, record),
            state=ruling.state_in(self.task, published=record.version is not None),
            reason=ruling.reason,
            judged=self.task.judge,
        )

    def _tell(self, records: Sequence[PartitionRecord], rulings: Rulings) -> None:
        suite, judged = self.task.suite, len(records)
        said = rulings.in_words(suite.name, judged) if suite else f"without a gate, {judged} partitions may be read"
        self.workplace.progress(f"{self.task.stage.name}: {said}; they were judged again, and not computed")


def _as_recorded(records: Sequence[PartitionRecord]) -> Measured:
    return Measured(tuple(PartitionMetrics(record.partition, record.rows, record.fingerprint) for record in records))


class JudgingTogether(Rejudging):
    """Judges all partitions at once, after the stage's last wave, and takes them from held to consumable if the gate
    lets all of them together.

    The verdict is on record before anything is published, so an attempt that comes after a kill need not ask the gate
    again.
    """

    def judge(self, suite: Suite, decisions: Sequence[Decision], wave: int) -> Mapping[int, str]:
        """Publish and record the held partitions in one commit; if the gate refuses them, return why each stays held.

        Does nothing while some partition is missing, or does not pass its gate by itself.

        :param decisions: decisions on all partitions, as they were before the attempt's waves.
        :raises GateErrored: the gate cannot judge them.
        :raises PartitionDataMissing: data of some differs from its record; that is on record, and nothing else
            happened.
        """
        records = self._records()
        ready = {
            record.partition for record in records if record.state in (PartitionState.HELD, PartitionState.CONSUMABLE)
        }
        if any(decision.action is Action.BLOCKED or decision.partition not in ready for decision in decisions):
            return {}
        right = self.publisher.right_to(self.task.stage.name, decisions)
        verdict, verdicts = self._verdict(suite, records, right)
        rulings = Rulings.of(_unmet_together(verdict, verdicts), {WHOLE: verdict.fingerprint}, self.task)
        warn(self.task, verdicts, rulings, self.workplace)
        ruling = rulings.of_partition(WHOLE)
        self._tell(suite, ruling, len(records))
        held = [record for record in records if record.state is PartitionState.HELD]
        if ruling.blocks:
            return {record.partition: str(verdict.reason) for record in records}
        if held:
            self._publish(held, right, wave, ruling)
        return {}

    def _records(self) -> tuple[PartitionRecord, ...]:
        newest = self.workplace.ledger.partitions.newest(self.task.cell)
        return tuple(record for record in newest if record.partition < self.task.stage.partitions)

    def _verdict(
        self, suite: Suite, records: Sequence[PartitionRecord], right: PublishRight
    ) -> tuple[StageVerdict, Sequence[GateVerdict]]:
        """The verdict on record for the same content, or a new one."""
        cell, ledger, content = self.task.cell, self.workplace.ledger, content_of(records)
        said = tuple(
            verdict for verdict in ledger.stage_verdicts.of(cell.pipeline, cell.interval) if verdict.cell == cell
        )
        known = verdict_on(content, suite.fingerprint, said)
        if known is not None:
            return known, ()
        self._refuse_damaged(records, right)
        verdicts = self.session.judge_together(records, suite)
        not_met, now = unmet(verdicts).get(WHOLE, {}), datetime.now(UTC)
        verdict = StageVerdict(
            cell=cell,
            fingerprint=content,
            judged=suite.fingerprint,
            attempt_id=self.task.attempt.attempt_id,
            recorded_at=now,
            refused=tuple(not_met),
            reason=Ruling(not_met).reason if not_met else None,
        )
        self._reach(TogetherPoint.BEFORE_VERDICT)
        right.heartbeat.check()
        with ledger.together():
            ledger.stage_verdicts.record(verdict)
            ledger.gates.record(results(self.task, verdicts, now))
        self._reach(TogetherPoint.AFTER_VERDICT)
        return verdict, verdicts

    def _refuse_damaged(self, records: Sequence[PartitionRecord], right: PublishRight) -> None:
        """What this attempt staged it has measured just now."""
        others = [record for record in records if record.files and record.attempt_id != self.task.attempt.attempt_id]
        damaged = [record for record, _ in mismatches(others, self.session)] if others else []
        refuse_damaged(self.task.stage.name, damaged, right.heartbeat.lease, self.workplace.ledger)

    def _publish(self, held: Sequence[PartitionRecord], right: PublishRight, wave: int, ruling: Ruling) -> None:
        """Publish the held partitions. Their verdicts are on record already."""
        location, stage, own = self.task.location, self.task.stage, wave_of(self.task, right, wave, "judged together")
        here = brought_to(location, held, own.attempt_id)
        commit = replace(own, partitions=tuple(map(CommittedPartition.of, here)))

        def recorded(landed: Landed | None) -> list[PartitionRecord]:
            return [self._consumable(as_landed(record, location, landed), ruling, own) for record in here if landed]

        what = Publication(stage.name, location, NO_WAVE, commit)
        landed = publish(what, recorded, self.committer, right.heartbeat, self.workplace)
        version = landed.version if landed else None
        self.workplace.progress(f"{stage.name}: {len(held)} held partitions are consumable, version {version}")

    def _consumable(self, record: PartitionRecord, ruling: Ruling, wave: WaveCommit) -> PartitionRecord:
        reason = record.reason or ruling.reason
        return replace(under(wave, record), state=PartitionState.CONSUMABLE, reason=reason)

    def _reach(self, point: TogetherPoint) -> None:
        self.workplace.faults.reach(point, self.task.stage.name, NO_WAVE)

    def _tell(self, suite: Suite, ruling: Ruling, partitions: int) -> None:
        said = "refuses" if ruling.refused else "lets"
        waived = ", and they may be read all the same" if ruling.refused and not ruling.blocks else ""
        text = f"gate {suite.name} {said} all {partitions} partitions together{waived}"
        self.workplace.progress(f"{self.task.stage.name}: {text}")


def _unmet_together(verdict: StageVerdict, verdicts: Sequence[GateVerdict]) -> Mapping[int, Mapping[str, str]]:
    """The unmet expectations. If the stage was not judged just now, the observed values are in the verdict's reason."""
    seen = unmet(verdicts).get(WHOLE, {})
    return (
        {WHOLE: {expectation: seen.get(expectation, "") for expectation in verdict.refused}} if verdict.refused else {}
    )
