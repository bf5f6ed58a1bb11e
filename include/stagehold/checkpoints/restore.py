"""How a checkpoint's state is matched to the stages of a pipeline, and everything that speaks against it.

A checkpoint that does not fit is no error of the plan: a dry run shows all that speaks against it, and the stages that
would start empty. `require_restorable` turns the problems into one error before anything is restored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from stagehold.checkpoints.checkpoint import Checkpoint, Finished, StageSnapshot
from stagehold.checkpoints.stage_ids import Rename, StageShape, find_renames, stage_shapes
from stagehold.errors import RestoreRefused
from stagehold.model.key_groups import HASH_NAME
from stagehold.plan.split.regions import stage_regions
from stagehold.spec.pipeline import Exchange, Pipeline, Stage

ALLOW_FLAG = "--allow-non-restored-state"


class Misfit(StrEnum):
    """What speaks against a restore. With the flag, state that no stage takes does not."""

    NO_STAGE = "no_stage"
    TOO_MANY_PARTITIONS = "too_many_partitions"
    OTHER_MAX_PARALLELISM = "other_max_parallelism"
    OTHER_HASH = "other_hash"
    FINISHED_BEFORE_INPUT = "finished_before_input"
    FINISHED_UNLIKE = "finished_unlike"


@dataclass(frozen=True, kw_only=True)
class RestoreProblem:
    """One thing that speaks against a restore.

    :param stage: the stage, or the region, that it is about.
    :param now: what the pipeline has.
    :param then: what the state has.
    :param finished: how far each stage is that must not be so.
    :param exchange: how the first of these reads the second.
    """

    kind: Misfit
    stage: str
    now: str | int | None = None
    then: str | int | None = None
    finished: Mapping[str, Finished] = field(default_factory=dict)
    exchange: Exchange | None = None

    @property
    def allowable(self) -> bool:
        return self.kind is Misfit.NO_STAGE

    def __str__(self) -> str:
        return f"{self.stage}: {self._text}"

    @property
    def _text(self) -> str:
        match self.kind:
            case Misfit.NO_STAGE:
                return f"its state is kept under {self.then}, which no stage of the pipeline has"
            case Misfit.TOO_MANY_PARTITIONS:
                return f"{self.now} partitions are more than the max_parallelism {self.then} of its state"
            case Misfit.OTHER_MAX_PARALLELISM:
                return f"max_parallelism {self.now} differs from {self.then}, which its state has for ever"
            case Misfit.OTHER_HASH:
                return f"its keyed state was written with the hash {self.then}; this version finds keys by {self.now}"
            case Misfit.FINISHED_BEFORE_INPUT:
                (_, itself), (producer, above) = self.finished.items()
                return f"it is {itself}, but its input {producer}, read {self.exchange}, is {above}"
            case Misfit.FINISHED_UNLIKE:
                each = ", ".join(f"{stage} is {finished}" for stage, finished in self.finished.items())
                return f"its stages run together and must be finished alike, but {each}"


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

    @property
    def next_checkpoint_id(self) -> int:
        """Ids go on after the restored one, so that they stay ascending over all runs that follow from it."""
        return self.checkpoint.id + 1

    def only(self, restarting: frozenset[str]) -> tuple[StageRestore, ...]:
        """After the failure of a region only its stages are restored. Source positions go on unless all restart."""
        chosen = [restore for restore in self.stages if restore.stage in restarting]
        everything = len(chosen) == len(self.stages)
        return tuple(chosen) if everything else tuple(_without_positions(restore) for restore in chosen)


def restore_plan(checkpoint: Checkpoint, pipeline: Pipeline, *, allow_non_restored: bool = False) -> RestorePlan:
    """Match state to stages by id and check that what is matched fits.

    State under an explicit ``uid`` is preferred to state under the derived id. A stage without state starts empty.

    :param allow_non_restored: state that no stage takes is left behind instead of being a problem.
    """
    shapes = {shape.name: shape for shape in stage_shapes(pipeline)}
    matched = _match(shapes.values(), checkpoint.stages)
    known = {name for shape in shapes.values() for name in shape.known_ids}
    strangers = tuple(
        snapshot for snapshot in checkpoint.stages if snapshot.shape.id not in known and not snapshot.empty
    )
    renames = find_renames([snapshot.shape for snapshot in checkpoint.stages], list(shapes.values()))
    problems = [] if allow_non_restored else [_unmatched(snapshot) for snapshot in strangers]
    for stage in pipeline.stages:
        if stage.name in matched:
            problems += _misfits(stage, matched[stage.name])
    problems += _finished_problems(pipeline, matched)
    restores = tuple(_restore(stage, matched[stage.name]) for stage in pipeline.stages if stage.name in matched)
    empty = tuple(stage.name for stage in pipeline.stages if stage.name not in matched)
    return RestorePlan(checkpoint, pipeline.name, restores, empty, strangers, renames, tuple(problems))


def require_restorable(plan: RestorePlan) -> RestorePlan:
    """The plan itself, or RestoreRefused with all of its problems."""
    if not plan.problems:
        return plan
    raise RestoreRefused(
        snapshot=str(plan.checkpoint),
        pipeline=plan.pipeline,
        problems=[str(problem) for problem in plan.problems],
        hints=[f"{rename}; give the new one uid: {rename.old.id} to keep its state" for rename in plan.renames],
        flag=ALLOW_FLAG if all(problem.allowable for problem in plan.problems) else None,
    )


def _match(shapes: Iterable[StageShape], snapshots: Sequence[StageSnapshot]) -> Mapping[str, StageSnapshot]:
    by_id = {snapshot.shape.id: snapshot for snapshot in snapshots}
    found = ((shape.name, next((by_id[name] for name in shape.known_ids if name in by_id), None)) for shape in shapes)
    return {name: snapshot for name, snapshot in found if snapshot is not None}


def _unmatched(snapshot: StageSnapshot) -> RestoreProblem:
    return RestoreProblem(kind=Misfit.NO_STAGE, stage=snapshot.shape.name, then=snapshot.shape.id)


def _misfits(stage: Stage, snapshot: StageSnapshot) -> Iterator[RestoreProblem]:
    """Why matched state does not fit its stage. A default max_parallelism is given up for the state's; one that the
    author chose is not.
    """
    then = snapshot.max_parallelism
    if stage.partitions > then:
        yield RestoreProblem(kind=Misfit.TOO_MANY_PARTITIONS, stage=stage.name, now=stage.partitions, then=then)
    elif stage.max_parallelism_declared and stage.max_parallelism != then:
        yield RestoreProblem(kind=Misfit.OTHER_MAX_PARALLELISM, stage=stage.name, now=stage.max_parallelism, then=then)
    for name in sorted({state.hash_name for state in snapshot.keyed} - {HASH_NAME}):
        yield RestoreProblem(kind=Misfit.OTHER_HASH, stage=stage.name, now=HASH_NAME, then=name)


def _restore(stage: Stage, snapshot: StageSnapshot) -> StageRestore:
    return StageRestore(stage.name, snapshot, stage.partitions, snapshot.max_parallelism)


def _finished_problems(pipeline: Pipeline, matched: Mapping[str, StageSnapshot]) -> Iterator[RestoreProblem]:
    """What is finished must still follow only what could have finished before it, in the pipeline as it is now."""
    finished = {
        stage.name: matched[stage.name].finished if stage.name in matched else Finished.NONE
        for stage in pipeline.stages
    }
    for stage in pipeline.stages:
        for edge in stage.inputs:
            if finished[edge.stage] not in _finished_before(finished[stage.name], edge.exchange):
                yield RestoreProblem(
                    kind=Misfit.FINISHED_BEFORE_INPUT,
                    stage=stage.name,
                    finished={stage.name: finished[stage.name], edge.stage: finished[edge.stage]},
                    exchange=edge.exchange,
                )
    for region in stage_regions(pipeline):
        together = {stage: finished[stage] for stage in region.stages}
        if len(set(together.values())) > 1:
            yield RestoreProblem(kind=Misfit.FINISHED_UNLIKE, stage=region.name, finished=together)


def _finished_before(finished: Finished, exchange: Exchange) -> frozenset[Finished]:
    """What an input may be for its reader to be as far as it is."""
    if finished is Finished.NONE:
        return frozenset(Finished)
    if finished is Finished.SOME and exchange is Exchange.FORWARD:
        return frozenset({Finished.SOME, Finished.ALL})
    return frozenset({Finished.ALL})


def _without_positions(restore: StageRestore) -> StageRestore:
    return replace(restore, snapshot=replace(restore.snapshot, position=None))
