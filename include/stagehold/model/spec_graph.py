"""The shape of the graph while it is still being checked: order, cycles, partition counts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from graphlib import CycleError, TopologicalSorter

from stagehold.model.spec import Exchange
from stagehold.model.spec_form import StageForm

Producers = Mapping[str, tuple[str, ...]]


def order_and_cycles(producers: Producers) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Stages so that producers come first, and the cycles, each cut once so that the order covers all stages."""
    kept = {name: list(inputs) for name, inputs in producers.items()}
    cycles: list[tuple[str, ...]] = []
    while True:
        sorter = TopologicalSorter[str]({name: () for name in kept})
        for name, inputs in kept.items():
            sorter.add(name, *inputs)
        try:
            return tuple(sorter.static_order()), tuple(cycles)
        except CycleError as error:
            cycle: list[str] = error.args[1]
            cycles.append(tuple(cycle))
            kept[cycle[-1]].remove(cycle[-2])


def partition_counts(order: Iterable[str], stages: Mapping[str, StageForm], doubtful: Collection[str] = ()) -> dict[str, int | None]:
    """Output partitions by stage; None where the file does not tell, or tells wrongly (``doubtful``)."""
    counts: dict[str, int | None] = {}
    for name in order:
        counts[name] = stages[name].partitions or (None if name in doubtful else _implied(stages[name], counts))
    return counts


def _implied(stage: StageForm, counts: Mapping[str, int | None]) -> int | None:
    if stage.source is not None:
        return stage.source.splits
    exchanges = {edge.exchange for edge in stage.inputs.values()}
    forward = [counts.get(name) for name, edge in stage.inputs.items() if edge.exchange is Exchange.FORWARD]
    if forward:
        return next((count for count in forward if count is not None), None)
    return 1 if exchanges and Exchange.KEYED not in exchanges else None
