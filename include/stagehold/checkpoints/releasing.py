"""Which stored outputs are released, when all that reads them has finished or when their run has.

What this says is written to the ledger as RELEASED; the data may go from then on. Whoever needs it again has it healed,
as lost data is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import accumulate

from stagehold.model.records import Attempt, AttemptState, PartitionRecord, Run, RunState
from stagehold.model.standing import PartitionState
from stagehold.plan.split.regions import stage_regions
from stagehold.plan.split.shares import all_finished, region_shares
from stagehold.spec.pipeline import OutputType, Pipeline, Stage
from stagehold.spec.settings.run_settings import RetentionSettings
from stagehold.topology.build import partition_name, pipeline_topology
from stagehold.topology.partition_regions import partition_regions, releasable_partitions

Recorded = Mapping[str, Sequence[PartitionRecord]]  # the newest record of each partition, by stage name


def intervals_over(
    newest_runs: Sequence[Run], retained: RetentionSettings, sizes: Mapping[str, int], now: datetime
) -> tuple[str, ...]:
    """Intervals whose outputs go by `release: run_end`.

    :param newest_runs: the newest run of every interval of a pipeline, those that ended last first. One that has not
        finished may be resumed, so it keeps what it has.
    :param sizes: bytes of each interval's outputs that may go.
    """
    together = accumulate(sizes.get(run.interval, 0) for run in newest_runs)
    return tuple(
        run.interval
        for place, (run, size) in enumerate(zip(newest_runs, together, strict=True))
        if run.state is RunState.FINISHED
        and (
            place >= retained.intervals
            or (retained.age is not None and now - (run.ended_at or run.started_at) > retained.age)
            or (retained.bytes is not None and size > retained.bytes)
        )
    )


def releasable_stages(pipeline: Pipeline) -> frozenset[str]:
    """Ids of the stages whose outputs may go: those that only stages read."""
    return frozenset(
        stage.id for stage in pipeline.stages if _type_of(stage, pipeline) is not OutputType.BLOCKING_PERSISTENT
    )


def released_at_end(pipeline: Pipeline, recorded: Recorded) -> tuple[PartitionRecord, ...]:
    """What goes of a run that finished and that nobody will go on with."""
    releasable = releasable_stages(pipeline)
    return tuple(record for stage, record in _present(pipeline, recorded) if stage.id in releasable)


def released_at_once(
    pipeline: Pipeline, recorded: Recorded, finished: Mapping[str, Collection[int]]
) -> tuple[PartitionRecord, ...]:
    """What goes while the run goes on.

    :param finished: partitions of every stage, by its name, whose attempts in this run have finished.
    """
    records = {partition_name(stage.name, record.partition): record for stage, record in _present(pipeline, recorded)}
    if not records:
        return ()
    vertices = (partition_name(stage, index) for stage, indices in finished.items() for index in indices)
    regions = partition_regions(pipeline_topology(pipeline))
    releasable = releasable_partitions(regions, dict.fromkeys(vertices, AttemptState.FINISHED))
    return tuple(records[name] for name in dict.fromkeys(releasable) if name in records)


def finished_partitions(pipeline: Pipeline, attempts: Sequence[Attempt]) -> Mapping[str, Collection[int]]:
    """Partitions of every stage, by its name, whose newest attempts have finished.

    :param attempts: all attempts of one run.
    """
    finished: dict[str, set[int]] = defaultdict(set)
    for region in stage_regions(pipeline):
        own = [attempt for attempt in attempts if attempt.region == region.name]
        for share in region_shares(pipeline, region):
            if own and all_finished(own, share):
                for name in region.stages:
                    everything = range(pipeline.stage(name).partitions)
                    finished[name].update(everything if share is None else share.partitions)
    return finished


def as_released(record: PartitionRecord, at: datetime) -> PartitionRecord:
    """What to append to the ledger, so that nobody reads the partition any more. Its files are named by the record
    before it, for as long as they are there.
    """
    return replace(record, state=PartitionState.RELEASED, files=(), reason=None, recorded_at=at)


def _present(pipeline: Pipeline, recorded: Recorded) -> Iterator[tuple[Stage, PartitionRecord]]:
    for stage in pipeline.stages:
        for record in recorded.get(stage.name, ()):
            if record.state.readable:
                yield stage, record


def _type_of(stage: Stage, pipeline: Pipeline) -> OutputType:
    """A result stays, whether it has a name or not. What was stored since a larger attempt failed is stored like
    anything else.
    """
    if pipeline.is_result(stage):
        return OutputType.BLOCKING_PERSISTENT
    return stage.output.type if stage.output.type.stored else OutputType.BLOCKING
