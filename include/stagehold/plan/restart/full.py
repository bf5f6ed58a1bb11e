"""`failover: full`: a failure makes worthless all that its run has computed until then, whatever region it was in.

What earlier runs of the interval left counts as before. An attempt that was under way when another one failed belongs
to what ended then: so does what it records later, and what somebody else records for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from stagehold.model.records import Attempt, AttemptState, PartitionRecord
from stagehold.plan.restart.rules import FENCED

Records = Mapping[str, Sequence[PartitionRecord]]


def last_failure(attempts: Sequence[Attempt]) -> datetime | None:
    """When an attempt of a run failed last. A try that never began, or was overtaken, has cost the run nothing."""
    failed = (one for one in attempts if one.state is AttemptState.FAILED and one.began and one.failure_rule != FENCED)
    return max((one.ended_at for one in failed if one.ended_at is not None), default=None)


def discarded(
    recorded: Records, run_id: str, attempts: Sequence[Attempt], *, as_of: datetime | None = None
) -> Mapping[str, frozenset[int]]:
    """Partitions, by stage, that the run computed before it failed last; one that was computed again since counts.

    :param attempts: those of the run.
    :param as_of: later failures are not known yet; None for all.
    """
    failed = last_failure([one for one in attempts if as_of is None or (one.ended_at and one.ended_at <= as_of)])
    if failed is None:
        return {}
    counting = {one.attempt_id for one in attempts if one.started_at > failed}
    return {
        stage: frozenset(one.partition for one in records if one.run_id == run_id and one.attempt_id not in counting)
        for stage, records in recorded.items()
    }
