"""What must hold in a region whose partitions go together:
because tasks split them, or because stages are co-located.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stagehold.model.graph import fused
from stagehold.model.units import AUTO
from stagehold.spec.draft import Draft
from stagehold.spec.form import show
from stagehold.spec.outputs import properties_of
from stagehold.spec.pipeline import Exchange
from stagehold.spec.yaml import Problem

CUT_ALIKE = "only where all stages that run together are cut alike"


def check_shares(draft: Draft) -> Iterator[Problem]:
    doubtful = draft.is_doubtful("speculation") or draft.is_doubtful("stages")
    if (
        draft.form.speculation is not None
        and not doubtful
        and all(stage.max_parallel_tasks == 1 for stage in draft.stages.values())
    ):
        yield Problem(
            ("speculation",),
            "a mapping",
            "only with max_parallel_tasks on a stage: a task helps with other shares of its region",
        )
    for region in regions_of(draft):
        yield from _check_tasks(draft, region)
        yield from _check_co_location(draft, region)


def regions_of(draft: Draft) -> Iterator[tuple[str, ...]]:
    """Stages that become one task: joined by outputs that are consumed while they are produced, or by their author."""
    names = list(draft.stages)
    glued = (
        (names.index(producer), names.index(reader))
        for reader in names
        for producer in draft.edges(reader)
        if producer in draft.stages and properties_of(draft.types[producer]).consumed_while_produced
    )
    for component in fused(glued, [draft.stages[name].co_location for name in names]):
        yield tuple(names[place] for place in component)


def _check_tasks(draft: Draft, region: Sequence[str]) -> Iterator[Problem]:
    split = {
        name: draft.stages[name].max_parallel_tasks for name in region if draft.stages[name].max_parallel_tasks > 1
    }
    for name, tasks in split.items():
        path, count = ("stages", name, "max_parallel_tasks"), draft.counts.get(name)
        gathers = any(edge.exchange is Exchange.GATHER for edge in draft.edges(name).values())
        if count is not None and name not in draft.auto and tasks > count:
            yield Problem(
                path,
                show(tasks),
                f"at most the stage's partitions, {count}{', since it gathers its input' if gathers else ''}",
            )
        if name in draft.auto:
            yield Problem(
                path,
                f"{tasks} with partitions: {AUTO}",
                "a fixed number of partitions: tasks are made before the run decides it",
            )
        if tasks != max(split.values()):
            yield Problem(path, show(tasks), f"one number for all stages that run together: {', '.join(split)}")
        obstacle = _cut_differently(draft, region)
        if obstacle:
            yield Problem(path, f"{tasks}, but {obstacle}", CUT_ALIKE)


def _check_co_location(draft: Draft, region: Sequence[str]) -> Iterator[Problem]:
    groups = {name: draft.stages[name].co_location for name in region if draft.stages[name].co_location is not None}
    for name, group in groups.items():
        path = ("stages", name, "co_location")
        if list(groups.values()).count(group) == 1:
            yield Problem(
                path, show(group), "the name that another stage has, too: the two are computed by the same tasks"
            )
        obstacle = _cut_differently(draft, region)
        if obstacle:
            yield Problem(path, f"{group}, but {obstacle}", CUT_ALIKE)


def _cut_differently(draft: Draft, region: Sequence[str]) -> str | None:
    """Why partition i of these stages cannot be made from partition i of the others, if so."""
    found = {name: f"{AUTO} ({draft.auto[name]})" if name in draft.auto else draft.counts.get(name) for name in region}
    counts = {name: count for name, count in found.items() if count is not None}
    if len(set(counts.values())) > 1:
        return " and ".join(f"{name} has {count}" for name, count in counts.items()) + " partitions"
    for reader in region:
        for producer, edge in draft.edges(reader).items():
            if producer in region and edge.exchange is not Exchange.FORWARD:
                return f"{reader} reads {producer} {edge.exchange}"
    return None
