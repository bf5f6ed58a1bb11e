"""How a stage is recognised when a run is restored from an earlier version of its pipeline.

By its id: the oldest of what it says that it ``was``, else the ``uid`` that its author gave it, else its name. Under
that id ledger and lake keep its records, too. So a stage keeps its id when it is moved, when its function, inputs,
partitions, keys, parameters, gate or output change, and when stages elsewhere come and go. It loses its id when it is
renamed and has neither ``uid`` nor ``was``.

Then its structure tells what it was: the job function, and what it reads, whatever order that is listed in.
`find_renames` compares structures. It is never applied unasked, because state that goes to the wrong stage is worse
than none. A pipeline may ask to be matched by the `places` of its stages, which are Flink's generated ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stagehold.model.keys.compute_key import digest
from stagehold.spec.pipeline import Pipeline, Stage

ALIKE = 0.5  # from this share of what can be compared, two stages are called one that was renamed


@dataclass(frozen=True)
class StageShape:
    """A stage and the structure around it. ``reads`` are ids of stages, or the path of the source."""

    id: str
    name: str
    job: str
    reads: frozenset[str]

    @property
    def is_named_by_author(self) -> bool:
        """Whether its id is a ``uid``, or a name that it says it had."""
        return self.id != self.name


@dataclass(frozen=True)
class Rename:
    """An old id that is gone and the new one it probably became, with what speaks for it."""

    old: StageShape
    new: StageShape
    evidence: tuple[str, ...]

    def __str__(self) -> str:
        """What to do about it."""
        evidence = ", ".join(self.evidence)
        return f"{self.new.name} looks like {self.old.name} renamed ({evidence}): put `was: {self.old.id}` there"


def stage_shapes(pipeline: Pipeline) -> tuple[StageShape, ...]:
    """Every stage's shape, in the pipeline's order."""
    ids = {stage.name: stage.id for stage in pipeline.stages}
    return tuple(StageShape(stage.id, stage.name, stage.job, _reads(stage, ids)) for stage in pipeline.stages)


def places(shapes: Sequence[StageShape]) -> Mapping[str, str]:
    """The id that its place in the graph gives each stage, by the id that it has.

    The rules are those of Flink's StreamGraphHasherV2: breadth first from the sources, in the order of the file, each
    place follows from how many stages have theirs, and from the places of its inputs. So names, functions and numbers
    of partitions do not matter, and a stage that comes or goes shifts all that are behind it. The place of a stage that
    its author named is that name.
    """
    found: dict[str, str] = {}
    stages, waiting = {shape.id for shape in shapes}, list(shapes)
    while ready := [shape for shape in waiting if shape.reads & stages <= found.keys()]:
        for shape in ready:
            inputs = sorted(found[read] for read in shape.reads & stages)
            own = ("named", shape.id) if shape.is_named_by_author else (str(len(found)), *inputs)
            found[shape.id] = digest(own)
            waiting.remove(shape)
    return found


def find_renames(old: Sequence[StageShape], new: Sequence[StageShape]) -> tuple[Rename, ...]:
    """The stages of ``new`` that ids of ``old`` have probably become, where ``new`` does not know these ids. Both are
    in topological order.

    Two candidates that are equally alike are no answer. Inputs are compared through the renames found above them, so
    one renamed stage does not make everything below it look new.
    """
    known, kept = {shape.id for shape in new}, {shape.id for shape in old}
    gone = [shape for shape in old if shape.id not in known]
    became: dict[str, str] = {}
    renames = []
    for shape in new:
        comparison = None if shape.id in kept else _best(shape, gone, became, _readers(old), _readers(new))
        if comparison is not None:
            renames.append(comparison)
            gone.remove(comparison.old)
            became[comparison.old.id] = shape.id
    return tuple(renames)


def _reads(stage: Stage, ids: Mapping[str, str]) -> frozenset[str]:
    return frozenset({stage.source.place} if stage.source else (ids[edge.stage] for edge in stage.inputs))


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
