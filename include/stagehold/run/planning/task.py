"""What an attempt of a region is asked for, and what it returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from stagehold.ledger.database.engine import Redact
from stagehold.ledger.leases import region_lease
from stagehold.model.checkpoint_records import part_name
from stagehold.model.context import StageSecrets
from stagehold.model.partition_set import Share
from stagehold.plan.resume.decisions import also_computed
from stagehold.plan.split.regions import Region
from stagehold.run.planning.planning import RunRequest
from stagehold.secrets import SecretPlace, found_secrets, masked, usual_places
from stagehold.settings import Settings
from stagehold.spec.pipeline import Exchange, Pipeline

SPECULATION = "speculation"  # how an owner's name ends if it helps with another owner's share


@dataclass(frozen=True)
class RegionTask:
    """What one attempt is for: a region, or a ``share`` of its partitions.

    ``owner`` names the owner of the attempt: two tries of one owner never run on purpose at once. ``only`` are
    partitions to heal for another region, by stage; None for all that the region needs. ``again`` says that the
    launcher tries again by itself, and nobody asked for it. ``waits`` says that the launcher holds back the next
    interval until this one has run, so that this need not be checked yet. ``asks`` says that other tasks of its region
    may work beside it, of whose splits it takes some; ``taken_by`` is the share of the task that took the splits of
    this attempt. ``redact`` takes secrets out of the attempt's
    messages before the ledger keeps them; ``secret_places`` are where the launcher
    finds secrets, if not in the usual places.
    """

    request: RunRequest
    region: Region
    owner: str
    launcher: str
    logical_date: datetime | None = None
    share: Share | None = None
    only: Mapping[str, frozenset[int]] | None = None
    again: bool = False
    waits: bool = False
    asks: bool = False
    taken_by: Share | None = None
    redact: Redact = masked
    secret_places: tuple[SecretPlace, ...] = ()

    @property
    def pipeline(self) -> Pipeline:
        return self.request.pipeline

    @property
    def subject(self) -> str:
        """What the task works on, for people."""
        return part_name(self.region.name, self.share)

    @property
    def launched(self) -> str:
        """The task that was launched, for people: also what its attempts work on, unless it took splits of others."""
        return part_name(self.region.name, self.taken_by or self.share)

    def takes(self, stage: str, partition: int) -> bool:
        """Whether this attempt computes the partition if it has to be computed."""
        asked_for = self.only is None or partition in self.only.get(stage, frozenset())
        return asked_for or (self.pipeline.stage(stage).output.in_stored_form and self._is_read(stage, partition))

    def _is_read(self, stage: str, partition: int | None) -> bool:
        """Whether the partitions to heal are made from this partition, or from any of the stage for None, with no
        stored output in between.
        """
        for reader in self.pipeline.readers(stage):
            read = partition if reader.input(stage).exchange is Exchange.FORWARD else None
            asked_for = (self.only or {}).get(reader.name, frozenset())
            if read in asked_for or (read is None and asked_for):
                return True
            if not reader.output.type.stored and self._is_read(reader.name, read):
                return True
        return False

    def find_secrets(self, settings: Settings) -> StageSecrets:
        """:raises SecretsUnusable: with each of the pipeline's secrets that is not found"""
        return StageSecrets(found_secrets(self.pipeline.secrets, self.secret_places or usual_places(settings)))

    @property
    def lease_name(self) -> str:
        """The name of the whole region's lease, by interval and not by run:
        epochs then grow along with the tables, which runs of an interval share.
        """
        return region_lease(self.pipeline.name, self.request.interval, self.region.name)


@dataclass(frozen=True)
class RegionOutcome:
    """What an attempt did; ``computed`` is 0 if everything was reused and no Spark session was opened.

    Partitions computed ``along`` with others are in no table, and not among the ``computed``.
    """

    reused: int
    computed: int
    waves: int
    seconds: float
    along: int = 0

    def __str__(self) -> str:
        return (
            f"reused {self.reused} partitions, computed {self.computed}{also_computed(self.along)} in "
            f"{self.waves} waves"
        )
