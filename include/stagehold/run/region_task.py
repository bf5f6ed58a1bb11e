"""What an attempt of a region is asked for, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from stagehold.ledger.engine import Redact
from stagehold.model.records import Restore
from stagehold.model.spec import Pipeline
from stagehold.plan.decisions import also_computed
from stagehold.plan.regions import Region
from stagehold.plan.shares import Share
from stagehold.run.planning import RunRequest

SPECULATION = "speculation"  # how an owner's name ends when it helps with somebody else's share
Progress = Callable[[str], None]


@dataclass(frozen=True)
class RegionTask:
    """What one attempt is for: a region, or a ``share`` of its partitions.

    ``owner`` names who may run it: two tries of one owner never run on purpose at once. ``only`` are partitions to heal for
    another region, by stage; None for whatever the region needs. ``again`` says that the launcher tries again by itself,
    and nobody asked for it. ``redact`` takes secrets out of what the attempt has to say before the ledger keeps it.
    """

    pipeline: Pipeline
    region: Region
    run_id: str
    interval: str
    logical_date: datetime | None
    params: Mapping[str, Any]
    restore: Restore | None
    owner: str
    launcher: str
    share: Share | None = None
    only: Mapping[str, frozenset[int]] | None = None
    again: bool = False
    redact: Redact = str

    @property
    def subject(self) -> str:
        """What the task works on, for people."""
        return self.region.name if self.share is None else f"{self.region.name}[{self.share}]"

    def takes(self, stage: str, partition: int) -> bool:
        """Whether this attempt computes the partition if it has to be computed."""
        return self.only is None or partition in self.only.get(stage, frozenset())

    @property
    def lease_name(self) -> str:
        """Of the whole region, by interval and not by run: epochs then grow along with the tables, which runs of an interval share."""
        return region_lease(self.pipeline.name, self.interval, self.region.name)

    @property
    def request(self) -> RunRequest:
        return RunRequest(self.pipeline, self.run_id, self.interval, self.params, self.restore)


def region_lease(pipeline: str, interval: str, region: str) -> str:
    """Name of the lease without which nobody works on a region."""
    return f"{pipeline}/{interval}/{region}"


@dataclass(frozen=True)
class RegionOutcome:
    """What an attempt did; ``computed`` is 0 when everything was reused and no Spark session was opened.

    Partitions computed ``along`` with others are in no table, and not among the ``computed``.
    """

    reused: int
    computed: int
    waves: int
    seconds: float
    along: int = 0

    def __str__(self) -> str:
        return f"reused {self.reused} partitions, computed {self.computed}{also_computed(self.along)} in {self.waves} waves"
