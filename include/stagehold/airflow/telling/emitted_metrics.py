"""Metrics of an attempt, sent by whatever Airflow sends its own metrics by: StatsD, DogStatsD or OpenTelemetry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from airflow.sdk.observability import stats

from stagehold.airflow.telling.task_work import StageWork
from stagehold.model.checkpoint_records import CheckpointRecord, CheckpointState
from stagehold.model.standing import counted_in_all

COMPUTED = "stagehold.partitions.computed"
REUSED = "stagehold.partitions.reused"
WAVES = "stagehold.waves"
REUSE_SHARE = "stagehold.reuse_share"
CHECKPOINT_AGE = "stagehold.checkpoint_age"
VERDICTS = "stagehold.gate.verdicts"
COUNTER = "stagehold.counter"


def send_work(pipeline: str, work: Iterable[StageWork]) -> None:
    for one in work:
        tags = {"pipeline": pipeline, "stage": one.stage.name}
        computed, reused = len(one.computed), len(one.reused)
        stats.incr(COMPUTED, computed, tags=tags)
        stats.incr(REUSED, reused, tags=tags)
        stats.incr(WAVES, one.waves, tags=tags)
        if computed or reused:
            stats.gauge(REUSE_SHARE, round(reused / (computed + reused), 4), tags=tags)
        for name, count in counted_in_all(one.computed):
            stats.incr(COUNTER, count, tags={**tags, "counter": name})
        said = Counter((str(each.severity), "passed" if each.passed else "failed") for each in one.judged)
        for (severity, verdict), count in said.items():
            stats.incr(VERDICTS, count, tags={**tags, "severity": severity, "verdict": verdict})


def send_checkpoint_age(pipeline: str, checkpoints: Sequence[CheckpointRecord], now: datetime) -> None:
    """Send how many seconds ago the run's newest checkpoint was complete; nothing before there is one."""
    ended = [one.ended_at for one in checkpoints if one.state is CheckpointState.COMPLETED and one.ended_at is not None]
    if ended:
        stats.gauge(CHECKPOINT_AGE, round((now - max(ended)).total_seconds(), 1), tags={"pipeline": pipeline})
