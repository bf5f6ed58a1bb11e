"""The id a stage is recognised by when a run is restored from an earlier version of its pipeline.

An author's ``uid`` is the id. Without one the id is derived from the structure around the stage, and from nothing else:

* the job function, as ``module:function``;
* what the stage reads: the path of its source, or the ids of its input stages, whatever order they are listed in.

So a stage keeps its id when it is renamed or moved, when stages elsewhere come and go, and when its partitions,
exchanges, keys, parameters, gate or output change. It gets a new one when its function is renamed or it reads from
something else, and then so does every stage below it down to the next ``uid``; so do those below a stage that is given
its first ``uid``. Stages that run one function on the same inputs are told apart by their names, which their ids have
then. `find_renames` tells which new id an old one probably became; it is never applied unasked, because state that goes
to the wrong stage is worse than none.

The ledger and the lake keep records under ``Stage.id``, which needs no other stage to be known; this id is for
restores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from stagehold.errors import DuplicateStageId
from stagehold.model.compute_key import digest
from stagehold.spec.pipeline import Pipeline, Stage

ALIKE = 0.5  # from this share of what can be compared, two stages are called one that was renamed


@dataclass(frozen=True)
class StageShape:
    """A stage and the structure around it. ``reads`` are ids of stages, or the path of the source."""

    id: str
    derived_id: str
    name: str
    job: str
    reads: frozenset[str]

    @property
    def known_ids(self) -> tuple[str, ...]:
        """Ids that state of this stage may be kept under, the one that wins first:
        a ``uid`` may be newer than the state.
        """
        return tuple(dict.fromkeys((self.id, self.derived_id)))


@dataclass(frozen=True)
class Rename:
    """An old id that is gone and the new one it probably became, with what speaks for it."""

    old: StageShape
    new: StageShape
    evidence: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.old.name} ({self.old.id}) looks like {self.new.name} ({self.new.id}): {', '.join(self.evidence)}"


def stage_shapes(pipeline: Pipeline) -> tuple[StageShape, ...]:
    """Every stage's ids, in the pipeline's order.

    :raises DuplicateStageId: two stages have one ``uid``, or one has what another derives.
    """
    shapes: dict[str, StageShape] = {}
    owners: dict[str, str] = {}
    alike = Counter(_work(stage) for stage in pipeline.stages if stage.uid is None)
    for stage in pipeline.stages:
        shape = _shape(stage, shapes, by_name=alike[_work(stage)] > 1)
        owner = owners.setdefault(shape.id, stage.name)
        if owner != stage.name:
            raise DuplicateStageId(pipeline.name, shape.id, (owner, stage.name))
        shapes[stage.name] = shape
    return tuple(_unambiguous(tuple(shapes.values())))


def find_renames(old: Sequence[StageShape], new: Sequence[StageShape]) -> tuple[Rename, ...]:
    """For ids of ``old`` that ``new`` does not know, the stages of ``new`` they probably became; both in topological
    order.

    Two candidates that are equally alike are no answer. Inputs are compared through the renames found above them, so
    one renamed function does not make everything below it look new.
    """
    known = {name for shape in new for name in shape.known_ids}
    gone = [shape for shape in old if shape.id not in known]
    kept = {shape.id for shape in old}
    became: dict[str, str] = {}
    renames = []
    for shape in new:
        if kept.isdisjoint(shape.known_ids):
            comparison = _best(shape, gone, became, _readers(old), _readers(new))
            if comparison is not None:
                renames.append(comparison)
                gone.remove(comparison.old)
                became[comparison.old.id] = shape.id
    return tuple(renames)


def _work(stage: Stage) -> tuple[str, ...]:
    """What a stage does to what. Its parameters may be all that tells it from another, and they may change."""
    return (stage.job, *([stage.source.place] if stage.source else sorted(edge.stage for edge in stage.inputs)))


def _shape(stage: Stage, above: Mapping[str, StageShape], *, by_name: bool) -> StageShape:
    reads = (
        frozenset({stage.source.place}) if stage.source else frozenset(above[edge.stage].id for edge in stage.inputs)
    )
    _, _, function = stage.job.rpartition(":")
    derived = f"{function}-{digest((stage.job, *sorted(reads)))}{f'-{stage.name}' if by_name else ''}"
    return StageShape(stage.uid or derived, derived, stage.name, stage.job, reads)


def _unambiguous(shapes: Sequence[StageShape]) -> Iterator[StageShape]:
    """Where only a ``uid`` tells stages apart, state from before they had one could be any of theirs,
    so it is nobody's.
    """
    owners = Counter(shape.derived_id for shape in shapes)
    for shape in shapes:
        yield shape if owners[shape.derived_id] == 1 else replace(shape, derived_id=shape.id)


def _readers(shapes: Iterable[StageShape]) -> Mapping[str, frozenset[str]]:
    """Job functions of the stages that read each id."""
    listed: dict[str, set[str]] = {}
    for shape in shapes:
        for read in shape.reads:
            listed.setdefault(read, set()).add(shape.job)
    return {read: frozenset(jobs) for read, jobs in listed.items()}


def _best(
    new: StageShape,
    gone: Sequence[StageShape],
    became: Mapping[str, str],
    old_readers: Mapping[str, frozenset[str]],
    new_readers: Mapping[str, frozenset[str]],
) -> Rename | None:
    """The one old stage that is most like ``new``, if it is alike enough."""
    nobody: frozenset[str] = frozenset()
    scored = []
    for old in gone:
        points = {
            "same name": float(old.name == new.name),
            "same job function": _job_likeness(old.job, new.job),
            "reads the same": _overlap(frozenset(became.get(read, read) for read in old.reads), new.reads),
            "read by the same": _overlap(old_readers.get(old.id, nobody), new_readers.get(new.id, nobody)),
        }
        evidence = tuple(what for what, likeness in points.items() if likeness > 0)
        scored.append((sum(points.values()) / len(points), Rename(old, new, evidence)))
    highest = max((score for score, _ in scored), default=0.0)
    best = [rename for score, rename in scored if score == highest]
    return best[0] if highest >= ALIKE and len(best) == 1 else None


def _job_likeness(old: str, new: str) -> float:
    """A function that moved to another module is half the same."""
    if old == new:
        return 1.0
    return 0.5 if old.rpartition(":")[2] == new.rpartition(":")[2] else 0.0


def _overlap(old: frozenset[str], new: frozenset[str]) -> float:
    """Shared share; two empty sets are alike."""
    return len(old & new) / len(old | new) if old or new else 1.0
