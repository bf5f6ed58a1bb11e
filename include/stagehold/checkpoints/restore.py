"""How a checkpoint's state is matched to the stages of a pipeline, and everything that speaks against it.

A checkpoint that does not fit is no error of the plan: a dry run shows all that speaks against it, and the stages that
would start empty. `require_restorable` turns the problems into one error before anything is restored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from stagehold.checkpoints.checkpoint import Checkpoint, StageSnapshot
from stagehold.checkpoints.stage_ids import Rename, find_renames, places, stage_shapes
from stagehold.errors import RestoreRefused
from stagehold.model.keys.key_groups import HASH_NAME
from stagehold.spec.pipeline import Exchange, Pipeline, Stage
from stagehold.spec.settings.run_settings import MatchPolicy

ALLOW_FLAG = "--allow-non-restored-state"


class Misfit(StrEnum):
    """What speaks against a restore. With the flag, state that no stage takes does not."""

    NO_STAGE = "no_stage"
    TOO_MANY_PARTITIONS = "too_many_partitions"
    OTHER_MAX_PARALLELISM = "other_max_parallelism"
    OTHER_HASH = "other_hash"


@dataclass(frozen=True, kw_only=True)
class RestoreProblem:
    """A fact that speaks against a restore.

    :param now: what the pipeline has.
    :param then: what the state has.
    """

    kind: Misfit
    stage: str
    now: str | int | None = None
    then: str | int | None = None

    @property
    def allowable(self) -> bool:
        return self.kind is Misfit.NO_STAGE

    def __str__(self) -> str:
        return f"{self.stage}: {self._text}"

    @property
    def _text(self) -> str:
        match self.kind:
            case Misfit.NO_STAGE:
                return "the pipeline has no such stage, so nobody would take its data and state"
            case Misfit.TOO_MANY_PARTITIONS:
                return f"{self.now} partitions are more than the max_parallelism {self.then} of its state"
            case Misfit.OTHER_MAX_PARALLELISM:
                return f"max_parallelism {self.now} differs from {self.then}, which its state has for ever"
            case Misfit.OTHER_HASH:
                return f"its keyed state was written with the hash {self.then}; this version finds keys by {self.now}"


@dataclass(frozen=True)
class StageRestore:
    """Where one stage's state comes from. ``max_parallelism`` is the state's, which the stage takes over."""

    stage: str
    snapshot: StageSnapshot
    partitions: int
    max_parallelism: int

    @property
    def rescaled(self) -> bool:
        return self.snapshot.parallelism != self.partitions


@dataclass(frozen=True)
class RestorePlan:
    """What a restore would do. ``left_behind`` is state that no stage takes;
    the flag was given if that is no problem.
    """

    checkpoint: Checkpoint
    pipeline: str
    stages: tuple[StageRestore, ...]
    starts_empty: tuple[str, ...]
    left_behind: tuple[StageSnapshot, ...]
    renames: tuple[Rename, ...]
    problems: tuple[RestoreProblem, ...]


def restore_plan(checkpoint: Checkpoint, pipeline: Pipeline, *, allow_non_restored: bool = False) -> RestorePlan:
    """Match state to stages and check that what is matched fits. A stage without state starts empty.

    By id, or what the stage says that it `was`; and by name where it got or lost its ``uid`` since then. Two uids that
    differ are two stages. Then by its place in the graph, if the pipeline says so.

    Flink also refuses what is finished behind something that is not, as below a new stage. Here the planner runs what
    follows from something that runs.

    :param allow_non_restored: state that no stage takes is left behind instead of being a problem.
    """
    snapshots = under_present_ids(checkpoint.stages, pipeline)
    shapes, by_id = stage_shapes(pipeline), {snapshot.shape.id: snapshot for snapshot in snapshots}
    matched = [(stage, by_id.pop(stage.id)) for stage in pipeline.stages if stage.id in by_id]
    strangers = tuple(snapshot for snapshot in by_id.values() if not snapshot.empty)
    found = {stage.name for stage, _ in matched}
    problems = [] if allow_non_restored else [_unmatched(snapshot) for snapshot in strangers]
    for stage, snapshot in matched:
        problems += _misfits(stage, snapshot)
    return RestorePlan(
        checkpoint=checkpoint,
        pipeline=pipeline.name,
        stages=tuple(_restore(stage, snapshot) for stage, snapshot in matched),
        starts_empty=tuple(stage.name for stage in pipeline.stages if stage.name not in found),
        left_behind=strangers,
        renames=find_renames([snapshot.shape for snapshot in snapshots], shapes),
        problems=tuple(problems),
    )


def under_present_ids(snapshots: Sequence[StageSnapshot], pipeline: Pipeline) -> tuple[StageSnapshot, ...]:
    """Each under the id that its stage has now, as far as the pipeline has that stage."""
    now = {found: stage.id for stage in pipeline.stages if (found := _id_among(snapshots, stage, pipeline))}
    if pipeline.match is MatchPolicy.STRUCTURE:
        now |= _by_place(snapshots, pipeline, now)
    shapes = [replace(snapshot.shape, id=now.get(snapshot.shape.id, snapshot.shape.id)) for snapshot in snapshots]
    return tuple(replace(snapshot, shape=shape) for snapshot, shape in zip(snapshots, shapes, strict=True))


def _id_among(snapshots: Sequence[StageSnapshot], stage: Stage, pipeline: Pipeline) -> str | None:
    """The id under which snapshots have a stage: the first of its own that is there; without a uid and a past, that
    of its name.
    """
    others = {other.id for other in pipeline.stages if other is not stage}
    there = {snapshot.shape.id: snapshot.shape.name for snapshot in snapshots if snapshot.shape.id not in others}
    named = [found for found, name in there.items() if stage.uid is None and not stage.was and name == stage.name]
    return next((found for found in (*stage.ids, *named) if found in there), None)


def _by_place(snapshots: Sequence[StageSnapshot], pipeline: Pipeline, by_name: Mapping[str, str]) -> Mapping[str, str]:
    """Present ids by ids of snapshots, of stages that no name brings together and their authors did not name."""
    then, now = tuple(snapshot.shape for snapshot in snapshots), stage_shapes(pipeline)
    told = {stage.id for stage in pipeline.stages if stage.uid or stage.was}
    new = {shape.id for shape in now} - set(by_name.values()) - told
    gone = {shape.id for shape in then if not shape.is_named_by_author} - by_name.keys()
    old = {place: found for found, place in places(then).items() if found in gone}
    return {old[place]: found for found, place in places(now).items() if found in new and place in old}


def require_restorable(plan: RestorePlan) -> RestorePlan:
    """The plan itself, or RestoreRefused with all of its problems."""
    if not plan.problems:
        return plan
    raise RestoreRefused(
        snapshot=str(plan.checkpoint),
        pipeline=plan.pipeline,
        problems=[str(problem) for problem in plan.problems],
        hints=[str(rename) for rename in plan.renames],
        flag=ALLOW_FLAG if all(problem.allowable for problem in plan.problems) else None,
    )


def _unmatched(snapshot: StageSnapshot) -> RestoreProblem:
    return RestoreProblem(kind=Misfit.NO_STAGE, stage=snapshot.shape.name, then=snapshot.shape.id)


def _misfits(stage: Stage, snapshot: StageSnapshot) -> Iterator[RestoreProblem]:
    """Why matched state does not fit its stage. A default max_parallelism is given up for the state's; one that the
    author chose is not. Where nothing goes by key group it means nothing.
    """
    then = snapshot.max_parallelism
    if not (
        any(edge.exchange is Exchange.KEYED for edge in stage.inputs) or any(shape.key for shape in snapshot.states)
    ):
        return
    if stage.partitions > then:
        yield RestoreProblem(kind=Misfit.TOO_MANY_PARTITIONS, stage=stage.name, now=stage.partitions, then=then)
    elif stage.max_parallelism_declared and stage.max_parallelism != then:
        yield RestoreProblem(kind=Misfit.OTHER_MAX_PARALLELISM, stage=stage.name, now=stage.max_parallelism, then=then)
    for name in sorted({state.hash_name for state in snapshot.states if state.hash_name} - {HASH_NAME}):
        yield RestoreProblem(kind=Misfit.OTHER_HASH, stage=stage.name, now=HASH_NAME, then=name)


def _restore(stage: Stage, snapshot: StageSnapshot) -> StageRestore:
    return StageRestore(stage.name, snapshot, stage.partitions, snapshot.max_parallelism)
