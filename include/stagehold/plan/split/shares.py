"""How the partitions of a region are split over parallel tasks, and which attempts had a partition last."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING

from stagehold.model.partition_set import Share
from stagehold.model.records import Attempt, AttemptState

if TYPE_CHECKING:
    from stagehold.plan.split.regions import Region
    from stagehold.spec.pipeline import Pipeline


def shares(partitions: int, tasks: int) -> tuple[Share, ...]:
    """Cut ``partitions`` into contiguous shares, one per task, whose sizes differ by at most one; no share is empty."""
    count = min(partitions, tasks)
    starts = [index * partitions // count for index in range(count + 1)]
    return tuple(Share(first, following - 1) for first, following in pairwise(starts))


def region_shares(pipeline: Pipeline, region: Region) -> tuple[Share | None, ...]:
    """The share of each task of a region; a region that is not split has one task for everything."""
    stages = [pipeline.stage(name) for name in region.stages]
    tasks = max(stage.max_parallel_tasks for stage in stages)
    return shares(stages[0].partitions, tasks) if tasks > 1 else (None,)


def asks_for_splits(pipeline: Pipeline, region: Region) -> bool:
    """Whether the tasks of a region that is split take what nobody has, instead of each just its own share."""
    sources = (pipeline.stage(name).source for name in region.stages)
    asked = any(source is not None and source.asked_for for source in sources)
    return asked and None not in region_shares(pipeline, region)


def next_splits(
    to_do: Collection[int], held: Collection[Share], own: Share, before: Collection[Share], tasks: int
) -> Share | None:
    """What a task takes next of the splits ``to_do``: neighbours that nobody holds, at most half of what each task
    would get of the rest, so that the last ones are taken one by one. None if nothing is free.

    It begins with what it had taken ``before``, as after a failure, and with its ``own`` share.
    """
    free = {split for split in to_do if not any(split in share for share in held)}
    mine = {split for split in free if any(split in share for share in before)}
    home = free & set(own.partitions)
    among = mine or home or free
    if not among:
        return None
    first = last = min(among)
    most = max(1, len(free) // (2 * tasks))
    while last + 1 in among and last + 1 - first < most:
        last += 1
    return Share(first, last)


def newest_covering(attempts: Iterable[Attempt], share: Share | None) -> tuple[Attempt, ...]:
    """The newest attempts of a region for the partitions of ``share``: each attempt once, newest first.

    Partitions are followed one by one, since older attempts may have been cut differently.
    """
    newest: list[Attempt] = []
    left = None if share is None else set(share.partitions)
    seen: set[int] = set()
    for attempt in _newest_first(attempts):
        part = share_of(attempt)
        fresh = set(part.partitions) - seen if part else None
        if left is not None:
            fresh = left if fresh is None else fresh & left
            left = left - fresh
        if fresh is None or fresh:
            newest.append(attempt)
        if fresh is None or left == set():
            break
        seen |= fresh
    return tuple(newest)


def _newest_first(attempts: Iterable[Attempt]) -> list[Attempt]:
    """The attempts by epoch, which tells the order best. An attempt without an epoch stands behind those that began
    before it did.
    """
    known = list(attempts)

    def order(attempt: Attempt) -> tuple[int, bool, datetime]:
        earlier = (other.epoch for other in known if other.started_at <= attempt.started_at)
        return (attempt.epoch if attempt.began else max(earlier)), not attempt.began, attempt.started_at

    return sorted(known, key=order, reverse=True)


def all_finished(attempts: Iterable[Attempt], share: Share | None) -> bool:
    """Whether the newest attempt of every partition of ``share`` has finished."""
    newest = newest_covering(attempts, share)
    if any(attempt.state is not AttemptState.FINISHED for attempt in newest):
        return False
    parts = [share_of(attempt) for attempt in newest]
    return None in parts or (
        share is not None
        and set(share.partitions) <= {partition for part in parts if part for partition in part.partitions}
    )


def share_of(attempt: Attempt) -> Share | None:
    return Share.parse(attempt.share) if attempt.share else None
