"""Which partitions are reused and which run again, each with its reason.

Retry, clear, backfill, restore, preview and the executor all read the list made here. The rules are Flink's region
failover asked as a question about data: a partition runs if what it follows from changed or its data is gone while
somebody needs it; everything that read it runs after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from stagehold.model.compute_key import ComputeKey, digest
from stagehold.model.records import PartitionRecord, PartitionState
from stagehold.model.spec import Exchange, Input, Pipeline, Stage


class Action(StrEnum):
    """The five words for what happens to a partition."""

    REUSE = "reuse"
    RUN = "run"
    HEAL = "heal"
    BLOCKED = "blocked"
    RELEASE = "release"

    @property
    def computes(self) -> bool:
        return self in (Action.RUN, Action.HEAL)


@dataclass(frozen=True)
class StageFacts:
    """What can be known of a stage without running it.

    ``code_problem`` says why the code cannot be hashed, when it cannot. ``splits`` has one hash per partition of a
    source stage.
    """

    code: str
    code_problem: str | None = None
    gate: str = ""
    splits: tuple[str, ...] = ()


@dataclass(frozen=True)
class Situation:
    """Everything the planner is told. Keys of the mappings are stage names.

    ``gone`` are recorded partitions that cannot be read now: asked of the lake at planning time, never remembered.
    Records of ``accepted`` stages count as they are; of ``forced`` stages only those made by ``run_id`` count. Into how many
    partitions the ``undecided`` stages are cut is not known yet; one decision stands for all of them.
    """

    pipeline: Pipeline
    facts: Mapping[str, StageFacts]
    recorded: Mapping[str, tuple[PartitionRecord, ...]]
    gone: Mapping[str, frozenset[int]]
    environment: str
    params: str
    run_id: str
    accepted: frozenset[str] = frozenset()
    forced: frozenset[str] = frozenset()
    undecided: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Decision:
    """What happens to one partition. ``key`` is None while an input still has to run."""

    stage: str
    partition: int
    action: Action
    reason: str
    key: ComputeKey | None = None
    record: PartitionRecord | None = None


@dataclass(frozen=True)
class ResumePlan:
    """Decisions by stage in topological order, partitions ascending."""

    decisions: tuple[Decision, ...]
    by_stage: Mapping[str, tuple[Decision, ...]] = field(repr=False)

    def of(self, stage: str) -> tuple[Decision, ...]:
        return self.by_stage[stage]

    def consumable(self, stage: str) -> bool:
        """Whether all of a stage can be read as it is."""
        return all(decision.action is Action.REUSE and decision.record is not None for decision in self.of(stage))

    def records(self, stage: str) -> tuple[PartitionRecord, ...]:
        """What can be read of a stage as it is."""
        decisions = (decision for decision in self.of(stage) if decision.action is Action.REUSE)
        return tuple(decision.record for decision in decisions if decision.record is not None)

    def count(self, action: Action) -> int:
        return sum(decision.action is action for decision in self.decisions)

    def stages_that_compute(self) -> tuple[str, ...]:
        return tuple(stage for stage, decisions in self.by_stage.items() if any(decision.action.computes for decision in decisions))


def descendants(pipeline: Pipeline, stage: str) -> frozenset[str]:
    """``stage`` and every stage that reads it, directly or not."""
    found = {stage}
    for candidate in pipeline.stages:
        if any(edge.stage in found for edge in candidate.inputs):
            found.add(candidate.name)
    return frozenset(found)


def resume_plan(situation: Situation) -> ResumePlan:
    """Decide for every partition of the pipeline."""
    drafts: dict[str, list[Decision]] = {}
    for stage in situation.pipeline.stages:
        drafts[stage.name] = list(_draft(stage, situation, drafts))
    _demand(situation.pipeline, drafts)
    while _heal(situation, drafts):
        _spread(situation.pipeline, drafts)
        _demand(situation.pipeline, drafts)
    by_stage = {stage: tuple(decisions) for stage, decisions in drafts.items()}
    return ResumePlan(tuple(decision for decisions in by_stage.values() for decision in decisions), by_stage)


def _draft(stage: Stage, situation: Situation, drafts: Mapping[str, list[Decision]]) -> Iterator[Decision]:
    """First opinion on a stage: compares keys, and takes data that is gone for good until a reader needs it."""
    if stage.name in situation.undecided:
        yield Decision(stage.name, 0, Action.RUN, "its number of partitions is decided when its inputs are there")
        return
    records = {record.partition: record for record in situation.recorded.get(stage.name, ())}
    waiting = [_Upstream(edge, drafts[edge.stage], situation.pipeline) for edge in stage.inputs]
    constant = _constant_parts(stage, situation)
    for partition in range(stage.partitions):
        record = records.get(partition)
        if stage.name in situation.accepted and record is not None and record.state is PartitionState.CONSUMABLE:
            yield Decision(stage.name, partition, Action.REUSE, "consumable, and taken as it is recorded", None, record)
            continue
        obstacle = next((found for upstream in waiting if (found := upstream.obstacle(partition))), None)
        if obstacle is not None:
            yield Decision(stage.name, partition, obstacle.action, obstacle.reason, None, record)
            continue
        inputs = digest((*_split_of(stage, situation, partition), *(upstream.identity(partition) for upstream in waiting)))
        key = ComputeKey(*constant, inputs)
        action, reason = _judge(stage, record, key, situation)
        yield Decision(stage.name, partition, action, reason, key, record)


def _constant_parts(stage: Stage, situation: Situation) -> tuple[str, str, str, str]:
    """The parts of the key that all partitions of a stage share."""
    facts = situation.facts[stage.name]
    inputs = ";".join(f"{edge.stage}:{edge.exchange}:{','.join(edge.key)}" for edge in stage.inputs)
    shape = (stage.job, inputs, str(stage.partitions), str(stage.max_parallelism), ",".join(stage.key), str(stage.per_wave))
    settings = digest((*shape, stage.output.type, stage.output.table or "", facts.gate))
    params = digest((situation.params, repr(sorted(stage.params.items()))))
    return (facts.code, settings, situation.environment, params)


def _split_of(stage: Stage, situation: Situation, partition: int) -> tuple[str, ...]:
    return (situation.facts[stage.name].splits[partition],) if stage.source else ()


def _judge(stage: Stage, record: PartitionRecord | None, key: ComputeKey, situation: Situation) -> tuple[Action, str]:
    """Compare one partition's record with its wanted key."""
    code_problem = situation.facts[stage.name].code_problem
    if not stage.output.type.stored:
        return (
            (Action.RUN, f"its code cannot be compared: {code_problem}")
            if code_problem
            else (Action.REUSE, "not stored, and no reader runs")
        )
    if record is None:
        return Action.RUN, "never computed for this interval"
    if record.state is PartitionState.RELEASED:
        return Action.RUN, "its data was released"
    if stage.name in situation.forced and record.run_id != situation.run_id:
        return Action.RUN, "asked for: restore starts at or before this stage"
    if stage.name not in situation.accepted and code_problem:
        return Action.RUN, f"its code cannot be compared: {code_problem}"
    changed = _changes(stage, record, key, situation)
    if changed:
        return Action.RUN, changed
    if record.state is PartitionState.BLOCKED:
        return Action.BLOCKED, record.reason or "the gate said no"
    return Action.REUSE, "consumable, and nothing it follows from changed"


