"""What Spark and the planner do in an attempt, done on paper: a partition is computed if what is on record of it is not
made from its source as that is now, or cannot be read any more.

Everything that changes ledger or lake is the product's: leases, fences, adoption, waves, commits, records, sweeps.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import IntegerType, LongType, StructType

from stagehold.gates.judge import Measured
from stagehold.gates.suite import Suite
from stagehold.gates.verdicts import GateVerdict
from stagehold.lake.available import missing_files
from stagehold.lake.commit.staging import StagedWave, WaveFiles
from stagehold.lake.measure import PartitionMetrics
from stagehold.lake.published import absences
from stagehold.lake.store.location import TableLocation
from stagehold.model.choices import Severity
from stagehold.model.keys.compute_key import ComputeKey
from stagehold.model.records import DataFile, PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.plan.grounds.reasons import Reason
from stagehold.plan.resume.decisions import BlockedDecision, Decision, HealDecision, ReuseDecision, RunDecision
from stagehold.plan.waves.sizing import DeclaredInterval, WaveSizer
from stagehold.run.attempt.region_work import RegionWork
from stagehold.run.delivery.wave import EquippedStage, StageTask
from stagehold.run.faults import Point
from stagehold.run.functions.stage_inputs import Reading
from stagehold.run.planning.task import RegionOutcome
from stagehold.run.stage.runner import StageRunner
from stagehold.run.stage.waves import Waves
from stagehold.spec.pipeline import Stage

if TYPE_CHECKING:
    from fuzz.simulator.simulation import Simulation

SCHEMA = StructType().add("amount", LongType()).add("_partition", IntegerType())
REASON = Reason(("as it is in the simulator",))
HALVES = ("first-half", "second-half")
BAD = 4  # of so many versions of a source, the last one is refused by the gate


def is_refused(version: int) -> bool:
    return version % BAD == BAD - 1


class PaperSession:
    """Frames are versions of sources by partition."""

    isolations: Mapping[str, object] = {}
    habits: Mapping[str, object] = {}
    reads: Mapping[str, object] = {}
    counting: Sequence[Stage] = ()

    def __init__(self, world: Simulation, decisions: Sequence[Decision]) -> None:
        self._world, self._versions = world, {each.partition: version_of(str(each.key)) for each in decisions}

    def report_stages(self, tell: object) -> None:
        """No server says how far it is."""

    def frames(self, reading: Reading) -> PaperSession:
        return self

    def committer(self, stage: Stage, location: TableLocation) -> Any:
        return self._world.place.committer

    def computing(self, stage: Stage) -> AbstractContextManager[None]:
        return nullcontext()

    def check(self, stage: Stage, partition: int) -> StructType:
        return SCHEMA

    def call_again(self, stage: Stage, partition: int) -> Mapping[str, object]:
        return {}

    def group_columns(self, stage: Stage) -> tuple[str, ...]:
        return ()

    def is_arranged(self, stage: Stage) -> bool:
        return True

    def output(self, stage: Stage, partitions: tuple[int, ...]) -> Mapping[int, int]:
        return {partition: self._versions[partition] for partition in partitions}

    def counted(self, stage: Stage, partitions: tuple[int, ...]) -> Mapping[int, tuple[tuple[str, int], ...]]:
        return {}

    def write(self, frame: Mapping[int, int], files: WaveFiles, unjudged: object = None) -> StagedWave:
        """Half of each partition is in a file of its own, and one step."""
        staged: dict[int, tuple[DataFile, ...]] = {}
        for partition in frame:
            paths = [f"{files.folder}/_partition={partition}/{half}.parquet" for half in HALVES]
            for path in paths:
                self._world.write(f"{files.location.uri}/{path}", one_row())
            staged[partition] = tuple(DataFile(path, len(one_row()), 1) for path in paths)
        return StagedWave(files.location.uri, files.folder, staged)

    def measure(
        self, staged: StagedWave, schema: object, partitions: Sequence[int], suite: Suite | None, seconds: float
    ) -> Measured:
        verdicts = []
        for partition in partitions:
            passed = not is_refused(self._versions[partition])
            verdicts.append(GateVerdict(partition, "not refused", passed, "", Severity.CRITICAL))
            if passed:
                self._world.let |= {file.path for file in staged.files[partition]}
        metrics = (PartitionMetrics(one, 2, f"amount-2-{self._versions[one]}") for one in partitions)
        return Measured(tuple(metrics), tuple(verdicts))


class OneByOne(StageRunner):
    """Its waves have one partition each, and the second one begins beside the first, as if others had been timed."""

    def _waves(self) -> Waves:
        waves = super()._waves()
        waves._sizer = WaveSizer(DeclaredInterval(0.001), slots=1)
        waves._timed.append((1, 1.0, 1))
        return waves


class PaperWork(RegionWork):
    """The work of an attempt, whose plan is made on paper."""

    def __init__(self, work: RegionWork, world: Simulation) -> None:
        self.__dict__.update(vars(work))
        self._world = world

    def do(self) -> RegionOutcome:
        (name,) = self.tables.stages
        decisions = tuple(self._decisions(name))
        todo, waves = [decision for decision in decisions if decision.action.computes], 0
        self._world.hear([(one.partition, one.action, str(one.key)) for one in todo])
        if todo:
            waves = self._paper_runner(name, decisions, PaperSession(self._world, todo)).run(todo)
            self.tables.sweep(name, self.attempt)
        self.refuse_blocked(ResumePlanOf(decisions))  # type: ignore[arg-type]
        self.workplace.faults.reach(Point.BEFORE_FINISH, self.task.region.name)
        return RegionOutcome(len(decisions) - len(todo), len(todo), waves, 0.0)

    def _decisions(self, name: str) -> Iterator[Decision]:
        """What a planner that reads sources, ledger and lake as they are now decides of the attempt's own share."""
        records = {
            record.partition: record for record in self.workplace.ledger.partitions.newest(self.tables.cell(name))
        }
        gone = gone_of([record for record in records.values() if record.state.readable])
        for partition in range(self._world.shape.partitions):
            if self.task.share is None or partition in self.task.share:
                yield decided(name, partition, self._world.sources[partition], records.get(partition), gone)

    def _paper_runner(self, name: str, decisions: Sequence[Decision], session: PaperSession) -> StageRunner:
        stage, tables = self.task.pipeline.stage(name), self.tables
        task = StageTask(stage, tables.cell(name), self.attempt, tables.location(name), (), self._world.suite)
        reading = Reading(self.task.pipeline, {name: decisions}, None, None, "")  # type: ignore[arg-type]
        return OneByOne(
            EquippedStage(task, session, self.publisher, session.committer(stage, task.location), self.workplace),
            reading,
            tables=tables,
            waves_before=tables.waves_of(name, self.attempt.attempt_id),
            answers=self.answers,
            meter=self.heartbeat.meter,
        )


