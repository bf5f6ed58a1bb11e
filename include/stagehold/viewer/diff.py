"""How two checkpoints differ: stages, partitions, source positions and state. Pure; no data file is looked at."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from stagehold.lake.checkpoints.opened_checkpoint import OpenedCheckpoint, OpenedStage
from stagehold.model.source_position import FilesRead, Position

PartFacts = tuple[str, int, str]  # state, rows and fingerprint


class Change(StrEnum):
    """How a partition, or what it holds of a state, differs. The first that is true counts."""

    ONLY_IN_A = "only_in_a"
    ONLY_IN_B = "only_in_b"
    STATE = "state"  # consumable in one and not in the other, for example
    ROWS = "rows"
    CONTENT = "content"  # as many rows, and another fingerprint


Changes = Mapping[Change, tuple[int, ...]]  # partitions


@dataclass(frozen=True)
class PositionDiff:
    """How far a source was read. ``a`` and ``b`` are for people; of files, paths say which were read."""

    a: str | None
    b: str | None
    only_in_a: tuple[str, ...] = ()
    only_in_b: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


@dataclass(frozen=True)
class StateDiff:
    """A state by its name. ``declared_otherwise`` says that kind, columns, key or hash differ."""

    name: str
    declared_otherwise: bool
    partitions: Changes


@dataclass(frozen=True)
class StageDiff:
    """A stage that both have, by its id. Cut into other numbers of partitions, every partition is another one."""

    id: str
    name: str
    parallelism: tuple[int, int]
    max_parallelism: tuple[int, int]
    partitions: Changes
    position: PositionDiff | None
    states: tuple[StateDiff, ...]

    @property
    def cut_alike(self) -> bool:
        return len({*self.parallelism}) == len({*self.max_parallelism}) == 1

    @property
    def alike(self) -> bool:
        return self.cut_alike and not (self.partitions or self.position or self.states)


@dataclass(frozen=True)
class CheckpointDiff:
    """``stages`` are those that differ, in the order of A; names of stages that only one has."""

    a: str
    b: str
    only_in_a: tuple[str, ...]
    only_in_b: tuple[str, ...]
    stages: tuple[StageDiff, ...] = field(default=())

    @property
    def alike(self) -> bool:
        return not (self.only_in_a or self.only_in_b or self.stages)

    def only_stage(self, stage: StageDiff) -> CheckpointDiff:
        """The difference in one stage alone."""
        return CheckpointDiff(self.a, self.b, (), (), () if stage.alike else (stage,))


def checkpoint_diff(a: OpenedCheckpoint, b: OpenedCheckpoint) -> CheckpointDiff:
    ours, theirs = ({stage.manifest.shape.id: stage for stage in opened.stages} for opened in (a, b))
    both = (stage_diff(stage, theirs[name]) for name, stage in ours.items() if name in theirs)
    return CheckpointDiff(
        a.address,
        b.address,
        tuple(stage.name for name, stage in ours.items() if name not in theirs),
        tuple(stage.name for name, stage in theirs.items() if name not in ours),
        tuple(diff for diff in both if not diff.alike),
    )


def stage_diff(a: OpenedStage, b: OpenedStage) -> StageDiff:
    return StageDiff(
        id=a.manifest.shape.id,
        name=a.name,
        parallelism=(a.manifest.parallelism, b.manifest.parallelism),
        max_parallelism=(a.manifest.max_parallelism, b.manifest.max_parallelism),
        partitions=_changes(_partitions(a), _partitions(b)),
        position=_position_diff(a.position, b.position),
        states=tuple(_state_diffs(a, b)),
    )


def differing(changes: Changes) -> frozenset[int]:
    return frozenset(partition for partitions in changes.values() for partition in partitions)


def _changes(a: Mapping[int, PartFacts], b: Mapping[int, PartFacts]) -> Changes:
    found: defaultdict[Change, list[int]] = defaultdict(list)
    for partition in sorted(a.keys() | b.keys()):
        if change := _change(a.get(partition), b.get(partition)):
            found[change].append(partition)
    return {change: tuple(found[change]) for change in Change if change in found}


def _change(a: PartFacts | None, b: PartFacts | None) -> Change | None:
    if a is None or b is None:
        return Change.ONLY_IN_B if a is None else Change.ONLY_IN_A
    if a[0] != b[0]:
        return Change.STATE
    if a[1] != b[1]:
        return Change.ROWS
    return Change.CONTENT if a[2] != b[2] else None


def _partitions(stage: OpenedStage) -> Mapping[int, PartFacts]:
    columns = (stage.partitions[name].to_pylist() for name in ("partition", "state", "rows", "fingerprint"))
    return {partition: (state, rows, content) for partition, state, rows, content in zip(*columns, strict=True)}


def _state_diffs(a: OpenedStage, b: OpenedStage) -> Iterable[StateDiff]:
    ours, theirs = ({shape.name: shape for shape in stage.manifest.states} for stage in (a, b))
    held_in_a, held_in_b = _held(a), _held(b)
    for name in dict.fromkeys((*ours, *theirs)):
        changes = _changes(held_in_a.get(name, {}), held_in_b.get(name, {}))
        if changes or ours.get(name) != theirs.get(name):
            yield StateDiff(name, ours.get(name) != theirs.get(name), changes)


def _held(stage: OpenedStage) -> Mapping[str, Mapping[int, PartFacts]]:
    found: defaultdict[str, dict[int, PartFacts]] = defaultdict(dict)
    rows = (stage.partitions[name].to_pylist() for name in ("partition", "state", "kept"))
    for partition, state, kept in zip(*rows, strict=True):
        for part in kept:
            found[part["name"]][partition] = (state, part["rows"], part["fingerprint"])
    return found


def _position_diff(a: Position | None, b: Position | None) -> PositionDiff | None:
    if a == b:
        return None
    ours, theirs = _versions(a), _versions(b)
    return PositionDiff(
        None if a is None else str(a),
        None if b is None else str(b),
        _sorted(path for path in ours if path not in theirs),
        _sorted(path for path in theirs if path not in ours),
        _sorted(path for path in ours if path in theirs and ours[path] != theirs[path]),
    )


def _versions(position: Position | None) -> Mapping[str, tuple[int, str]]:
    return {file.path: (file.bytes, file.version) for file in position.files} if isinstance(position, FilesRead) else {}


def _sorted(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(paths))


def change_words(changes: Changes) -> Sequence[tuple[str, tuple[int, ...]]]:
    """Each kind of change for people, with its partitions."""
    words = {
        Change.ONLY_IN_A: "only in A",
        Change.ONLY_IN_B: "only in B",
        Change.STATE: "another state",
        Change.ROWS: "other numbers of rows",
        Change.CONTENT: "other content",
    }
    return [(words[change], partitions) for change, partitions in changes.items()]
