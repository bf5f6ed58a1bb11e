"""What the checks look at: the readable part of a pipeline, which fields of it are not to be trusted, and what follows
from the shape of its graph, also while it is still being checked: order, cycles, counts, types, keys.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from stagehold.model.units import AUTO
from stagehold.spec.form import PipelineForm, StageForm
from stagehold.spec.outputs import Chosen, StageExchange, output_types
from stagehold.spec.pipeline import Exchange, InputForm, OutputType
from stagehold.spec.settings.output_settings import TypeReason
from stagehold.spec.yaml import FieldPath


@dataclass(frozen=True)
class Draft:
    """``broken`` are fields that already have a problem: the form lacks them, and nothing is concluded from that."""

    form: PipelineForm
    file: str
    data: Mapping[str, Any]
    broken: frozenset[FieldPath]
    project: Path
    suites: Path

    @property
    def file_of_project(self) -> str | None:
        """The file as the project knows it; None for one that is elsewhere, or of Python: queries are read in YAML."""
        file, project = Path(self.file).absolute(), self.project.absolute()
        found = file.is_file() and file.suffix == ".yaml" and file.is_relative_to(project)
        return file.relative_to(project).as_posix() if found else None

    @property
    def stages(self) -> Mapping[str, StageForm]:
        return self.form.stages

    @property
    def declared(self) -> tuple[str, ...]:
        """Names of all stages, unreadable ones included."""
        stages = self.data.get("stages")
        return tuple(stages) if isinstance(stages, Mapping) else ()

    @property
    def order(self) -> tuple[str, ...]:
        return self._order_and_cycles[0]

    @property
    def cycles(self) -> tuple[tuple[str, ...], ...]:
        return self._order_and_cycles[1]

    @cached_property
    def counts(self) -> Mapping[str, int | None]:
        """Partitions by stage, where they follow from readable fields."""
        doubtful = frozenset(
            path[1] for path in self.broken if path[2:3] in (("inputs",), ("source",), ("partitions",))
        )
        return partition_counts(self.order, self.stages, doubtful)

    @cached_property
    def auto(self) -> Mapping[str, str]:
        """The stage with `partitions: auto` whose number a stage takes, for those that take one."""
        return auto_stages(self.order, self.stages)

    @cached_property
    def chosen(self) -> Mapping[str, Chosen]:
        """The type of every output, given or chosen, and why it has that."""
        return chosen_types(self.form)

    @cached_property
    def types(self) -> Mapping[str, OutputType]:
        return {name: kind for name, (kind, _) in self.chosen.items()}

    def is_broken(self, *path: str) -> bool:
        """Whether ``path`` or something around it could not be read."""
        return any(path[:length] in self.broken for length in range(len(path) + 1))

    def is_doubtful(self, *path: str) -> bool:
        """Whether ``path`` or something in it could not be read."""
        return self.is_broken(*path) or any(broken[: len(path)] == path for broken in self.broken)

    def edges(self, stage: str) -> Mapping[str, InputForm]:
        """Readable inputs of a stage."""
        edges = self.stages[stage].inputs
        return {
            name: edge
            for name, edge in edges.items()
            if not self.is_broken("stages", stage, "inputs", name, "exchange")
        }

    @cached_property
    def _order_and_cycles(self) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
        return order_and_cycles(
            {name: tuple(edge for edge in stage.inputs if edge in self.stages) for name, stage in self.stages.items()}
        )


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


def partition_counts(
    order: Iterable[str], stages: Mapping[str, StageForm], doubtful: Collection[str] = ()
) -> dict[str, int | None]:
    """Output partitions by stage; None where they are decided later, or the file does not tell,
    or tells wrongly (``doubtful``).
    """
    counts: dict[str, int | None] = {}
    for name in order:
        given = stages[name].partitions
        counts[name] = (
            given
            if isinstance(given, int)
            else None
            if given == AUTO or name in doubtful
            else _implied(stages[name], counts)
        )
    return counts


def auto_stages(order: Iterable[str], stages: Mapping[str, StageForm]) -> dict[str, str]:
    """The stage, maybe itself, from which each stage has its number of partitions that is decided later.

    That is one with `partitions: auto`, or with a source that is split by size.
    """
    roots: dict[str, str] = {}
    for name in order:
        forward = [producer for producer, edge in stages[name].inputs.items() if edge.exchange is Exchange.FORWARD]
        inherited = [roots[producer] for producer in forward if producer in roots]
        source = stages[name].source
        if stages[name].partitions == AUTO or (source is not None and source.by_size):
            roots[name] = name
        elif inherited and stages[name].partitions is None:
            roots[name] = inherited[0]
    return roots


def chosen_types(form: PipelineForm) -> Mapping[str, Chosen]:
    """The type of every stage's output; one that nobody reads is stored."""
    exchanges = [
        StageExchange(producer, reader, edge.exchange)
        for reader, stage in form.stages.items()
        for producer, edge in stage.inputs.items()
    ]
    given = {name: stage.output.type for name, stage in form.stages.items() if "type" in stage.output.model_fields_set}
    stored = dict(_to_be_stored(form))
    split = [name for name, stage in form.stages.items() if stage.max_parallel_tasks > 1 or stage.co_location]
    read = output_types(exchanges, form.execution_mode, given=given, stored=stored, split=split)
    return {name: read.get(name, (OutputType.BLOCKING, TypeReason.UNREAD)) for name in form.stages}


def _to_be_stored(form: PipelineForm) -> Iterator[tuple[str, TypeReason]]:
    """Outputs that no mode may let flow."""
    for reader in form.stages.values():
        if reader.partitions == AUTO:
            yield from (
                (name, TypeReason.AUTO) for name, edge in reader.inputs.items() if edge.exchange is Exchange.KEYED
            )
    for name, stage in form.stages.items():
        for needed, why in (
            (stage.gate, TypeReason.GATE),
            (stage.state, TypeReason.STATE),
            (stage.output.columns, TypeReason.COLUMNS),
            (stage.script, TypeReason.SCRIPT),
        ):
            if needed:
                yield name, why


def key_of(stage: StageForm) -> tuple[str, ...]:
    """Output columns that tell a row's partition; by default the columns of the first keyed input."""
    return stage.key or next((edge.key for edge in stage.inputs.values() if edge.exchange is Exchange.KEYED), ())


def _implied(stage: StageForm, counts: Mapping[str, int | None]) -> int | None:
    if stage.source is not None:
        return stage.source.count
    exchanges = {edge.exchange for edge in stage.inputs.values()}
    forward = [counts.get(name) for name, edge in stage.inputs.items() if edge.exchange is Exchange.FORWARD]
    if forward:
        return next((count for count in forward if count is not None), None)
    return 1 if exchanges and Exchange.KEYED not in exchanges else None
