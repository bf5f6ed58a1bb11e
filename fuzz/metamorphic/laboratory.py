"""Runs cases through the real path, from sources to committed partitions, and asks DuckDB what is right."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from unittest.mock import patch

import duckdb
import pyarrow.parquet as pq
from fuzz.metamorphic.answers import Answer, Outcome, Refusal, Rows, multiset
from fuzz.metamorphic.case import Case, Variant
from fuzz.metamorphic.habits.side_data import write_side_files
from fuzz.metamorphic.source_data import TABLES
from tests.lake.table_log import TableLog

from stagehold.errors import Terminal
from stagehold.ledger import Ledger
from stagehold.model.partition_set import Share
from stagehold.model.records import Cell, PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.plan.split.regions import Region, stage_regions
from stagehold.plan.split.shares import region_shares
from stagehold.plan.waves.sizing import DeclaredInterval, WaveSizer
from stagehold.run.here.region import run_region
from stagehold.run.planning.planning import RunRequest
from stagehold.run.planning.task import RegionTask
from stagehold.run.stage.runner import wave_sizer
from stagehold.settings import Settings
from stagehold.spec.loading.loader import build_pipeline
from stagehold.spec.pipeline import Pipeline

INTERVAL = "i"
A_DAY = 86_400.0
AT_ONCE = 99  # more partitions than any case has


@dataclass(frozen=True)
class Laboratory:
    """A home with the rows that all its cases read."""

    settings: Settings

    @staticmethod
    def make(settings: Settings, seed: int) -> Laboratory:
        lab = Laboratory(replace(settings, project=settings.home, suites=settings.home))
        for table in TABLES:
            table.write(lab.rows, Random(f"{seed}/{table.name}"))
        write_side_files(lab.settings.home_path)
        return lab

    @property
    def rows(self) -> Path:
        return self.settings.home_path / "rows"

    def oracle(self, case: Case) -> Rows:
        return right_rows(case, self.rows)

    def trial(self, case: Case, variants: tuple[Variant, ...]) -> Trial:
        (self.settings.home_path / f"{case.name}.py").write_text(case.module(variants))
        declaration = {"pipeline": case.name, "stages": case.stages(variants, self.rows)}
        home = self.settings.home_path
        sys.modules.pop(case.name, None)
        return Trial(case, build_pipeline(declaration, project=home, suites=home), self.settings)


@dataclass
class Trial:
    """One pipeline in which a case is made in several ways.
    ``told`` is what the runs said, for whoever looks for a reason.
    """

    case: Case
    pipeline: Pipeline
    settings: Settings
    told: list[str] = field(default_factory=list)
    _sources: dict[str, Refusal | None] = field(default_factory=dict)

    def outcome(self, variant: Variant, *, waves_of_one: bool) -> Outcome:
        """Run what is not done yet of the sources and of this variant."""
        with waves_of(1 if waves_of_one else AT_ONCE):
            for region in stage_regions(self.pipeline):
                refusal = self._refusal(region, variant)
                if refusal:
                    return refusal
        return self._answer(variant)

    def lose(self, random: Random, variant: Variant, *, sources: bool) -> list[str]:
        """Delete the files of some partitions of this variant, perhaps of the sources, too; their names."""
        stages = self._stages(variant, sources=sources)
        places = [(record, stage) for stage in stages for record in self.records(stage) if record.files]
        lost = random.sample(places, random.randint(1, len(places))) if places else []
        for record, _ in lost:
            for file in record.files:
                Path(record.table, file.path).unlink()
        self._sources.clear()
        return sorted(f"{stage}[{record.partition}]" for record, stage in lost)

    def records(self, stage: str) -> tuple[PartitionRecord, ...]:
        """What is consumable, and is what a reader of the table sees."""
        with Ledger.open(self.settings.ledger_url) as ledger:
            newest = ledger.partitions.newest(Cell(self.pipeline.name, stage, INTERVAL))
        found = tuple(record for record in newest if record.state is PartitionState.CONSUMABLE)
        for table in {record.table for record in found}:
            log = TableLog(table, INTERVAL)
            log.follow()
            recorded = {file.path for record in found for file in record.files}
            assert set(log.live) == recorded, f"{stage}: {set(log.live) ^ recorded} are recorded or readable, not both"
        return found

    def _stages(self, variant: Variant, *, sources: bool) -> list[str]:
        """The stored ones that the variant is made of."""
        mine = (
            stage
            for stage in self.pipeline.stages
            if stage.name.startswith(f"{variant.letter}_") or (stage.source and sources)
        )
        return [stage.name for stage in mine if stage.output.type.stored]

    def _refusal(self, region: Region, variant: Variant) -> Refusal | None:
        if self.pipeline.stage(region.stages[0]).source:
            if region.name not in self._sources:
                self._sources[region.name] = self._run(region)
            return self._sources[region.name]
        mine = all(stage.startswith(f"{variant.letter}_") for stage in region.stages)
        return self._run(region) if mine else None

    def _run(self, region: Region) -> Refusal | None:
        try:
            for share in region_shares(self.pipeline, region):
                run_region(self._task(region, share), self.settings, self.told.append)
        except Exception as error:  # noqa: BLE001 - whatever a run ends with is the outcome
            self.told.append(str(error))
            return self._refused(region, error)
        return None

    def _refused(self, region: Region, error: Exception) -> Refusal:
        stored = (stage for stage in region.stages if self.pipeline.stage(stage).output.type.stored)
        published = tuple(stage for stage in stored if self.records(stage))
        stage = "__".join(stage.partition("_")[2] for stage in region.stages)
        return Refusal(type(error).__name__, stage, str(error), isinstance(error, Terminal), published)

    def _task(self, region: Region, share: Share | None) -> RegionTask:
        return RegionTask(
            request=RunRequest(self.pipeline, f"run of {self.pipeline.name}", INTERVAL, {}),
            region=region,
            owner=f"metamorphic {share or ''}",
            launcher="cli",
            share=share,
        )

    def _answer(self, variant: Variant) -> Answer:
        stage = self.pipeline.stage(variant.name(self.case.last))
        records = self.records(stage.name)
        assert [record.partition for record in records] == list(range(stage.partitions)), (
            f"{stage.name} is not complete"
        )
        return Answer({record.partition: _rows(record, self.case.names) for record in records})


def _rows(record: PartitionRecord, names: Sequence[str]) -> Rows:
    tables = (pq.ParquetFile(Path(record.table, file.path)).read(columns=list(names)) for file in record.files)
    return sum((multiset(table, names) for table in tables), Counter())


def right_rows(case: Case, folder: Path) -> Rows:
    """The right answer for the rows in ``folder``, whatever is keyed by what."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    return multiset(connection.sql(case.sql(folder)).to_arrow_table(), case.names)


@contextmanager
def waves_of(partitions: int) -> Iterator[None]:
    """Waves take so many partitions, whatever was measured;
    the ledger's timings would make them another size each time.
    """

    def forced(*known: object) -> WaveSizer:
        seconds = 0.001 if partitions == 1 else A_DAY
        return replace(wave_sizer(*known), slots=partitions, interval=DeclaredInterval(seconds), known=None)  # type: ignore[arg-type]

    with patch("stagehold.run.stage.runner.wave_sizer", forced):
        yield
