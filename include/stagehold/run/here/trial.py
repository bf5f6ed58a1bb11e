"""One partition of a stage, computed and judged for its author: nothing is written or recorded."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stagehold.gates.judge import judge_together
from stagehold.gates.suite import Suite
from stagehold.gates.verdicts import GateVerdict
from stagehold.lake.declared_columns import refuse_nulls
from stagehold.lake.measure import count_nulls
from stagehold.model.choices import Severity
from stagehold.run.equipment.workplace import Progress
from stagehold.run.here.stage_frames import stage_frames
from stagehold.run.planning.planning import RunRequest
from stagehold.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class StageTrial:
    """What a stage makes of one partition now: its first ``rows``, how many there are in all, and what its gate says.

    ``along`` are stages whose output was not there, so that it was computed on the way. ``counters`` are those of its
    function.
    """

    columns: tuple[str, ...]
    rows: Sequence[Mapping[str, Any]]
    count: int
    seconds: float
    verdicts: tuple[GateVerdict, ...]
    along: tuple[str, ...]
    counters: Mapping[str, int] = field(default_factory=dict)

    @property
    def refused(self) -> bool:
        return any(not verdict.passed and verdict.severity is Severity.CRITICAL for verdict in self.verdicts)


def try_stage(
    request: RunRequest, stage: str, partition: int, settings: Settings, progress: Progress, *, most: int
) -> StageTrial:
    """Compute a partition of a stage as a run would, from outputs that are consumable; others are computed on the way.

    Nothing is left in lake or ledger. Outputs that are there are read whatever they were made from.

    :param most: how many rows are shown.
    :raises InvalidArgument: the stage has no such partition
    :raises StageholdError: what a run of the stage would raise
    """
    with stage_frames(request, stage, (partition,), settings, progress) as found:
        started = time.monotonic()
        frame, schema = found.output()
        kept = frame.persist()
        nulls = count_nulls(kept, schema)
        count, shown = kept.count(), kept.limit(most).toArrow()
        seconds = time.monotonic() - started
        counters = dict(found.builder.counted(found.stage, (partition,)).get(partition, ()))
        verdicts = _judged(kept, found.suite, partition)
    refuse_nulls(found.stage, {partition: nulls})
    return StageTrial(tuple(shown.column_names), shown.to_pylist(), count, seconds, verdicts, found.along, counters)


def _judged(frame: DataFrame, suite: Suite | None, partition: int) -> tuple[GateVerdict, ...]:
    """What is about all partitions together is not judged."""
    own = suite.of_partitions if suite else None
    return judge_together(frame, own, partition) if own and own.expectations else ()
