"""A small pipeline in a home of its own, run by the command a user would type, on the session's Spark server."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from tests.run.zygote import Command, Zygote

from stagehold.lake.store.files import files_at
from stagehold.lake.store.location import OBJECT_STORE
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import PartitionRecord
from stagehold.run.faults import FaultAction, Point, inject
from stagehold.settings import Settings

TOY = Path(__file__).parent / "toy"
INTERVAL = "2026-11-20"
FILES = 4
ROWS = 25
FINISHED = "finished"  # id of the run of a finished workbench
NOWHERE = "sc://127.0.0.1:9/;token=none"  # nothing listens on the discard port


@dataclass(frozen=True)
class Workbench:
    """The toy pipeline: settings, source files and commands around it."""

    settings: Settings

    @staticmethod
    def make(folder: Path, spark_remote: str) -> Workbench:
        project = folder / "project"
        for name, target in {"toy_jobs.py": ".", "toy.yaml": "pipelines", "by_colour.yaml": "suites"}.items():
            (project / target).mkdir(parents=True, exist_ok=True)
            shutil.copy(TOY / name, project / target / name)
        bench = Workbench.of(folder, spark_remote)
        for number in range(FILES):
            bench.write_source(number)
        return bench

    @staticmethod
    def of(folder: Path, spark_remote: str) -> Workbench:
        """Commands around a project that somebody else has made."""
        project = folder / "project"
        settings = Settings(
            home=str(folder / "home"),
            project=str(project),
            pipelines=str(project / "pipelines"),
            suites=str(project / "suites"),
            spark_remote=spark_remote,
            spark_cores=1,
            lease_seconds=5,
        )
        return Workbench(settings)

    @property
    def folder(self) -> Path:
        """All that it has: project, lake and ledger."""
        return self.settings.home_path.parent

    @property
    def raw(self) -> Path:
        """The folder of the sources; of a lake in a bucket the one on this machine that `upload` copies."""
        lake = self.settings.lake_uri
        return Path(self.settings.home_path / "lake" if lake.startswith(OBJECT_STORE) else lake, "raw")

    def upload(self, source: str) -> None:
        """Have in a lake in a bucket what is in the folder of a source, and nothing else of it."""
        import boto3

        lake = self.settings.lake_uri
        if lake.startswith(OBJECT_STORE):
            files_at(lake).delete(f"raw/{source}")
            bucket, _, prefix = lake.removeprefix(OBJECT_STORE).partition("/")
            for path in (self.raw / source).rglob("*.parquet"):
                key = f"{prefix}/raw/{path.relative_to(self.raw).as_posix()}"
                boto3.client("s3").upload_file(str(path), bucket, key)

    def write_source(self, number: int, first: int | None = None) -> None:
        start = number * ROWS if first is None else first
        path = self.raw / "numbers" / f"part-{number}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"number": pa.array(range(start, start + ROWS), pa.int64())}), path)

    def arrive(self, source: str, *numbers: int) -> None:
        """A CSV file for each, as an incremental source finds them."""
        folder = Path(self.settings.lake_uri) / "raw" / source
        folder.mkdir(parents=True, exist_ok=True)
        for number in numbers:
            (folder / f"{number}.csv").write_text(f"{number}\n")

    def declare(self, line: str) -> None:
        """Have the pipeline as it was made, and with this line."""
        (Path(self.settings.pipelines) / "toy.yaml").write_text(f"{(TOY / 'toy.yaml').read_text()}{line}\n")

    def command(self, *words: str, settings: Settings | None = None) -> Command:
        return _zygote().start(words, os.environ | dict((settings or self.settings).environment))

    def run(self, *words: str, settings: Settings | None = None) -> Ended:
        """Run the pipeline to its end, however that ends."""
        return ended(self.command("run", "toy", "--interval", INTERVAL, "--json", *words, settings=settings))

    def without_spark(self) -> Settings:
        return replace(self.settings, spark_remote=NOWHERE)

    def inject(self, point: Point, stage: str, wave: int, action: FaultAction) -> None:
        inject(self.settings.home_path, point, stage, wave, action)

    def records(self, stage: str) -> tuple[PartitionRecord, ...]:
        with Ledger.open(self.settings.ledger_url) as ledger:
            return ledger.partitions.newest_of("toy", INTERVAL).get(stage, ())

    def epochs(self, stage: str) -> list[int]:
        return [record.epoch for record in self.records(stage)]

    def published(self) -> list[tuple[int, int, int]]:
        """(colour, total, numbers) of the published table as any Delta reader sees it."""
        (table,) = Path(self.settings.lake_uri).glob("**/summary/_delta_log")
        rows = DeltaTable(str(table.parent)).to_pyarrow_table().to_pylist()
        return sorted((row["colour"], row["total"], row["numbers"]) for row in rows)

    def expected(self) -> list[tuple[int, int, int]]:
        """The same worked out by hand from the source files."""
        totals, counts = defaultdict(int), defaultdict(int)
        for path in (self.raw / "numbers").glob("*.parquet"):
            for number in pq.read_table(path)["number"].to_pylist():
                colour = number % 7 if number >= 0 else -(-number % 7)
                totals[colour] += 2 * number
                counts[colour] += 1
        return sorted((colour, totals[colour], counts[colour]) for colour in totals)


@dataclass(frozen=True)
class FinishedWorkbench:
    """A workbench whose pipeline has run once, kept as it was then: that run costs seconds, putting it back does not.

    It is put back where it ran, since the ledger knows its tables by their full names; one at a time.
    """

    bench: Workbench
    run: Ended
    copy: Path

    @staticmethod
    def make(folder: Path, spark_remote: str) -> FinishedWorkbench:
        (folder / "bench").mkdir()
        bench = Workbench.make(folder / "bench", spark_remote)
        run = bench.run("--run-id", FINISHED)
        assert run.code == 0, run.err
        return FinishedWorkbench(bench, run, shutil.copytree(bench.folder, folder / "copy"))

    def put_back(self) -> Workbench:
        shutil.rmtree(self.bench.folder)
        shutil.copytree(self.copy, self.bench.folder)
        return self.bench


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def result(self) -> dict[str, object]:
        assert self.code == 0, self.err
        return json.loads(self.out)

    @property
    def counts(self) -> tuple[object, object]:
        """(reused, computed)"""
        return self.result["reused"], self.result["computed"]


def ended(command: Command, timeout: float = 120) -> Ended:
    return Ended(command.wait(timeout), command.out(), command.err())


@cache
def _zygote() -> Zygote:
    """One for all tests of a process; it ends with that process."""
    zygote = Zygote()
    atexit.register(zygote.__exit__)
    return zygote.__enter__()


def killed(ended: Ended) -> bool:
    return ended.code == -signal.SIGKILL


def table_versions(uri: str) -> Sequence[int]:
    return [entry["version"] for entry in DeltaTable(uri).history()]


def forge(record: PartitionRecord) -> None:
    """Change recorded data behind everybody's back: other numbers in a valid file of the same size, which no listing
    tells.
    """
    path = Path(record.table, record.files[0].path)
    size, spark_schema = path.stat().st_size, pq.read_metadata(path).metadata
    forged = pq.ParquetFile(path).read()
    column = forged.schema.get_field_index("number")
    forged = forged.set_column(column, "number", pc.add(forged["number"], 7)).replace_schema_metadata(spark_schema)
    pq.write_table(forged, path, compression="zstd", write_statistics=False, store_schema=False)
    written = path.read_bytes()
    footer = int.from_bytes(written[-8:-4], "little") + 8
    assert len(written) <= size
    path.write_bytes(written[:-footer] + bytes(size - len(written)) + written[-footer:])
