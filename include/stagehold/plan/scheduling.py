"""What to start, and when: lazily by region, or everything at once.

A strategy is told what happened and answers with batches to start; it starts nothing itself. It remembers what it has
answered, so one strategy belongs to one run, and its calls must come one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from stagehold.model.output_types import properties_of
from stagehold.model.records import AttemptState
from stagehold.model.topology import Topology
from stagehold.plan.partition_regions import PartitionRegions


@dataclass(frozen=True, slots=True)
class Batch:
    """Vertices that are started together: all their slots are asked for at once."""

    vertices: tuple[str, ...]


class SchedulingStrategy(Protocol):
    """Answers every event with the batches to start because of it, in topological order."""

    def start(self) -> tuple[Batch, ...]:
        """The run begins."""

    def restart(self, vertices: Iterable[str]) -> tuple[Batch, ...]:
        """``vertices`` were reset by a failover; their outputs are to be produced again."""

    def state_changed(self, vertex: str, state: AttemptState) -> tuple[Batch, ...]:
        """A vertex is in a new state."""

    def partition_consumable(self, partition: str) -> tuple[Batch, ...]:
        """A partition is committed, gated and recorded, by this run or an earlier one."""


class EagerStrategy:
    """Everything starts at the beginning, and what failed starts again at once."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology

    def start(self) -> tuple[Batch, ...]:
        return self.restart(vertex.id for vertex in self._topology.vertices)

    def restart(self, vertices: Iterable[str]) -> tuple[Batch, ...]:
        wanted = {self._topology.vertex(vertex).id for vertex in vertices}
        batch = tuple(vertex for vertex in self._topology.position if vertex in wanted)
        return (Batch(batch),) if batch else ()

    def state_changed(self, vertex: str, state: AttemptState) -> tuple[Batch, ...]:  # noqa: ARG002
        return ()

    def partition_consumable(self, partition: str) -> tuple[Batch, ...]:  # noqa: ARG002
        return ()


@dataclass(slots=True)
class _Need:
    """Partitions that some regions wait for before they start: those of one exchange group, from outside the regions."""

    regions: tuple[int, ...]
    missing: int


class LazyRegionStrategy:
    """A region starts when every partition that it reads from outside can be consumed.

    Partitions count, not regions or stages: the producer's own region need not be finished, and no other partition of the
    producing stage is waited for. A region is started once until it is restarted.
    """

    def __init__(self, regions: PartitionRegions) -> None:
        self._regions = regions
        self._consumable = bytearray(len(regions.topology.partitions))
        self._started: set[int] = set()
        self._waits = [0] * len(regions.members)  # unsatisfied needs of every region
        self._needs: list[list[_Need]] = [[] for _ in regions.topology.partitions]
        for group in range(len(regions.topology.groups)):
            self._add_needs(group)

    def start(self) -> tuple[Batch, ...]:
        return self._start_ready(range(len(self._waits)))

    def restart(self, vertices: Iterable[str]) -> tuple[Batch, ...]:
        regions = {self._regions.region_with(vertex) for vertex in vertices}
        self._started -= regions
        for region in regions:
            for vertex in self._regions.members[region]:
                for output in self._regions.topology.outputs[vertex]:
                    self._produced_again(output)
        return self._start_ready(regions)

    def state_changed(self, vertex: str, state: AttemptState) -> tuple[Batch, ...]:
        outputs = self._regions.topology.outputs[self._regions.topology.vertex_number(vertex)]
        if state is not AttemptState.FINISHED:
            return ()
        return self._start_ready({region for output in outputs for region in self._satisfied(output)})

    def partition_consumable(self, partition: str) -> tuple[Batch, ...]:
        return self._start_ready(self._satisfied(self._regions.topology.partition_number(partition)))

    def _add_needs(self, group: int) -> None:
        """One need for all readers that produce nothing of the group, and one for the single region that may do both.

        Two regions that both produce and read a group would wait for each other, so they are one.
        """
        found = self._regions
        if properties_of(found.topology.groups[group].type).consumed_while_produced:
            return
        partitions = found.topology.group_partitions[group]
        itself = set(found.producing[group]).intersection(found.reading[group])
        self._add_need(partitions, tuple(region for region in found.reading[group] if region not in itself))
        for region in itself:
            self._add_need([number for number in partitions if found.producer(number) != region], (region,))

    def _add_need(self, partitions: Sequence[int], regions: tuple[int, ...]) -> None:
        need = _Need(regions, len(partitions))
        for partition in partitions:
            self._needs[partition].append(need)
        if partitions:
            for region in regions:
                self._waits[region] += 1

    def _satisfied(self, partition: int) -> set[int]:
        """Count a partition as consumable; the regions that wait for one thing less."""
        if self._consumable[partition]:
            return set()
        self._consumable[partition] = True
        candidates: set[int] = set()
        for need in self._needs[partition]:
            need.missing -= 1
            if need.missing == 0:
                candidates.update(need.regions)
                for region in need.regions:
                    self._waits[region] -= 1
        return candidates

    def _produced_again(self, partition: int) -> None:
        if not self._consumable[partition]:
            return
        self._consumable[partition] = False
        for need in self._needs[partition]:
            need.missing += 1
            if need.missing == 1:
                for region in need.regions:
                    self._waits[region] += 1

    def _start_ready(self, candidates: Iterable[int]) -> tuple[Batch, ...]:
        ready = sorted(region for region in candidates if self._waits[region] == 0 and region not in self._started)
        self._started.update(ready)
        return tuple(Batch(self._regions.regions[region]) for region in ready)
