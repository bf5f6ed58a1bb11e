"""Why a checkpoint was given up, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from stagehold.model.checkpoint_records import Acknowledgement, Answer, CheckpointFailure
from stagehold.model.units import write_duration

_TEXTS: Mapping[CheckpointFailure, str] = {
    CheckpointFailure.CHECKPOINT_SUBSUMED: "a newer one was complete before it",
    CheckpointFailure.CHECKPOINT_COORDINATOR_SUSPEND: "whoever took it ended, or the run did not go on, before its end",
    CheckpointFailure.JOB_FAILOVER_REGION: "an attempt of the run failed or was replaced before its end",
}


def failure_text(
    reason: CheckpointFailure, answers: Sequence[Acknowledgement], timeout: int, error: Exception | None
) -> str:
    """
    :param timeout: in milliseconds.
    :param error: what kept it from being written.
    """
    if error is not None:
        return f"{type(error).__name__}: {error}"
    if reason is CheckpointFailure.CHECKPOINT_EXPIRED:
        late = ", ".join(one.subject for one in answers if one.answer is None)
        return f"not acknowledged within {write_duration(timedelta(milliseconds=timeout))} by {late or 'all'}"
    declined = ", ".join(one.subject for one in answers if one.answer is Answer.DECLINED)
    if declined and reason not in _TEXTS:
        return f"{declined} declined: {reason.replace('_', ' ')}"
    return _TEXTS.get(reason, reason.replace("_", " "))
