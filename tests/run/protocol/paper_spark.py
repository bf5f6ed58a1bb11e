"""What Spark does in an attempt, done by pyarrow in milliseconds: tables, frames, files and metrics of small integers.

Everything else of an attempt is the real thing: leases, planning, adoption, healing, fences, commits, records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyspark.sql.types import IntegerType, LongType, StringType, StructType
from tests.lake.paper_table import write_file
from tests.run.protocol.stepper import indivisible, pause

from stagehold.code.side_reads import SideRead
from stagehold.gates.judge import Measured
from stagehold.gates.suite import Suite
from stagehold.gates.verdicts import GateVerdict
from stagehold.lake.commit.staged_committer import StagedCommitter
from stagehold.lake.commit.staging import StagedWave, WaveFiles
from stagehold.lake.measure import PartitionMetrics
from stagehold.lake.store.location import TableLocation
from stagehold.model.choices import Severity
from stagehold.model.records import WHOLE, Attempt, DataFile, PartitionRecord
from stagehold.plan.resume.decisions import Action
from stagehold.run.faults import Faults, Point
from stagehold.run.functions.stage_call import StageCall
from stagehold.run.functions.stage_inputs import Reading
from stagehold.run.planning.task import RegionTask
from stagehold.spec.pipeline import Stage

Amounts = tuple[int, ...]


def most_of(suite: Suite) -> int:
    """What the gates of both stages let beside debts: nothing above it, as some amounts are once they are doubled."""
    (one,) = suite.expectations
    return int(one.kwargs.get("max_value", 999))


class PaperFrames:
    """Stands for the builder of Spark frames: a frame is the amounts of each partition."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self.isolations: Mapping[str, object] = {}
        self.habits: Mapping[str, Sequence[str]] = {}
        self.reads: Mapping[str, Sequence[SideRead]] = {}
        self.counting: Sequence[Stage] = ()

    def computing(self, stage: Stage) -> AbstractContextManager[None]:
        return nullcontext()

    def call_again(self, stage: Stage, partition: int) -> Mapping[str, Sequence[StageCall]]:
        return {}  # no plans of Spark's to inspect

    def check(self, stage: Stage, partition: int) -> StructType:
        return StructType().add("name", StringType()).add("amount", LongType()).add("_partition", IntegerType())

    def output(self, stage: Stage, partitions: tuple[int, ...]) -> dict[int, Amounts]:
        return {partition: self._amounts(stage, partition) for partition in partitions}

    def counted(self, stage: Stage, partitions: tuple[int, ...]) -> Mapping[int, tuple[tuple[str, int], ...]]:
        return {}

    def group_columns(self, stage: Stage) -> tuple[str, ...]:
        return ()

    def is_arranged(self, stage: Stage) -> bool:
        return True

    def _amounts(self, stage: Stage, partition: int) -> Amounts:
        if stage.source is not None:
            files = self._reading.sources.of(stage).splits[partition].files
            return tuple(amount for file in files for amount in pq.read_table(file.path)["amount"].to_pylist())
        (decision,) = (
            decision for decision in self._reading.decisions[stage.inputs[0].stage] if decision.partition == partition
        )
        assert decision.record is not None
        assert decision.action is Action.REUSE, f"{stage.name} reads {decision}"
        return tuple(2 * amount for _, amount in rows_of(decision.record))


class PaperCommitter(StagedCommitter):
    """The real one, whose commits are one step each."""

    def append_nothing(self, table: DeltaTable, *facts: Any) -> None:
        with indivisible("its fence"):
            super().append_nothing(table, *facts)

    def replace_partitions(self, table: DeltaTable, *facts: Any) -> None:
        with indivisible("its commit"):
            super().replace_partitions(table, *facts)


