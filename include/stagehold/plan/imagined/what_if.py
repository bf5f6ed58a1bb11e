"""If this partition were lost, this stage failed or this code changed: what would run?

Nothing is asked of a ledger or a lake. The answer is the resume plan of a changed situation, so it is what a resume
would really do; of a graph that is not a pipeline it is what region failover would restart. Before there is any real
run, the question is asked of an imagined one, in which every partition has been computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from stagehold.errors import InvalidArgument, UnknownName
from stagehold.model.keys.compute_key import digest
from stagehold.model.partition_set import NO_PARTITIONS, PartitionSet
from stagehold.model.records import AttemptState, Cell, PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.plan.grounds.reasons import Place, Reason, because
from stagehold.plan.resume.decisions import Action, Decision, ReleaseDecision, ResumePlan
from stagehold.plan.resume.planner import resume_plan
from stagehold.plan.resume.situation import Situation, StageData, StageFacts, StageOrder, StageSituation
from stagehold.spec.pipeline import Pipeline, Stage
from stagehold.spec.settings.run_settings import Failover
from stagehold.topology.build import partition_name, pipeline_topology
from stagehold.topology.failover import FailureSituation, failover
from stagehold.topology.partition_regions import PartitionRegions, partition_regions, releasable_partitions
from stagehold.topology.topology import Topology

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_NAME = "imagined"


@dataclass(frozen=True)
class Hypothesis:
    """What is supposed to have happened."""

    failed: frozenset[Place] = frozenset()
    lost: frozenset[Place] = frozenset()
    changed: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Consequences:
    """What follows from a hypothesis: regions in topological order, vertices that run again, what may be deleted
    meanwhile, and vertices that are ``spared``: they were computed and read what was only lost, which comes out equal.
    Each vertex has its reason.
    """

    regions: tuple[tuple[str, ...], ...]
    restart: Mapping[str, str]
    releasable: tuple[str, ...]
    spared: Mapping[str, str]


def hypothesis_of(
    pipeline: Pipeline, *, failed: Sequence[str], lost: Sequence[str], changed: Sequence[str]
) -> Hypothesis:
    """Read names as a user writes them: STAGE or STAGE:PARTITION.

    :raises UnknownName: for a stage or partition that the pipeline does not have.
    :raises InvalidArgument: for a loss of what is never stored, or of no partition in particular.
    """
    return Hypothesis(
        frozenset(place for text in failed for place in _places(pipeline, text)),
        frozenset(_stored_place(pipeline, text) for text in lost),
        frozenset(_stage(pipeline, text).name for text in changed),
    )


def what_if(situation: Situation, hypothesis: Hypothesis) -> tuple[ResumePlan, Consequences]:
    """The plan of a situation in which the hypothesis has come true, with a decision for every partition, and what
    follows for all of it; what may be deleted is decided `release`.

    What failed has left nothing, and neither have the others of its region, which ran together with it; nor, with
    `failover: full`, has anything.
    """
    regions = partition_regions(pipeline_topology(situation.pipeline))
    reasons = dict(_failures(regions, hypothesis.failed))
    plan = resume_plan(_situation_after(situation, hypothesis, reasons))
    gone = {partition_name(*place) for place in hypothesis.lost}
    releasable = [name for name in _releasable(regions, plan) if name not in gone]
    explained = _with(plan, reasons, hypothesis.lost, frozenset(releasable))
    restart = {_name(decision): str(decision.reason) for decision in explained.decisions if decision.action.computes}
    spared = {
        _name(decision): str(decision.reason)
        for decision in plan.decisions
        if decision.hinges_on and not decision.action.computes
    }
    return explained, Consequences(regions.regions, restart, tuple(releasable), spared)


def what_if_graph(
    topology: Topology,
    states: Mapping[str, AttemptState],
    *,
    failed: Sequence[str],
    lost: Sequence[str] = (),
    missing: Sequence[str] = (),
    early_cutoff: bool = False,
) -> Consequences:
    """What region failover restarts when vertices in these states fail, and what may be deleted once it has begun.

    :param lost: partitions that are not available.
    :param missing: partitions that the cause of the failure names; they count as lost for this failure only.
    :param early_cutoff: go by the rule of a resume: what was only lost comes out equal when it is produced again, so
        what reads it and has finished stays. Else by Flink's, which knows nothing of contents.
    """
    gone = frozenset(topology.partition(name).id for name in lost)
    regions = partition_regions(topology)
    situation = FailureSituation(regions, states, lambda partition: partition not in gone)
    restarts, spared = failover(situation, failed, missing, early_cutoff=early_cutoff)
    after = {**states, **{restart.vertex: AttemptState.CREATED for restart in restarts}}
    releasable = tuple(name for name in releasable_partitions(regions, after) if name not in gone)
    return Consequences(
        regions.regions,
        {restart.vertex: restart.reason for restart in restarts},
        releasable,
        dict(spared),
    )


def _stage(pipeline: Pipeline, name: str) -> Stage:
    found = next((stage for stage in pipeline.stages if stage.name == name), None)
    if found is None:
        raise UnknownName(f"stage of {pipeline.name}", name, [stage.name for stage in pipeline.stages])
    return found


def _places(pipeline: Pipeline, text: str) -> Iterator[Place]:
    """The places of one partition, or of all partitions of a stage."""
    name, separator, partition = text.partition(":")
    stage = _stage(pipeline, name)
    known = [str(index) for index in range(stage.partitions)]
    if separator and partition not in known:
        raise UnknownName(f"partition of {name}", partition, [f"{known[0]} to {known[-1]}"])
    return ((name, int(index)) for index in ([partition] if separator else known))


def _stored_place(pipeline: Pipeline, text: str) -> Place:
    if ":" not in text:
        raise InvalidArgument("--lost", text, "STAGE:PARTITION")
    (place,) = _places(pipeline, text)
    if not _stage(pipeline, place[0]).output.type.stored:
        raise InvalidArgument(
            "--lost", text, "a partition of a stage whose output is stored; this one's flows to its reader"
        )
    return place


def _failures(regions: PartitionRegions, failed: Iterable[Place]) -> Iterator[tuple[Place, Reason]]:
    """Everything that fails, and why; what was named itself comes last, so that its own reason counts."""
    named = {partition_name(*place): place for place in sorted(failed)}
    for name in named:
        for vertex in regions.regions[regions.region_with(name)]:
            mate = regions.topology.vertex(vertex)
            yield (mate.stage, mate.index), because("it runs together with ", named[name], ", which failed")
    for place in named.values():
        yield place, because("it failed")


def _situation_after(situation: Situation, hypothesis: Hypothesis, failed: Mapping[Place, Reason]) -> Situation:
    anew = bool(situation.pipeline.failover is Failover.FULL and failed)

    def after(stage: str, known: StageSituation) -> StageSituation:
        records = tuple(record for record in known.data.records if (stage, record.partition) not in failed)
        lost = PartitionSet(index for name, index in hypothesis.lost if name == stage)
        discarded = PartitionSet(record.partition for record in records) if anew else NO_PARTITIONS
        data = replace(known.data, records=records, gone=known.data.gone | lost, discarded=discarded)
        code = f"{known.facts.code}, changed" if stage in hypothesis.changed else known.facts.code
        return replace(known, facts=replace(known.facts, code=code), data=data)

    return situation.changed(after)


def _releasable(regions: PartitionRegions, plan: ResumePlan) -> tuple[str, ...]:
    """Partitions that nothing reads any more, when all is finished that need not run."""
    finished = (_name(decision) for decision in plan.decisions if decision.action is Action.REUSE)
    return releasable_partitions(regions, dict.fromkeys(finished, AttemptState.FINISHED))


def _with(
    plan: ResumePlan, failed: Mapping[Place, Reason], lost: frozenset[Place], releasable: frozenset[str]
) -> ResumePlan:
    """The plan in the words of the hypothesis."""
    by_stage = {
        stage: tuple(_explained(decision, failed, lost, releasable) for decision in decisions)
        for stage, decisions in plan.by_stage.items()
    }
    return replace(
        plan, decisions=tuple(decision for decisions in by_stage.values() for decision in decisions), by_stage=by_stage
    )


def _explained(
    decision: Decision, failed: Mapping[Place, Reason], lost: frozenset[Place], releasable: frozenset[str]
) -> Decision:
    place = decision.place
    if decision.action.computes:
        return replace(decision, reason=failed.get(place, decision.reason))
    if place in lost:
        return replace(decision, reason=because("its data is gone, and nothing that runs reads it"))
    if _name(decision) in releasable:
        return decision.turned(ReleaseDecision, because("nothing that runs reads it, so its data may be deleted"))
    return decision


def _name(decision: Decision) -> str:
    return partition_name(decision.stage, decision.partition)


def imagined_run(pipeline: Pipeline) -> Situation:
    """All stored partitions are consumable, and what they follow from has not changed since.
    Nothing is read to know this.
    """
    recorded = {
        stage.name: tuple(_record(pipeline, stage, index, "") for index in range(stage.partitions))
        for stage in _stored(pipeline)
    }
    stages = {stage.name: StageSituation(_facts(stage)) for stage in pipeline.stages}
    situation = Situation(pipeline, stages, environment=_NAME, params=_NAME)
    for stage in _stored(pipeline):
        # With all other stages taken as they are, the planner says which key this one's records would have.
        decisions = resume_plan(_with_others_accepted(situation, recorded, stage.name)).of(stage.name)
        recorded[stage.name] = tuple(
            _record(pipeline, stage, decision.partition, str(decision.key)) for decision in decisions
        )
    return situation.changed(lambda name, known: replace(known, data=StageData(recorded.get(name, ()))))


def _with_others_accepted(
    situation: Situation, recorded: Mapping[str, tuple[PartitionRecord, ...]], stage: str
) -> Situation:
    return situation.changed(
        lambda name, known: replace(
            known, data=StageData(recorded.get(name, ())), order=StageOrder(accepted=name != stage)
        )
    )


def _stored(pipeline: Pipeline) -> tuple[Stage, ...]:
    return tuple(stage for stage in pipeline.stages if stage.output.type.stored)


def _facts(stage: Stage) -> StageFacts:
    return StageFacts(
        code=digest((stage.job,)), splits=tuple(map(str, range(stage.partitions))) if stage.source else ()
    )


def _record(pipeline: Pipeline, stage: Stage, partition: int, key: str) -> PartitionRecord:
    return PartitionRecord(
        cell=Cell(pipeline.name, stage.id, _NAME),
        partition=partition,
        state=PartitionState.CONSUMABLE,
        run_id=_NAME,
        attempt_id=_NAME,
        epoch=1,
        wave=0,
        table=stage.output.table or stage.id,
        version=0,
        files=(),
        rows=0,
        fingerprint="",
        compute_key=key,
        recorded_at=_LONG_AGO,
    )
