"""Takes out of the tables of one region what may be shown no more since a waiver has ended, under the region's lease.

A table loses all that it has to lose in one commit, which is fenced and adopted like any other. What is taken out stays
recorded with its files: if somebody waives it again, it is published again, and nothing is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stagehold.lake.commit.wave_commit import Claim
from stagehold.ledger.heartbeat import Heartbeat
from stagehold.model.records import PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.plan.grounds.reasons import grouped, partition_ranges
from stagehold.plan.resume.decisions import Decision, ResumePlan
from stagehold.plan.resume.waiving import as_blocked, as_retracted
from stagehold.run.delivery.publish import Publication, Signature, publish
from stagehold.run.lease.tables import RegionTables
from stagehold.spec.pipeline import Stage

ENDED = "waiver ended"  # the kind of the event that says what became of rows


@dataclass(frozen=True)
class RegionRetraction:
    """``claim`` is the right of whoever holds the region's lease; its attempt is of the run that is under way."""

    tables: RegionTables
    claim: Claim
    heartbeat: Heartbeat

    def carry_out(self, plan: ResumePlan) -> None:
        """Of the share of the region that is worked on."""
        pipeline, share = self.tables.task.pipeline, self.tables.task.share
        for name in self.tables.stages:
            ended = [one for one in plan.of(name) if one.ended and (share is None or one.partition in share)]
            leaving, staying = [one for one in ended if one.retracts], [one for one in ended if _is_to_block(one)]
            if leaving or staying:
                self._stage(pipeline.stage(name), len(plan.of(name)), leaving, staying)

    def _stage(self, stage: Stage, cut_into: int, leaving: Sequence[Decision], staying: Sequence[Decision]) -> None:
        place, location = self.tables.workplace, self.tables.location(stage.name)
        wave = self.tables.waves_of(stage.name, self.claim.attempt_id) + 1
        signature = Signature(self.tables.task.request.run_id, stage.id, self.claim.attempt_id, self.claim.epoch, wave)
        numbers = tuple(one.partition for one in leaving)
        commit = signature.commit((), cut_into, note="a waiver has ended", retracted=numbers)
        records = [
            *(_ours(as_retracted(one.record), one, signature) for one in leaving if one.record),
            *(_ours(as_blocked(one.record), one, signature) for one in staying if one.record),
        ]
        if leaving:
            place.committer.fence(location, self.claim, self.tables.rivals(stage.name))
        what = Publication(stage.name, location, wave, commit if leaving else None)
        publish(what, lambda _: records, place.committer, self.heartbeat, place)
        for some in filter(None, (leaving, staying)):
            self._tell(stage, some)

    def _tell(self, stage: Stage, decisions: Sequence[Decision]) -> None:
        which = partition_ranges([one.partition for one in decisions])
        text = f"{stage.name}[{which}] {'; '.join(grouped(one.reason for one in decisions))}"
        self.tables.workplace.warn(self.tables.task.request.run_id, ENDED, stage.name, text)


def _ours(record: PartitionRecord, decision: Decision, signature: Signature) -> PartitionRecord:
    is_damaged = record.state is PartitionState.DAMAGED
    return replace(signature.under(record), reason=record.reason if is_damaged else str(decision.reason))


def _is_to_block(decision: Decision) -> bool:
    """Whether its rows stay and nobody of ours may read them any more, which the ledger does not say yet."""
    own = decision.ended == (decision.stage, decision.partition)
    consumable = decision.record is not None and decision.record.state.readable
    return own and consumable and decision.outstays
