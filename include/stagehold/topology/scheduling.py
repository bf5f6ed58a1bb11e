"""When regions start: Flink's scheduling strategies, told by four calls what happens. Each call says what is to be
deployed now, in topological order; whoever deploys it tells what becomes of it.

`eager` starts everything at once, and what has to wait for its inputs does so after that. In the lazy modes a region
starts when all partitions that it reads of other regions are consumable: its own ones, and not all that their stage
has. A region is deployed from CREATED only, so once, until a restart resets it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from heapq import heappop, heappush
from typing import Protocol

from stagehold.model.records import AttemptState
from stagehold.model.states import ATTEMPT
from stagehold.spec.settings.run_settings import ScheduleMode
from stagehold.topology.partition_regions import PartitionRegions

Deployments = tuple[tuple[str, ...], ...]  # the vertices of each region that starts now


class SchedulingStrategy(Protocol):
    """What to deploy, by what has happened."""

    def start_scheduling(self) -> Deployments: ...

    def restart_tasks(self, vertices: Collection[str]) -> Deployments:
        """Reset the regions of these vertices: what they produced is consumable no more, and they start once again."""
        ...

    def on_execution_state_change(self, vertex: str, state: AttemptState) -> Deployments:
        """With FINISHED, what the vertex produced is consumable."""
        ...

    def on_partition_consumable(self, partition: str) -> Deployments: ...


def scheduling_strategy(
    mode: ScheduleMode, regions: PartitionRegions, *, slots: int, taken: Sequence[int] | None = None
) -> SchedulingStrategy:
    """The strategy of a mode for a graph in which nothing has started.

    :param slots: how many there are for the lazy modes. An eager pipeline has to fit, which `plan.split.task_slots`
        sees to.
    :param taken: slots that each region takes from its start to its end; one, if it is not said, as with
        `lazy_from_sources_with_batch_slot_request`. What needs more than there are runs alone.
    """
    if mode is ScheduleMode.EAGER:
        return _EagerScheduling(regions)
    one = [1] * len(regions.members)
    asked = one if taken is None or mode is not ScheduleMode.LAZY_FROM_SOURCES else taken
    return _RegionScheduling(regions, slots, [min(each, slots) for each in asked])


class _EagerScheduling:
    def __init__(self, regions: PartitionRegions) -> None:
        self._regions = regions

    def start_scheduling(self) -> Deployments:
        return self._regions.regions

    def restart_tasks(self, vertices: Collection[str]) -> Deployments:
        restarted = sorted({self._regions.region_with(vertex) for vertex in vertices})
        return tuple(self._regions.regions[region] for region in restarted)

    def on_execution_state_change(self, vertex: str, state: AttemptState) -> Deployments:  # noqa: ARG002 - all started
        return ()

    def on_partition_consumable(self, partition: str) -> Deployments:  # noqa: ARG002 - all started
        return ()


class _RegionScheduling:
    """Each exchange group counts the partitions that are still to come, so that an event costs no more than the groups
    and readers of one partition. Who is ready waits in the order of the regions; nobody overtakes the first.
    """

    def __init__(self, regions: PartitionRegions, slots: int, taken: Sequence[int]) -> None:
        self._regions, self._topology, self._taken = regions, regions.topology, taken
        self._free = slots
        self._states = [AttemptState.CREATED] * len(self._topology.vertices)
        self._consumable: set[int] = set()
        self._to_come = [len(partitions) for partitions in self._topology.group_partitions]
        self._within = [  # regions that read what they produce themselves, and so wait for the others' part alone
            [region for region in reading if region in producing]
            for reading, producing in zip(regions.reading, regions.producing, strict=True)
        ]
        self._deployed: set[int] = set()
        self._holding: set[int] = set()  # deployed regions that have not ended
        self._waiting: list[int] = []  # a heap of regions that were ready when they were put there
        self._outputs = self._topology.outputs

    def start_scheduling(self) -> Deployments:
        return self._deploy(range(len(self._regions.members)))

    def restart_tasks(self, vertices: Collection[str]) -> Deployments:
        restarted = {self._regions.region_with(vertex) for vertex in vertices}
        for region in restarted:
            self._give_back(region)
            self._deployed.discard(region)
            for number in self._regions.members[region]:
                self._states[number] = AttemptState.CREATED
                self._withdraw(self._outputs[number])
        return self._deploy(restarted)

    def on_execution_state_change(self, vertex: str, state: AttemptState) -> Deployments:
        number = self._topology.vertex_number(vertex)
        self._states[number] = state
        region = self._regions.region_of[number]
        if all(ATTEMPT.is_terminal(self._states[member]) for member in self._regions.members[region]):
            self._give_back(region)
        produced = self._outputs[number] if state is AttemptState.FINISHED else ()
        return self._deploy(self._readers_of(produced))

    def on_partition_consumable(self, partition: str) -> Deployments:
        return self._deploy(self._readers_of([self._topology.partition_number(partition)]))

    def _readers_of(self, partitions: Iterable[int]) -> list[int]:
        """The regions that may be ready now that these partitions are consumable."""
        readers: list[int] = []
        for partition in set(partitions) - self._consumable:
            self._consumable.add(partition)
            for group in self._topology.groups_reading[partition]:
                self._to_come[group] -= 1
                readers.extend(self._within[group] if self._to_come[group] else self._regions.reading[group])
        return readers

    def _withdraw(self, partitions: Iterable[int]) -> None:
        for partition in self._consumable.intersection(partitions):
            self._consumable.remove(partition)
            for group in self._topology.groups_reading[partition]:
                self._to_come[group] += 1

    def _give_back(self, region: int) -> None:
        if region in self._holding:
            self._holding.remove(region)
            self._free += self._taken[region]

    def _deploy(self, candidates: Iterable[int]) -> Deployments:
        for region in set(candidates):
            if self._is_ready(region):
                heappush(self._waiting, region)
        deployed = []
        while self._waiting:
            first = self._waiting[0]
            if not self._is_ready(first):  # started meanwhile, or an input was reset
                heappop(self._waiting)
            elif self._taken[first] > self._free:
                break
            else:
                heappop(self._waiting)
                self._deployed.add(first)
                self._holding.add(first)
                self._free -= self._taken[first]
                deployed.append(self._regions.regions[first])
        return tuple(deployed)

    def _is_ready(self, region: int) -> bool:
        return (
            region not in self._deployed
            and all(self._states[member] is AttemptState.CREATED for member in self._regions.members[region])
            and all(self._is_there(group, region) for group in self._regions.groups_read[region])
        )

    def _is_there(self, group: int, region: int) -> bool:
        """Whether the region need not wait for the group: what it produces itself never holds it back."""
        if not self._to_come[group]:
            return True
        if region not in self._regions.producing[group]:
            return False
        others = (one for one in self._topology.group_partitions[group] if self._regions.producer(one) != region)
        return all(partition in self._consumable for partition in others)
