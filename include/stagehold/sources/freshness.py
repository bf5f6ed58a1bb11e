"""The sources that pipelines read, whose they are, and how old their newest part is against what their authors want."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from stagehold.errors import StageholdError
from stagehold.lake.commit.delta_log import open_table
from stagehold.model.keys.interval_text import of_any_interval
from stagehold.model.units import write_duration
from stagehold.settings import Settings
from stagehold.sources.source_files import SourceRoots, arrivals
from stagehold.spec.loading.loader import load_each_pipeline
from stagehold.spec.pipeline import Pipeline
from stagehold.spec.settings.source import Source, SourceKind

EXACT = timedelta(hours=10)  # an age up to this is told in minutes, a greater one in hours


class Freshness(StrEnum):
    FRESH = "fresh"
    OLD = "old"  # beyond `warn_after`
    TOO_OLD = "too old"  # beyond `error_after`
    EMPTY = "empty"  # there is nothing yet


@dataclass(frozen=True)
class SourceAge:
    """``newest`` is when the newest file was written or the newest version committed, None where there is none."""

    source: Source
    newest: datetime | None
    now: datetime

    @property
    def freshness(self) -> Freshness:
        limits = self.source.freshness
        if self.newest is None:
            return Freshness.EMPTY
        if limits.error_after is not None and self._age > limits.error_after:
            return Freshness.TOO_OLD
        return Freshness.OLD if limits.warn_after is not None and self._age > limits.warn_after else Freshness.FRESH

    @property
    def _age(self) -> timedelta:
        return self.now - self.newest if self.newest else timedelta(0)

    def __str__(self) -> str:
        limits = self.source.freshness
        too_old = self.freshness is Freshness.TOO_OLD
        limit, name = (limits.error_after, "error_after") if too_old else (limits.warn_after, "warn_after")
        step = timedelta(hours=1) if self._age > EXACT else timedelta(minutes=1)
        written = write_duration(step * max(round(self._age / step), 1))
        return f"its newest data came {written} ago, and {name} is {write_duration(limit)}" if limit else written


def age_of(source: Source, roots: SourceRoots, now: datetime | None = None) -> SourceAge:
    """How old all of a source is, whichever interval reads it; ``source`` is as its author declares it."""
    place, moment = of_any_interval(source.path or ""), now or datetime.now(UTC)
    if source.kind is SourceKind.DELTA:
        (entry,) = open_table(roots.address(place)).history(1)
        return SourceAge(source, datetime.fromtimestamp(entry["timestamp"] / 1000, UTC), moment)
    patterns = [place] if source.path else [of_any_interval(text) for split in source.listed for text in split]
    came = [when for pattern in patterns for when in arrivals(pattern, roots.lake, roots.project).values()]
    return SourceAge(source, max(came, default=None), moment)


@dataclass(frozen=True)
class ReadSource:
    """A source, the stages that read it, and its age, if that can be told."""

    source: Source
    readers: tuple[str, ...]
    age: SourceAge | None

    @property
    def too_old(self) -> bool:
        return self.age is not None and self.age.freshness is Freshness.TOO_OLD

    @property
    def newest(self) -> str:
        moment = self.age.newest if self.age else None
        return f"{moment:%Y-%m-%d %H:%M}" if moment else ""

    @property
    def freshness(self) -> str:
        return str(self.age.freshness) if self.age and (self.source.freshness or not self.age.newest) else ""

    @property
    def row(self) -> tuple[str, ...]:
        owner, readers = self.source.owner or "", ", ".join(self.readers)
        return self.source.place, str(self.source.kind), owner, self.newest, self.freshness, readers

    @property
    def described(self) -> dict[str, Any]:
        named = ("place", "kind", "owner", "newest", "freshness")
        facts = dict(zip(named, self.row, strict=False))
        return {**facts, "readers": list(self.readers), "description": self.source.description}


def declared_sources(settings: Settings) -> Sequence[ReadSource]:
    """Those of all pipelines whose files have no problems, by what they read and what is said of it."""
    roots, found = SourceRoots.of(settings), dict[tuple[str, ...], tuple[Source, list[str]]]()
    for pipeline in (each for each in load_each_pipeline(settings) if isinstance(each, Pipeline)):
        for stage in pipeline.stages:
            if (source := stage.source) is not None:
                said = (source.place, source.owner or "", source.description or "", str(source.freshness))
                found.setdefault(said, (source, []))[1].append(f"{pipeline.name}.{stage.name}")
    return [ReadSource(source, tuple(readers), _age(source, roots)) for _, (source, readers) in sorted(found.items())]


def _age(source: Source, roots: SourceRoots) -> SourceAge | None:
    if source.gives_rows or source.kind is SourceKind.PYTHON:
        return None
    with suppress(StageholdError, OSError):
        return age_of(source, roots)
    return None
