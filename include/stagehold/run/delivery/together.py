"""Takes all partitions of a stage from held to consumable, at once, if its gate lets all of them together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from stagehold.errors import PartitionDataMissing
from stagehold.gates.suite import Suite
from stagehold.gates.verdicts import GateVerdict
from stagehold.lake.commit.committed import Landed
from stagehold.lake.commit.committer import Committer
from stagehold.lake.commit.wave_commit import CommittedPartition
from stagehold.model.records import WHOLE, PartitionRecord, StageVerdict
from stagehold.model.standing import PartitionState
from stagehold.plan.determinism.verification import as_damaged
from stagehold.plan.grounds.content_verdicts import ContentVerdicts, content_of
from stagehold.plan.resume.decisions import Action, Decision
from stagehold.run.delivery.comparison import mismatches
from stagehold.run.delivery.publish import Publication, Signature, as_landed, brought_to, publish
from stagehold.run.delivery.publisher import Publisher, PublishRight
from stagehold.run.delivery.ruling import Ruling, Rulings, results, unmet, warn
from stagehold.run.delivery.wave import StageTask
from stagehold.run.equipment.engine import Session
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.faults import TogetherPoint

NO_WAVE = 0  # for fault points: how many waves there were before nobody knows beforehand


@dataclass(frozen=True)
class JudgingTogether:
    """Of one stage, in one attempt, behind its last wave.

    What the gate said is on record before anything is published, so whoever comes after a kill need not ask it again.
    """

    task: StageTask
    session: Session
    publisher: Publisher
    committer: Committer
    workplace: Workplace

    def judge(self, suite: Suite, decisions: Sequence[Decision], wave: int) -> Mapping[int, str]:
        """Publish and record what was held, in one commit; why each partition stays held, if the gate refuses them.

        Does nothing while some partition is not there, or does not pass its gate by itself.

        :param decisions: of all partitions, as they were before the attempt's waves.
        :raises GateErrored: it cannot judge them.
        :raises PartitionDataMissing: some are not what was recorded; that is on record, nothing else happened.
        """
        records = self._records()
        ready = {one.partition for one in records if one.state in (PartitionState.HELD, PartitionState.CONSUMABLE)}
        if any(one.action is Action.BLOCKED or one.partition not in ready for one in decisions):
            return {}
        right = self.publisher.right_to(self.task.stage.name, decisions)
        verdict, verdicts = self._verdict(suite, records, right)
        rulings = Rulings.of(_unmet(verdict, verdicts), {WHOLE: verdict.fingerprint}, self.task)
        warn(self.task, verdicts, rulings, self.workplace)
        ruling = rulings.of_partition(WHOLE)
        self._tell(suite, ruling, len(records))
        held = [one for one in records if one.state is PartitionState.HELD]
        if ruling.blocks:
            return {one.partition: str(verdict.reason) for one in records}
        if held:
            self._publish(held, right, wave, ruling)
        return {}

    def _records(self) -> tuple[PartitionRecord, ...]:
        newest = self.workplace.ledger.partitions.newest(self.task.cell)
        return tuple(one for one in newest if one.partition < self.task.stage.partitions)

    def _verdict(
        self, suite: Suite, records: Sequence[PartitionRecord], right: PublishRight
    ) -> tuple[StageVerdict, Sequence[GateVerdict]]:
        """That on record of the same content, or a new one."""
        cell, ledger, content = self.task.cell, self.workplace.ledger, content_of(records)
        said = tuple(one for one in ledger.stage_verdicts.of(cell.pipeline, cell.interval) if one.cell == cell)
        known = ContentVerdicts(said).of(content, suite.fingerprint)
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
        others = [one for one in records if one.files and one.attempt_id != self.task.attempt.attempt_id]
        damaged = [one.record for one in mismatches(others, self.session)] if others else []
        if damaged:
            now = datetime.now(UTC)
            self.workplace.ledger.partitions.record([as_damaged(one, now) for one in damaged], right.heartbeat.lease)
            raise PartitionDataMissing(self.task.stage.name, [one.partition for one in damaged])

    def _publish(self, held: Sequence[PartitionRecord], right: PublishRight, wave: int, ruling: Ruling) -> None:
        """What the gate said of them is on record already."""
        location, stage, signature = self.task.location, self.task.stage, Signature.of(self.task, right, wave)
        here = brought_to(location, held, signature.attempt_id)
        partitions = map(CommittedPartition.of, here)
        commit = signature.commit(partitions, stage.partitions, self.task.positions, "judged together")

        def recorded(landed: Landed | None) -> list[PartitionRecord]:
            return [self._consumable(as_landed(one, location, landed), ruling, signature) for one in here if landed]

        what = Publication(stage.name, location, NO_WAVE, commit)
        landed = publish(what, recorded, self.committer, right.heartbeat, self.workplace)
        version = landed.version if landed else None
        self.workplace.progress(f"{stage.name}: {len(held)} held partitions are consumable, version {version}")

    def _consumable(self, record: PartitionRecord, ruling: Ruling, signature: Signature) -> PartitionRecord:
        reason = record.reason or ruling.reason
        return replace(signature.under(record), state=PartitionState.CONSUMABLE, reason=reason)

    def _reach(self, point: TogetherPoint) -> None:
        self.workplace.faults.reach(point, self.task.stage.name, NO_WAVE)

    def _tell(self, suite: Suite, ruling: Ruling, partitions: int) -> None:
        said = "refuses" if ruling.refused else "lets"
        waived = ", and they may be read all the same" if ruling.refused and not ruling.blocks else ""
        text = f"gate {suite.name} {said} all {partitions} partitions together{waived}"
        self.workplace.progress(f"{self.task.stage.name}: {text}")


def _unmet(verdict: StageVerdict, verdicts: Sequence[GateVerdict]) -> Mapping[int, Mapping[str, str]]:
    """What was seen is in the verdict's reason, if nobody has judged just now."""
    seen = unmet(verdicts).get(WHOLE, {})
    return {WHOLE: {one: seen.get(one, "") for one in verdict.refused}} if verdict.refused else {}
