"""The pipelines that chaos happens to: where their sources come from, and what is right."""

from __future__ import annotations

import json
import os
import re
import shutil
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from deltalake import DeltaTable
from fuzz.metamorphic.answers import difference, multiset
from fuzz.metamorphic.case import Case, Variant
from fuzz.metamorphic.habits.side_data import write_side_files
from fuzz.metamorphic.laboratory import right_rows
from tests.run.workbench import FILES, ROWS, Workbench

from stagehold.lake.commit.delta_log import storage_options
from stagehold.lake.store.location import lake_root
from stagehold.plan.split.regions import stage_regions
from stagehold.spec.loading.loader import find_pipeline
from stagehold.spec.pipeline import Pipeline
from stagehold.spec.settings.run_settings import ReleasePolicy

NAMES = ("colour", "total", "numbers")
SINK = """
import fcntl
import json
from pathlib import Path


def swap(ctx):
    if not ctx.is_whole:
        return
    folder = Path(__file__).with_name("sink")
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        there = folder / f"{ctx.interval}.json"
        told = json.loads(there.read_text()) if there.exists() else {}
        if told.get("run") == ctx.run_id and told["number"] > ctx.number:
            return  # somebody else took the run over, and has told of a newer one
        rows = [[row["colour"], row["total"], row["numbers"]] for row in ctx.rows().to_pylist()]
        staged = there.with_suffix(".staged")
        staged.write_text(json.dumps({"run": ctx.run_id, "number": ctx.number, "rows": rows}))
        staged.rename(there)
"""
SPOILT = -7_000_000  # divisible by 7, and so much that no other numbers of its colour make up for it
TABLE = "marts.{}"
MULTIPLIED = re.compile(r'F\.col\("number"\) \* (\d)')
WIDE = 1000  # columns: no path of a source is broken


@dataclass(frozen=True)
class Subject(ABC):
    """A pipeline with a published table, in the project of a workbench."""

    bench: Workbench

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def last(self) -> str:
        """The stage that publishes."""

    @property
    def habits(self) -> list[str]:
        return []

    @abstractmethod
    def begin(self) -> None:
        """Sources as they should be; what was here before may have left others."""

    @abstractmethod
    def renew(self, random: Random) -> None:
        """Other rows in the sources."""

    @abstractmethod
    def compare(self, interval: str) -> str:
        """How what is published differs from what DuckDB makes of the sources; empty if it does not."""

    @cached_property
    def pipeline(self) -> Pipeline:
        return find_pipeline(self.name, self.bench.settings)

    @cached_property
    def regions(self) -> Mapping[str, str]:
        """The region of each stored stage."""
        regions = {stage: region.name for region in stage_regions(self.pipeline) for stage in region.stages}
        return {stage.name: regions[stage.name] for stage in self.pipeline.stages if stage.output.type.stored}

    @property
    def uri(self) -> str:
        """Of the published table."""
        names = str(self.pipeline.stage(self.last).output.table).split(".")
        return "/".join((lake_root(self.bench.settings.lake_uri), *names))

    @property
    def file(self) -> Path:
        return Path(self.bench.settings.pipelines, f"{self.name}.yaml")

    def declare(self, on_foreign_change: str) -> None:
        document = yaml.safe_load(self.file.read_text())
        document["stages"][self.last]["output"]["on_foreign_change"] = on_foreign_change
        self.file.write_text(yaml.safe_dump(document, sort_keys=False))

    def settle(self, release: ReleasePolicy, checkpoints: str | None) -> None:
        """When outputs go, and how often checkpoints are taken while a run goes on; None for never."""
        document = yaml.safe_load(self.file.read_text())
        document["release"] = str(release)
        document["checkpoint"] = {"interval": checkpoints, "tolerable_failures": "unlimited"} if checkpoints else {}
        self.file.write_text(yaml.safe_dump(document, sort_keys=False))

    def give_uid(self, stage: str, uid: str) -> None:
        """A new uid, beside all that the stage was called until now."""
        document = yaml.safe_load(self.file.read_text())
        declared = document["stages"][stage]
        declared["was"] = [declared.get("uid", stage), *declared.get("was", ())]
        declared["uid"] = uid
        self.file.write_text(yaml.safe_dump(document, sort_keys=False))

    def rows(self, interval: str) -> pa.Table:
        table = DeltaTable(self.uri, storage_options=storage_options(self.uri))
        return pa.table(table.to_pyarrow_table(filters=[("_interval", "=", interval)]))


