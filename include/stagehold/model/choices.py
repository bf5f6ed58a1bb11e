"""What people decide that runs go by: of a checkpoint that a run begins with, of data that a gate refused or other code
made, and of intervals that stay; and how much an expectation matters to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from stagehold.model.keys.compute_key import KeyPart

if TYPE_CHECKING:
    from stagehold.model.records import Cell


class Severity(StrEnum):
    """How much an expectation matters: only a critical one blocks a partition; the others are recorded and shown."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


class ClaimMode(StrEnum):
    """Who owns a snapshot after a run has begun with it."""

    NO_CLAIM = "no_claim"  # the user goes on owning it; the run leaves it alone
    CLAIM = "claim"  # it becomes an ordinary checkpoint of the run, and is deleted when newer ones replace it


class CodeHandling(StrEnum):
    """What becomes of data in a snapshot that other code made than the stage has now."""

    RECOMPUTE = "recompute"
    KEEP = "keep"  # it counts, for this restore
    ACCEPT = "accept"  # it counts from now on, for every run

    @property
    def counts(self) -> bool:
        return self is not CodeHandling.RECOMPUTE


@dataclass(frozen=True)
class CodeChoice:
    """What becomes of the data of one stage, by its id, that code ``made_by`` has made; who said so, and why.

    Of what other code makes later it says nothing, so that an edit between two tries of a run is noticed.
    """

    stage: str
    handling: CodeHandling
    made_by: tuple[str, ...]
    said_by: str
    reason: str = ""


class RefusedData(Protocol):
    """Data that a gate has refused: of a partition, or of all of a stage."""

    @property
    def cell(self) -> Cell: ...
    @property
    def partition(self) -> int: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def refused(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Waiver:
    """Somebody's word that one partition, or all of a stage, may be read though it does not meet one critical
    expectation.

    It holds for the data with this ``fingerprint`` alone, and ``until`` then; None is for ever. ``stage`` is a stage
    id, ``partition`` is `records.WHOLE` for all of it.
    """

    pipeline: str
    interval: str
    stage: str
    partition: int
    expectation: str
    fingerprint: str
    waived_by: str
    reason: str
    recorded_at: datetime
    until: datetime | None = None

    def holds_for(self, data: RefusedData) -> bool:
        return self.partition == data.partition and self.fingerprint == data.fingerprint


@dataclass(frozen=True)
class Acceptance:
    """Somebody's word that data a stage's ``recorded_code`` made is as good as what its ``accepted_code`` would make;
    or of another ``part`` of keys than code, that what is recorded is as good as what is accepted.

    ``stage`` is a stage id; ``interval`` is None when it holds for every interval.
    """

    pipeline: str
    interval: str | None
    stage: str
    recorded_code: str
    accepted_code: str
    accepted_by: str
    reason: str
    recorded_at: datetime
    part: str = KeyPart.CODE.value


@dataclass(frozen=True)
class Pin:
    """Somebody's word that an interval keeps its outputs, whatever the pipeline's `retain` says; or, if it is not
    ``pinned``, that it does so no more.
    """

    pipeline: str
    interval: str
    pinned: bool
    said_by: str
    reason: str
    recorded_at: datetime

    def __str__(self) -> str:
        """Who said it, when and why."""
        why = f": {self.reason}" if self.reason else ""
        return f"by {self.said_by} at {self.recorded_at:%Y-%m-%d %H:%M} (UTC){why}"