def _changes(stage: Stage, record: PartitionRecord, key: ComputeKey, situation: Situation) -> str | None:
    """Why the record does not fit the wanted key, in the user's words; None when it fits or is taken as it is."""
    if stage.name in situation.accepted:
        return None
    words = {
        "code": f"the code of {stage.job} changed",
        "settings": "the settings of the stage changed",
        "environment": "the Spark or Python environment changed",
        "params": "parameters changed",
        "inputs": "its source files changed" if stage.source else "an input was computed anew",
        "record format": "it was recorded in a format this version cannot read",
    }
    return "; ".join(words[change] for change in key.changes_since(record.compute_key)) or None


class _Upstream:
    """One input of a stage as its partitions see it; all-to-all answers are found once, not per partition."""

    def __init__(self, edge: Input, decisions: list[Decision], pipeline: Pipeline) -> None:
        self._edge, self._decisions, self._cutoff = edge, decisions, pipeline.early_cutoff
        self._pointwise = edge.exchange is Exchange.FORWARD
        self._whole = None if self._pointwise else self._first_obstacle(decisions)
        self._whole_identity = "" if self._pointwise or self._whole else digest(self._identity(decision) for decision in decisions)

    def obstacle(self, partition: int) -> Decision | None:
        """The decision a reader inherits when it cannot be compared yet: it runs, or is blocked, after this input."""
        return self._first_obstacle([self._decisions[partition]]) if self._pointwise else self._whole

    def identity(self, partition: int) -> str:
        return self._identity(self._decisions[partition]) if self._pointwise else self._whole_identity

    def _first_obstacle(self, decisions: Iterable[Decision]) -> Decision | None:
        computing: Decision | None = None
        for decision in decisions:
            if decision.action is Action.BLOCKED:
                return Decision(
                    decision.stage,
                    decision.partition,
                    Action.BLOCKED,
                    f"waits for {decision.stage}[{decision.partition}], which its gate blocked",
                )
            if decision.action.computes and computing is None:
                computing = decision
        if computing is None:
            return None
        return Decision(computing.stage, computing.partition, Action.RUN, reads_what_runs(computing, spared=self._cutoff))

    def _identity(self, decision: Decision) -> str:
        record = decision.record
        if record is None:
            return str(decision.key)
        return record.fingerprint if self._cutoff else f"{record.attempt_id}/{record.wave}/{record.partition}"