@dataclass(frozen=True)
class ResumePlanOf:
    """The decisions of one stage."""

    decisions: Sequence[Decision]

    def of(self, stage: str) -> Sequence[Decision]:
        return self.decisions


def decided(name: str, partition: int, version: int, record: PartitionRecord | None, gone: frozenset[int]) -> Decision:
    key = key_of(version)
    if record is None or record.compute_key != str(key) or not record.state.keeps_files:
        return RunDecision(name, partition, REASON, key, record)
    if record.state is PartitionState.BLOCKED:
        return BlockedDecision(name, partition, REASON, key, record)
    return (HealDecision if partition in gone else ReuseDecision)(name, partition, REASON, key, record)


def gone_of(records: Sequence[PartitionRecord]) -> frozenset[int]:
    """Partitions of these that cannot be read as they are recorded."""
    if records and records[0].table.endswith("prints"):
        return missing_files(records) | absences(records).lost
    return missing_files(records)


def key_of(version: int) -> ComputeKey:
    return ComputeKey("code", "settings", "environment", "params", f"v{version}")


def version_of(key: str) -> int:
    return int(key.rpartition("v")[2])


@cache
def one_row() -> bytes:
    """Every file has these bytes: what is in it is known by its address."""
    content = io.BytesIO()
    pq.write_table(pa.table({"amount": [1]}), content)
    return content.getvalue()
