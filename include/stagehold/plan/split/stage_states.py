"""The state of a stage in a run: those of its partitions, folded as Flink folds those of a job vertex' tasks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from stagehold.model.records import Attempt, AttemptState, PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.model.states import ATTEMPT, folded
from stagehold.plan.split.regions import stage_regions
from stagehold.plan.split.shares import newest_covering, share_of
from stagehold.spec.pipeline import Pipeline, Stage


def stage_states(
    pipeline: Pipeline,
    run_id: str,
    attempts: Sequence[Attempt],
    recorded: Mapping[str, Sequence[PartitionRecord]],
    lost: Collection[str] = (),
) -> Mapping[str, AttemptState]:
    """The state of each stage that is declared, by its id; what no attempt of the run came to yet is CREATED.

    :param pipeline: with the numbers of partitions that were decided for the interval.
    :param attempts: of the run; those that are ``lost``, by id, died without recording an end.
    :param recorded: the newest record of each partition, by stage id, whichever run made it.
    """
    return {
        stage.id: folded(_partition_states(stage, run_id, own, recorded.get(stage.id, ()), lost))
        for region in stage_regions(pipeline)
        for own in [[attempt for attempt in attempts if attempt.region == region.name]]
        for stage in map(pipeline.stage, region.stages)
    }


def _partition_states(
    stage: Stage,
    run_id: str,
    attempts: Iterable[Attempt],
    recorded: Iterable[PartitionRecord],
    lost: Collection[str],
) -> Iterator[AttemptState]:
    records = {record.partition: record for record in recorded}
    newest: dict[int, Attempt] = {}
    for attempt in newest_covering(attempts, None):
        share = share_of(attempt)
        for partition in share.partitions if share else range(stage.partitions):
            newest.setdefault(partition, attempt)
    for partition in range(stage.partitions):
        last, record = newest.get(partition), records.get(partition)
        if last is None:
            yield AttemptState.CREATED
        elif last.state is AttemptState.FINISHED:
            yield AttemptState.FINISHED if _is_there(record, stage) else AttemptState.CREATED
        elif record is not None and record.run_id == run_id and record.state.counts_as_done:
            yield AttemptState.FINISHED
        else:
            dead = last.attempt_id in lost and not ATTEMPT.is_terminal(last.state)
            yield AttemptState.FAILED if dead else last.state


def _is_there(record: PartitionRecord | None, stage: Stage) -> bool:
    """Whether what a finished attempt had made or reused was not lost since; what is not stored cannot be."""
    if record is None:
        return not stage.output.type.stored
    return record.state is not PartitionState.DAMAGED
