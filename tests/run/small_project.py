"""Pipelines declared in a test and run in its own process, on the session's Spark server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from stagehold.ledger import Ledger
from stagehold.model.records import PartitionRecord, Restore
from stagehold.run.here.local_run import run_locally
from stagehold.run.planning.planning import RunRequest
from stagehold.settings import Settings
from stagehold.spec.loading.loader import build_pipeline
from stagehold.spec.pipeline import Pipeline

INTERVAL = "i"
FILES, ROWS = 4, 25
NUMBERS = {"kind": "parquet", "path": "${lake}/raw/*.parquet", "splits": FILES}
TWO_JOBS = """\
from stagehold import stage


@stage
def numbers(ctx, source):
    return source


@stage
def doubled(ctx, numbers):
    return numbers.selectExpr("2 * number AS number")
"""  # a stage that passes the source on, and its reader


def numbers(file: int) -> list[int]:
    """What is in one file, and so in one partition of a stage that passes it on."""
    return list(range(file * ROWS, (file + 1) * ROWS))


@dataclass(frozen=True)
class SmallProject:
    """A home with a module of stage functions, imported under the home's own name,
    and a source of numbers from 0 on in `FILES` files.
    """

    settings: Settings

    @staticmethod
    def make(folder: Path, spark_remote: str, jobs: str) -> SmallProject:
        (folder / f"{folder.name}.py").write_text(jobs)
        project = SmallProject(
            Settings(
                home=str(folder), project=str(folder), suites=str(folder), spark_remote=spark_remote, spark_cores=1
            )
        )
        for number in range(FILES):
            project.write_source(number, ROWS)
        return project

    def write_source(self, number: int, rows: int) -> None:
        path = Path(self.settings.lake_uri) / "raw" / f"part-{number}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"number": pa.array(range(number * rows, (number + 1) * rows), pa.int64())}), path)

    def write_suite(self, *expectations: str) -> None:
        """The suite `own`, with these expectations in YAML."""
        lines = "".join(f"  - {{{expectation}}}\n" for expectation in expectations)
        Path(self.settings.suites, "own.yaml").write_text(f"suite: own\nexpectations:\n{lines}")

    def pipeline(self, name: str, stages: Mapping[str, Any], **facts: Any) -> Pipeline:
        """``stages`` as in a file; their jobs are functions of the module with their names, or others."""
        module = Path(self.settings.project).name
        others = {"sql", "script"}
        jobs = {stage: {} if others & {*fields} else {"job": f"{module}:{stage}"} for stage, fields in stages.items()}
        declared = {stage: {**jobs[stage], **fields} for stage, fields in stages.items()}
        declaration = {"pipeline": name, "wave": "100ms", "stages": declared, **facts}
        return build_pipeline(declaration, project=Path(self.settings.project), suites=Path(self.settings.suites))

    def run(
        self, pipeline: Pipeline, run_id: str, interval: str = INTERVAL, restore: Restore | None = None
    ) -> dict[str, tuple[PartitionRecord, ...]]:
        """Run it to its end; what is recorded then, by stage."""
        run_locally(RunRequest(pipeline, run_id, interval, {}, restore), self.settings, print)
        return self.records(pipeline, interval)

    def made(self, name: str, stages: Mapping[str, Any], **facts: Any) -> dict[int, list[int]]:
        """Run a pipeline of these stages; the sorted numbers of the last one, by partition."""
        records = self.run(self.pipeline(name, stages, **facts), str(uuid4()), interval=name)
        return {record.partition: values_of(record, "number") for record in records[list(stages)[-1]]}

    def ledger(self) -> Ledger:
        return Ledger.open(self.settings.ledger_url)

    def records(self, pipeline: Pipeline, interval: str) -> dict[str, tuple[PartitionRecord, ...]]:
        with self.ledger() as ledger:
            return dict(ledger.partitions.newest_of(pipeline.name, interval))


def values_of(record: PartitionRecord, column: str) -> list[int]:
    """Sorted."""
    files = [pq.ParquetFile(Path(record.table, file.path)).read(columns=[column]) for file in record.files]
    return sorted(value for file in files for value in file[column].to_pylist())