def reads_what_runs(decision: Decision, *, spared: bool) -> str:
    hope = ", unless that gives equal data" if spared else ""
    return f"reads {decision.stage}[{decision.partition}], which runs again{hope}"


def _demand(pipeline: Pipeline, drafts: dict[str, list[Decision]]) -> None:
    """A partition that is not stored runs exactly when one of its readers does."""
    for stage in reversed(pipeline.stages):
        if stage.output.type.stored:
            continue
        needed = _needed_by_readers(pipeline, stage, drafts)
        for partition, decision in enumerate(drafts[stage.name]):
            if decision.action is Action.REUSE and partition in needed:
                reason = "computed together with its reader; its output is not stored"
                drafts[stage.name][partition] = Decision(stage.name, partition, Action.RUN, reason, decision.key)


def _heal(situation: Situation, drafts: dict[str, list[Decision]]) -> bool:
    """Recompute what is gone and needed: read by something that runs, or wanted for itself. True if anything changed."""
    changed = False
    for stage in reversed(situation.pipeline.stages):
        lost = situation.gone.get(stage.name, frozenset())
        needed = lost and _needed(situation.pipeline, stage, drafts)
        for partition in sorted(lost):
            decision = drafts[stage.name][partition]
            if decision.action is Action.REUSE and partition in needed:
                reason = "its data is gone from the lake and is needed"
                drafts[stage.name][partition] = Decision(stage.name, partition, Action.HEAL, reason, decision.key, decision.record)
                changed = True
    return changed


def _needed(pipeline: Pipeline, stage: Stage, drafts: Mapping[str, list[Decision]]) -> frozenset[int] | range:
    """Results are needed for themselves, all else only by readers."""
    if stage.output.table is not None or not pipeline.readers(stage.name):
        return range(stage.partitions)
    return _needed_by_readers(pipeline, stage, drafts)


def _needed_by_readers(pipeline: Pipeline, stage: Stage, drafts: Mapping[str, list[Decision]]) -> frozenset[int] | range:
    pointwise: set[int] = set()
    for reader in pipeline.readers(stage.name):
        running = [decision.partition for decision in drafts[reader.name] if decision.action.computes]
        if running and reader.input(stage.name).exchange is not Exchange.FORWARD:
            return range(stage.partitions)
        pointwise.update(running)
    return frozenset(pointwise)


def _spread(pipeline: Pipeline, drafts: dict[str, list[Decision]]) -> None:
    """What read a partition that is computed anew runs after it, finished or not."""
    for stage in pipeline.stages:
        upstreams = [_Upstream(edge, drafts[edge.stage], pipeline) for edge in stage.inputs]
        for partition, decision in enumerate(drafts[stage.name]):
            obstacle = next((found for upstream in upstreams if (found := upstream.obstacle(partition))), None)
            if obstacle is not None and decision.action is Action.REUSE:
                drafts[stage.name][partition] = Decision(stage.name, partition, obstacle.action, obstacle.reason, None, decision.record)