@dataclass
class PaperSession:
    """Writes files by pyarrow, and remembers what each wave was told to hold, what some gate has let, and what somebody
    has waived: partitions with the fingerprints of their data.
    """

    staged: dict[tuple[str, int, int], Amounts] = field(default_factory=dict)
    passed: set[str] = field(default_factory=set)
    waived: set[tuple[int, str]] = field(default_factory=set)

    def let(self, uri: str, path: str, partition: int) -> bool:
        """Whether some gate has let this file, or somebody what is in it."""
        _, writer, wave, *_ = path.split("/")
        rows = [(writer, amount) for amount in self.staged[writer, int(wave), partition]]
        return f"{uri}/{path}" in self.passed or (partition, _metrics(partition, rows).fingerprint) in self.waived

    def report_stages(self, tell: object) -> None:
        """Paper has no server that says how far it is."""

    def frames(self, reading: Reading) -> PaperFrames:
        return PaperFrames(reading)

    def committer(self, stage: Stage, location: TableLocation) -> PaperCommitter:
        return PaperCommitter()

    def write(self, frame: Mapping[int, Amounts], files: WaveFiles, unjudged: object = None) -> StagedWave:
        written: dict[int, tuple[DataFile, ...]] = {}
        uri, attempt_id, wave = files.location.uri, files.attempt_id, files.wave
        for partition, amounts in frame.items():
            self.staged[attempt_id, wave, partition] = amounts
            rows = [(attempt_id, amount) for amount in amounts]
            written[partition] = write_file(uri, attempt_id, wave, partition, rows)
            pause("a file is written")
        return StagedWave(uri, files.folder, {partition: some for partition, some in written.items() if some})

    def measure(
        self, staged: StagedWave, schema: object, partitions: Sequence[int], suite: Suite | None, seconds: float
    ) -> Measured:
        return self._measured(
            {partition: (staged.uri, staged.files.get(partition, ())) for partition in partitions}, suite
        )

    def judge(self, records: Sequence[PartitionRecord], suite: Suite) -> Measured:
        return self._measured({record.partition: (record.table, record.files) for record in records}, suite)

    def judge_together(self, records: Sequence[PartitionRecord], suite: Suite) -> Sequence[GateVerdict]:
        """That no amount is in more than one partition, whatever the suite says."""
        pause("all are judged")
        amounts = [amount for record in records for _, amount in rows_of(record)]
        return (GateVerdict(WHOLE, "unique", len({*amounts}) == len(amounts), "", Severity.CRITICAL),)

    def _measured(self, files: Mapping[int, tuple[str, Sequence[DataFile]]], suite: Suite | None) -> Measured:
        rows = {partition: _read(*some) for partition, some in files.items()}
        metrics = tuple(_metrics(partition, some) for partition, some in rows.items())
        if suite is None:
            return Measured(metrics)
        verdicts = tuple(_verdict(partition, some, most_of(suite)) for partition, some in rows.items())
        for verdict in verdicts:
            uri, some = files[verdict.partition]
            self.passed.update(f"{uri}/{file.path}" for file in some if verdict.passed)
        return Measured(metrics, verdicts)

    def fingerprints(self, records: Sequence[PartitionRecord]) -> Mapping[int, str]:
        return {record.partition: _metrics(record.partition, rows_of(record)).fingerprint for record in records}

    def read_log(self, table: str) -> None:
        raise AssertionError(f"{table} was read by its records")


@dataclass
class PaperEngine:
    """One session for everybody. Nobody's is released, so a zombie can do as much harm as it ever could."""

    session: PaperSession = field(default_factory=PaperSession)

    @contextmanager
    def open(self, task: RegionTask, attempt: Attempt, died: Sequence[Attempt]) -> Iterator[PaperSession]:
        pause("session")
        yield self.session

    def release(self, attempt: Attempt) -> None:
        pass


class Pauses(Faults):
    """At every point where a fault could be, a step ends."""

    def reach(self, point: Point, stage: str, wave: int = 0) -> None:
        pause(str(point))


def rows_of(record: PartitionRecord) -> list[tuple[str, int]]:
    return _read(record.table, record.files)


def _metrics(partition: int, rows: Sequence[tuple[str, int]]) -> PartitionMetrics:
    amounts = sorted(amount for _, amount in rows)
    return PartitionMetrics(partition, len(amounts), f"amount-{len(amounts)}-{amounts}")


def _verdict(partition: int, rows: Sequence[tuple[str, int]], most: int) -> GateVerdict:
    passed = all(0 <= amount <= most for _, amount in rows)
    return GateVerdict(partition, "not refused", passed, "", Severity.CRITICAL)


def _read(uri: str, files: Sequence[DataFile]) -> list[tuple[str, int]]:
    for file in files:
        Path(uri, file.path).stat()  # a file that is lost is not read from the cache
    return [row for file in files for row in read_file(f"{uri}/{file.path}")]


@lru_cache(maxsize=4096)
def read_file(path: str) -> tuple[tuple[str, int], ...]:
    """Its rows; files are never written twice."""
    table = pq.read_table(path, partitioning=None)
    return tuple(zip(table["name"].to_pylist(), table["amount"].to_pylist(), strict=True))
