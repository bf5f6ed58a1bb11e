"""What a plan of many intervals looks at once, since it is the same for all of them: code, suites, declared reads,
the files of sources of which each interval reads all, in one place, unless its run has seen them before, and the
ledger.
"""

from __future__ import annotations

import platform
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from stagehold.code.stage_code import code_fingerprint
from stagehold.gates.suite import check_scope
from stagehold.gates.suite_files import suite_of
from stagehold.lake.store.location import lake_root
from stagehold.ledger.ledger import Ledger
from stagehold.model.choices import Acceptance, Waiver
from stagehold.model.keys.compute_key import digest, result_versions
from stagehold.model.records import PartitionRecord, StageVerdict
from stagehold.plan.resume.situation import StageFacts
from stagehold.settings import Settings
from stagehold.sources.attempt_sources import Sources, is_incremental
from stagehold.sources.declared_reads import declared_reads
from stagehold.sources.source_files import SourceRoots
from stagehold.spec.pipeline import Pipeline, Stage


@dataclass(frozen=True)
class IntervalRecords:
    """``partitions`` are the newest records by stage id. What people and gates said of whole stages is oldest first."""

    partitions: Mapping[str, tuple[PartitionRecord, ...]]
    acceptances: tuple[Acceptance, ...]
    waivers: tuple[Waiver, ...]
    verdicts: tuple[StageVerdict, ...]


def read_records(pipeline: str, intervals: Collection[str], ledger: Ledger) -> Mapping[str, IntervalRecords]:
    """The records by interval, by as many queries for many intervals as for one."""
    partitions = ledger.partitions.newest_of_each(pipeline, intervals)
    acceptances = ledger.acceptances.holding(pipeline, intervals)
    waivers: defaultdict[str, list[Waiver]] = defaultdict(list)
    for waiver in ledger.waivers.of_each(pipeline, intervals):
        waivers[waiver.interval].append(waiver)
    verdicts: defaultdict[str, list[StageVerdict]] = defaultdict(list)
    for verdict in ledger.stage_verdicts.of_each(pipeline, intervals):
        verdicts[verdict.cell.interval].append(verdict)
    return {
        interval: IntervalRecords(
            partitions.get(interval, {}),
            tuple(word for word in acceptances if word.interval in (None, interval)),
            tuple(waivers[interval]),
            tuple(verdicts[interval]),
        )
        for interval in intervals
    }


# Session settings that can change a result. Cores, memory and ports cannot.
SESSION_FACTS = ("time zone UTC", "ANSI on")


class SharedFacts:
    """Facts of a pipeline, each read when it is first needed. To see changes, make another object."""

    def __init__(self, settings: Settings, ahead: Callable[[str], IntervalRecords] | None = None) -> None:
        """:param ahead: gives the records of an interval that were read together with others'; without it they are read
        whenever they are asked for.
        """
        self._settings, self._ahead = settings, ahead
        self._known: dict[tuple[str, int], StageFacts] = {}
        self._splits: dict[tuple[str, int], tuple[str, ...]] = {}

    def of(self, stage: Stage, pipeline: Pipeline, sources: Sources) -> StageFacts:
        """The facts of a stage.

        :param sources: sources of the interval that is asked for.
        """
        name, known = (stage.name, stage.partitions), self.without_splits(stage, pipeline)
        if stage.source is None:
            return known
        if is_incremental(stage) or stage.source.names_interval or sources.seen(stage):
            return replace(known, splits=self._splits_of(stage, sources))
        if name not in self._splits:
            self._splits[name] = self._splits_of(stage, sources)
        return replace(known, splits=self._splits[name])

    def recorded(self, pipeline: str, interval: str, ledger: Ledger) -> IntervalRecords:
        """The records of an interval."""
        return self._ahead(interval) if self._ahead else read_records(pipeline, [interval], ledger)[interval]

    def without_splits(self, stage: Stage, pipeline: Pipeline) -> StageFacts:
        """The facts that do not depend on the contents of its source."""
        name = (stage.name, stage.partitions)
        if name not in self._known:
            self._known[name] = self._looked_at(stage, pipeline)
        return self._known[name]

    def _looked_at(self, stage: Stage, pipeline: Pipeline) -> StageFacts:
        settings = self._settings
        code = code_fingerprint(stage.entries, Path(settings.project))
        suite = suite_of(pipeline, stage.gate, settings) if stage.gate else None
        if suite:
            check_scope(suite, stage, pipeline)
        whole = suite.of_stage if suite else None
        gate, quarantine = (suite.of_partitions.fingerprint, suite.quarantine) if suite else ("", "")
        reads = declared_reads(stage, pipeline, SourceRoots.of(settings))
        of_stage = whole.fingerprint if whole else ""
        return StageFacts(code.value or "", code.reason, gate, of_stage, quarantine, reads=reads)

    def _splits_of(self, stage: Stage, sources: Sources) -> tuple[str, ...]:
        lake = lake_root(self._settings.production.lake_uri)
        return tuple(split.below(lake).fingerprint for split in sources.of(stage).splits)


@cache
def environment() -> str:
    """Hash of everything around the code that can change a result; for a process that stays the same."""
    packages = (f"{name}=={version}" for name, version in result_versions().items())
    python = ".".join(platform.python_version_tuple()[:2])
    return digest((*packages, f"python {python}", *SESSION_FACTS))
