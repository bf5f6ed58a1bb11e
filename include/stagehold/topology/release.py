"""Which partitions may be deleted before the run ends: those whose every reading region has finished.

Releasing early saves space and costs recomputation, since a later failure may then reach back to the sources.
"""

from __future__ import annotations

from collections.abc import Mapping

from stagehold.model.records import AttemptState
from stagehold.spec.outputs import ReleasedBy, properties_of
from stagehold.spec.pipeline import OutputType
from stagehold.topology.partition_regions import PartitionRegions


def releasable_partitions(regions: PartitionRegions, states: Mapping[str, AttemptState]) -> tuple[str, ...]:
    """What may be deleted when vertices are in these states, in the order of the topology.

    A partition without readers is not released early, and neither is a persistent one, nor one its producer releases.
    """
    topology = regions.topology
    finished = [all(states.get(name) is AttemptState.FINISHED for name in region) for region in regions.regions]
    read = [all(finished[region] for region in readers) for readers in regions.reading]
    return tuple(
        partition.id
        for partition, groups in zip(topology.partitions, topology.groups_reading, strict=True)
        if groups and all(read[group] for group in groups) and _released_early(partition.type)
    )


def _released_early(kind: OutputType) -> bool:
    properties = properties_of(kind)
    return properties.released_by is ReleasedBy.SCHEDULER and not properties.persistent