@dataclass(frozen=True)
class Toy(Subject):
    """The fixed one: two stages by partition, one by key with a gate, one that gathers."""

    @property
    def name(self) -> str:
        return "toy"

    @property
    def last(self) -> str:
        return "summary"

    def begin(self) -> None:
        for number in range(FILES):
            self.bench.write_source(number)
        Path(self.bench.settings.project, "chaos_sink.py").write_text(SINK)
        document = yaml.safe_load(self.file.read_text())
        document["stages"][self.last]["on_complete"] = "chaos_sink:swap"
        self.file.write_text(yaml.safe_dump(document, sort_keys=False))
        self.bench.upload("numbers")

    def renew(self, random: Random) -> None:
        first = 100 * random.randrange(1, 1000)
        for number in range(FILES - 1):
            self.bench.write_source(number, first + number * ROWS)
        self.bench.upload("numbers")

    def ask_for_splits(self) -> None:
        """Two tasks have the numbers, and take the next split that nobody has."""
        document = yaml.safe_load(self.file.read_text())
        numbers = document["stages"]["numbers"]
        numbers["source"]["splits"] = {"count": FILES, "assignment": "dynamic"}
        numbers["max_parallel_tasks"] = 2
        self.file.write_text(yaml.safe_dump(document, sort_keys=False))

    @property
    def times(self) -> int:
        """What the code that is deployed multiplies numbers by."""
        return int(MULTIPLIED.search(self._jobs.read_text())[1])

    def deploy(self, times: int) -> None:
        """Code that multiplies by something else, in a file that shows it neither by its time nor by its size."""
        text, before = self._jobs.read_text(), self._jobs.stat()
        new = self._jobs.with_suffix(".new")
        new.write_text(MULTIPLIED.sub(f'F.col("number") * {times}', text))
        os.utime(new, ns=(before.st_atime_ns, before.st_mtime_ns))
        new.replace(self._jobs)

    @property
    def _jobs(self) -> Path:
        return Path(self.bench.settings.project, "toy_jobs.py")

    def spoil(self) -> None:
        """Put in a row for which the gate refuses a partition."""
        path = self.bench.raw / "numbers" / f"part-{FILES - 1}.parquet"
        pq.write_table(pa.table({"number": pa.array([SPOILT] * ROWS, pa.int64())}), path)
        self.bench.upload("numbers")

    def mend(self) -> None:
        self.bench.write_source(FILES - 1)
        self.bench.upload("numbers")

    def compare(self, interval: str) -> str:
        source = self.bench.raw / "numbers" / "*.parquet"
        right = duckdb.sql(
            f"select number % 7 colour, cast(sum({self.times} * number) as bigint) total, count(*) numbers from "
            f"'{source}' group by 1"
        )
        answer = multiset(right.to_arrow_table(), NAMES)
        return difference(multiset(self.rows(interval), NAMES), answer) or self._in_sink(interval, answer)

    def _in_sink(self, interval: str, answer: Counter[tuple[Any, ...]]) -> str:
        """How the sink outside the lake differs, into which each whole checkpoint is swapped; empty if it does not."""
        there = Path(self.bench.settings.project, "sink", f"{interval}.json")
        if not there.exists():
            return "nothing is in the sink"
        told = json.loads(there.read_text())
        differs = difference(Counter(map(tuple, told["rows"])), answer)
        return f"in the sink, by checkpoint {told['number']} of {told['run']}:\n{differs}" if differs else ""


@dataclass(frozen=True)
class MadeUp(Subject):
    """One of the metamorphic algebra; ``partitions`` are those of its keyed stages."""

    case: Case
    partitions: int
    seed: str

    @staticmethod
    def add(bench: Workbench, case: Case, partitions: int) -> MadeUp:
        """Write its module and its file into the workbench's project."""
        case = replace(case, flow=replace(case.flow, tasks=1))
        made = MadeUp(bench, case, partitions, case.name)
        write_side_files(Path(bench.settings.project))
        Path(bench.settings.project, f"{case.name}.py").write_text(case.module((made.variant,)))
        stages: dict[str, Any] = case.stages((made.variant,), made.folder)
        stages[made.last]["output"] = {"type": "blocking_persistent", "table": TABLE.format(case.name)}
        document = {"pipeline": case.name, "wave": "100ms", "stages": stages}
        text = yaml.safe_dump(document, sort_keys=False, width=WIDE)
        made.file.write_text(text.replace(f"{bench.raw}/", f"{lake_root(bench.settings.lake_uri)}/raw/"))
        return made

    @property
    def variant(self) -> Variant:
        return Variant("x", self.partitions, waves_of_one=False)

    @property
    def name(self) -> str:
        return self.case.name

    @property
    def last(self) -> str:
        return self.variant.name(self.case.last)

    @property
    def habits(self) -> list[str]:
        """What its functions do beside making a plan."""
        return sorted({habit.family for _, habit in self.case.habits})

    def stored_with(self, family: str) -> str:
        """A stored stage in whose waves a habit of this family is called."""
        place = next(place for place, habit in self.case.habits if habit.family == family)
        stage = self.case.stage_at(place, self.variant)
        while not self.pipeline.stage(stage).output.type.stored:
            stage = self.pipeline.readers(stage)[0].name
        return stage

    @property
    def folder(self) -> Path:
        return self.bench.raw / self.case.name

    def begin(self) -> None:
        self._write(self.seed)

    def renew(self, random: Random) -> None:
        self._write(str(random.random()))

    def compare(self, interval: str) -> str:
        return difference(multiset(self.rows(interval), self.case.names), right_rows(self.case, self.folder))

    def _write(self, seed: str) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        for table in self.case.tables:
            table.write(self.folder, Random(f"{seed}/{table.name}"))
        self.bench.upload(self.case.name)
