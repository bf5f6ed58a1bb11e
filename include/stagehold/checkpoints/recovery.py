"""How a batch run goes on after its coordinator was lost: what is still finished, and what has to run again.

A log says what was finished; only asking says what of that still exists. Data that somebody will still read is reserved
and asked for. What is missing of it makes its producer run again by the rule of region failover, in which all other
data counts as gone: optional data may be deleted at any moment. So losing one late partition can lead back to a source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from stagehold.checkpoints.run_log import LogEvent, Replayed, replay
from stagehold.errors import RunLogCorrupt, StageholdError
from stagehold.model.records import AttemptState
from stagehold.spec.outputs import properties_of
from stagehold.topology.failover import (
    Availability,
    FailoverPlan,
    FailureSituation,
    Reached,
    RestartCause,
    VertexFailure,
    region_failover,
    spread,
)
from stagehold.topology.partition_regions import PartitionRegions
from stagehold.topology.topology import ResultPartition, Topology


class DataNeed(StrEnum):
    """What is done with a partition's data during recovery."""

    RESERVED = "reserved"  # somebody still has to read it, or it is a result
    OPTIONAL = "optional"  # all who read it have finished
    RELEASED = "released"  # its producer has not finished


@dataclass(frozen=True)
class RunAgain:
    """A vertex that had finished and is computed again all the same."""

    vertex: str
    reason: str


@dataclass(frozen=True)
class RecoveryPlan:
    """What a new coordinator starts from. All vertices that are not ``finished`` have to run.

    :param unrecovered: finished stages whose sources cannot say which splits they gave out; see
      `failover_after_recovery`.
    :param start_over: why nothing of the log can be used, when nothing can: the log is cleared and everything runs.
    """

    finished: tuple[str, ...] = ()
    again: tuple[RunAgain, ...] = ()
    data: Mapping[str, DataNeed] | None = None
    unrecovered: frozenset[str] = frozenset()
    start_over: str | None = None


def recover_run(
    regions: PartitionRegions,
    log: Iterable[LogEvent],
    exists: Availability,
    *,
    without_snapshots: frozenset[str] = frozenset(),
) -> RecoveryPlan:
    """Replay the log, ask for the data that is still needed, and decide what runs again.

    :param exists: asked once for each reserved partition that can be read twice.
    :param without_snapshots: stages whose source cannot save which splits it gave out.
    """
    try:
        return _recover(regions, _known(replay(log), regions.topology), exists, without_snapshots)
    except StageholdError as error:
        return RecoveryPlan(start_over=str(error))


def failover_after_recovery(
    situation: FailureSituation, failure: VertexFailure, unrecovered: frozenset[str]
) -> tuple[FailoverPlan, frozenset[str]]:
    """Region failover in a recovered run, and the stages that are unrecovered after it.

    A restart that touches an unrecovered stage restarts all of it: its source begins anew, and would give out again
    what the partitions that stay have already read. After that the stage is like any other.
    """

    def search(whole: tuple[str, ...]) -> FailoverPlan:
        return region_failover(situation, VertexFailure((*failure.vertices, *whole), failure.missing))

    return _with_whole_stages(situation.regions.topology, unrecovered, search)


def data_needs(topology: Topology, finished: frozenset[str]) -> Mapping[str, DataNeed]:
    """What the new coordinator wants of every partition, before it asks whether it exists."""
    unread = {
        partition
        for group in topology.groups
        if any(consumer not in finished for consumer in group.consumers)
        for partition in group.partitions
    }
    return {partition.id: _need(partition, topology, finished, unread) for partition in topology.partitions}


def _need(partition: ResultPartition, topology: Topology, finished: frozenset[str], unread: set[str]) -> DataNeed:
    """A result is wanted for itself, not only by those who read it."""
    if partition.producer not in finished:
        return DataNeed.RELEASED
    result = (
        properties_of(partition.type).persistent or not topology.groups_reading[topology.partition_number(partition.id)]
    )
    return DataNeed.RESERVED if result or partition.id in unread else DataNeed.OPTIONAL


def _known(replayed: Replayed, topology: Topology) -> Replayed:
    for vertex in replayed.finished:
        if vertex not in topology.position:
            raise RunLogCorrupt(f"{vertex} finished, and the pipeline has no such vertex")
    return replayed


def _recover(
    regions: PartitionRegions, replayed: Replayed, exists: Availability, without_snapshots: frozenset[str]
) -> RecoveryPlan:
    topology = regions.topology
    begun = without_snapshots & {vertex.stage for vertex in topology.vertices if vertex.id not in replayed.finished}
    forgotten = tuple(vertex for vertex, event in replayed.finished.items() if event.stage in begun)
    finished = frozenset(replayed.finished)
    data = data_needs(topology, finished.difference(forgotten))
    reserved = [name for name, need in data.items() if need is DataNeed.RESERVED]
    found = {name for name in reserved if properties_of(topology.partition(name).type).reconsumable and exists(name)}
    lost = {
        regions.region_with(topology.partition(name).producer): name for name in reversed(reserved) if name not in found
    }
    situation = FailureSituation(regions, dict.fromkeys(finished, AttemptState.FINISHED), found.__contains__)

    def search(whole: tuple[str, ...]) -> FailoverPlan:
        first = {region: Reached(RestartCause.INPUT_LOST, name) for region, name in lost.items()}
        first |= {regions.region_with(vertex): Reached(RestartCause.FAILED) for vertex in (*forgotten, *whole)}
        return spread(situation, first)

    plan, unrecovered = _with_whole_stages(topology, without_snapshots - begun, search)
    again = {
        restart.vertex: _LOST_TRACK if restart.cause is RestartCause.FAILED else restart.reason
        for restart in plan.restarts
    }
    return RecoveryPlan(
        finished=tuple(vertex for vertex in topology.position if vertex in finished and vertex not in again),
        again=tuple(RunAgain(vertex, reason) for vertex, reason in again.items()),
        data=data,
        unrecovered=unrecovered,
    )


_LOST_TRACK = "the source of its stage cannot say which splits it gave out, and gives all of them out again"


def _with_whole_stages(
    topology: Topology, unrecovered: frozenset[str], search: Callable[[tuple[str, ...]], FailoverPlan]
) -> tuple[FailoverPlan, frozenset[str]]:
    """Search again with all of every unrecovered stage that the search touches, until it touches no other."""
    whole: tuple[str, ...] = ()
    plan = search(whole)
    while touched := unrecovered & {topology.vertex(restart.vertex).stage for restart in plan.restarts}:
        whole = (*whole, *(vertex.id for vertex in topology.vertices if vertex.stage in touched))
        unrecovered -= touched
        plan = search(whole)
    return plan, unrecovered
