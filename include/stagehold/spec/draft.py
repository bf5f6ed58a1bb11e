"""What the checks look at: the readable part of a pipeline, and which fields of it are not to be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from stagehold.spec.form import PipelineForm, StageForm
from stagehold.spec.graph import auto_stages, chosen_types, order_and_cycles, partition_counts
from stagehold.spec.pipeline import InputForm, OutputType
from stagehold.spec.yaml import FieldPath


@dataclass(frozen=True)
class Draft:
    """``broken`` are the fields that already have a problem:
    the form lacks them, and nothing is concluded from that.
    """

    form: PipelineForm
    data: Mapping[str, Any]
    broken: frozenset[FieldPath]
    project: Path
    suites: Path

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
    def types(self) -> Mapping[str, OutputType]:
        """The type of every output, given or chosen."""
        return chosen_types(self.form)

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
