"""Computes the partitions of one stage, wave by wave: write, measure, gate, publish, record.

After every wave its passing partitions are consumable, whatever happens next. A crash before the publish leaves files
nobody reads; a crash between publish and record leaves a commit that the next attempt adopts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from stagehold.errors import CameOutDifferent, GateBlocked, NotDeterministic
from stagehold.gates.judge import Verdict, judge, judged_columns
from stagehold.gates.suite import Severity, Suite
from stagehold.lake.columns import data_fields
from stagehold.lake.commit import Landed
from stagehold.lake.committer import Committer
from stagehold.lake.file_sizing import FileSizer
from stagehold.lake.location import TableLocation
from stagehold.lake.measure import PartitionMetrics, measure
from stagehold.lake.staging import StagedWave, is_staging, stage_frame
from stagehold.lake.tables import ensure_table
from stagehold.lake.wave_commit import Claim, CommittedPartition, WaveCommit
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Cell, DataFile, Event, GateResult, PartitionRecord, PartitionState
from stagehold.model.source_position import SourcePosition
from stagehold.model.spec import DeterminismPolicy, Stage
from stagehold.plan.isolation.verdict import apart_text
from stagehold.plan.reproduction import remark
from stagehold.plan.resume import Action, Decision
from stagehold.plan.skew import skew_text, skewed
from stagehold.plan.waves import MeasuredWave, WaveSizer
from stagehold.run.determinism import inspect
from stagehold.run.faults import Point, reach, reach_within
from stagehold.run.frames import FrameBuilder
from stagehold.run.rights import Right, Rights
from stagehold.run.sessions import measuring_session
from stagehold.run.stage_failure import reporting_queries

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class WaveDone:
    """What the gate refused, what was staged, and how long everything took."""

    refused: Sequence[Verdict]
    files: Sequence[DataFile]
    measured: MeasuredWave


@dataclass(frozen=True)
class StageRunner:
    """Runs the waves of one stage within one attempt."""

    stage: Stage
    cell: Cell
    run_id: str
    attempt_id: str
    location: TableLocation
    rivals: Callable[[], Sequence[TableLocation]]
    committer: Committer
    rights: Rights
    positions: tuple[SourcePosition, ...]
    frames: FrameBuilder
    suite: Suite | None
    ledger: Ledger
    sizer: WaveSizer
    home: Path
    progress: Callable[[str], None]

    def run(self, decisions: Sequence[Decision]) -> int:
        """Compute the decided partitions; returns the number of waves.

        The table is created first, so that the fence has a log to go to before anything is written.

        :raises StageContractBroken: before anything is written, when the function's frame cannot be stored.
        :raises NotDeterministic: likewise, when it may come out different next time and the spec forbids that.
        :raises GateBlocked: after the last wave, when the gate refused some partitions; all others are consumable.
        """
        with self._reporting(decisions[:1]):
            schema = self.frames.check(self.stage, decisions[0].partition)
            self._guard(decisions[0].partition, schema)
        self.rights.begin_stage(self.stage.name, partial(self._prepare, schema))
        remaining = tuple(decisions)
        files = FileSizer.guess(self.stage.output.file_bytes, schema).having_seen(_recorded_files(decisions))
        size, wave, refused = self.sizer.first(len(remaining)), 0, list[Verdict]()
        while remaining:
            wave += 1
            self.progress(f"{self.stage.name}: wave {wave} takes {size.partitions} of {len(remaining)} partitions: {size.reason}")
            current, remaining = remaining[: size.partitions], remaining[size.partitions :]
            done = self._wave(wave, current, schema, files.rows_per_file)
            refused += done.refused
            files, size = files.having_seen(done.files), self.sizer.following(done.measured, len(remaining))
        self._warn_of_skew(decisions)
        if refused:
            raise GateBlocked(self.stage.name, _reasons(refused))
        return wave

    def _guard(self, partition: int, schema: StructType) -> None:
        """Say, once per attempt, what may come out different next time, and why a wave is not computed by one call."""
        found = inspect(self.frames, self.stage, partition, schema)
        for one in found:
            self._warn("not deterministic", str(one))
        for name, isolation in self.frames.isolations.items():
            if not isolation.together:
                self._warn("called apart", apart_text(name, isolation))
        refused = [str(one) for one in found if one.refused]
        if refused:
            raise NotDeterministic(self.stage.name, refused)

    def _prepare(self, schema: StructType, epoch: int) -> None:
        claim = Claim(epoch, self.attempt_id)
        ensure_table(self.location, schema, claim)
        self._reach(Point.BEFORE_FENCE, 0)
        self.committer.fence(self.location, claim, self.rivals())
        self._reach(Point.AFTER_FENCE, 0)

    def _wave(self, wave: int, decisions: Sequence[Decision], schema: StructType, rows_per_file: int) -> WaveDone:
        started = time.monotonic()
        partitions = tuple(decision.partition for decision in decisions)
        self._reach(Point.BEFORE_WRITE, wave)
        mid_write = reach_within(
            self.home, Point.MID_WRITE, self.stage.name, wave, lambda: is_staging(self.location, self.attempt_id, wave)
        )
        with self._reporting(decisions), mid_write:
            frame = self.frames.output(self.stage, partitions)
            staged = stage_frame(
                frame,
                self.location,
                self.attempt_id,
                wave,
                partitions,
                self.frames.group_columns(self.stage),
                arranged=self.frames.is_arranged(self.stage),
                rows_per_file=rows_per_file,
            )
        written = time.monotonic()
        self._reach(Point.AFTER_WRITE, wave)
        metrics = measure(measuring_session(self.frames.spark), staged, schema, partitions, self._judged(schema))
        self._reach(Point.AFTER_MEASURE, wave)
        right = self.rights.secure(self.stage.name, decisions)
        taken = [decision for decision in decisions if decision.partition in right.partitions]
        refused = self._deliver(right, wave, taken, staged, [one for one in metrics if one.partition in right.partitions], started)
        ended = time.monotonic()
        files = [file for some in staged.files.values() for file in some]
        return WaveDone(refused, files, MeasuredWave(len(decisions), ended - started, ended - written))

    def _reporting(self, decisions: Sequence[Decision]) -> AbstractContextManager[None]:
        return reporting_queries(self.stage, [decision.partition for decision in decisions], Path(self.frames.project))

    def _judged(self, schema: StructType) -> frozenset[str]:
        return judged_columns(self.suite, [field.name for field in data_fields(schema)]) if self.suite else frozenset()

    def _deliver(
        self,
        right: Right,
        wave: int,
        decisions: Sequence[Decision],
        staged: StagedWave,
        metrics: Sequence[PartitionMetrics],
        started: float,
    ) -> list[Verdict]:
        """Gate, publish and record what there is a right to; what the gate refused.

        :raises CameOutDifferent: before anything is published.
        """
        if not metrics:
            return []
        self._refuse_other_data(decisions, metrics)
        verdicts = judge(metrics, self.suite) if self.suite else ()
        refused = _refused(verdicts)
        blocked = {verdict.partition for verdict in refused}
        landed = self._publish(right, wave, staged, [one for one in metrics if one.partition not in blocked], decisions)
        self._reach(Point.AFTER_PUBLISH, wave)
        self._record(right, wave, staged, metrics, decisions, landed, verdicts, (time.monotonic() - started) / len(decisions))
        self._reach(Point.AFTER_RECORD, wave)
        self._tell(right.attempt.epoch, wave, metrics, blocked, landed, time.monotonic() - started)
        return refused

    def _refuse_other_data(self, decisions: Sequence[Decision], metrics: Sequence[PartitionMetrics]) -> None:
        """Readers rely on it that a partition with the same key is the same one, unless the author says that it need not be."""
        fingerprints = {one.partition: one.fingerprint for one in metrics}
        again = [one for one in decisions if one.record is not None and one.record.compute_key == str(one.key)]
        found = {} if self.frames.pipeline.determinism_of(self.stage) is DeterminismPolicy.WARN else _remarks(again, fingerprints)
        if found:
            raise CameOutDifferent(self.stage.name, found)

    def _publish(
        self, right: Right, wave: int, staged: StagedWave, passing: Sequence[PartitionMetrics], decisions: Sequence[Decision]
    ) -> Landed | None:
        if not passing:
            return None
        self._reach(Point.BEFORE_PUBLISH, wave)
        right.heartbeat.check()
        keys = _keys(decisions)
        committed = tuple(
            CommittedPartition(one.partition, one.rows, one.fingerprint, keys[one.partition], staged.files.get(one.partition, ()))
            for one in passing
        )
        commit = WaveCommit(
            run_id=self.run_id,
            stage=self.stage.id,
            attempt_id=self.attempt_id,
            epoch=right.attempt.epoch,
            wave=wave,
            partitions=committed,
            cut_into=self.stage.partitions,
            positions=self.positions,
        )
        return self.committer.publish(self.location, commit)

    def _record(
        self,
        right: Right,
        wave: int,
        staged: StagedWave,
        metrics: Sequence[PartitionMetrics],
        decisions: Sequence[Decision],
        landed: Landed | None,
        verdicts: Sequence[Verdict],
        seconds: float,
    ) -> None:
        """Partitions and what their gate said of them, in one transaction."""
        keys, reasons = _keys(decisions), _reasons(_refused(verdicts))
        remarks = _remarks(decisions, {one.partition: one.fingerprint for one in metrics})
        files = {**staged.files, **(landed.files if landed else {})}
        now = datetime.now(UTC)
        records = [
            PartitionRecord(
                cell=self.cell,
                partition=one.partition,
                state=PartitionState.BLOCKED if one.partition in reasons else PartitionState.CONSUMABLE,
                run_id=self.run_id,
                attempt_id=self.attempt_id,
                epoch=right.attempt.epoch,
                wave=wave,
                table=self.location.uri,
                version=landed.version if landed and one.partition not in reasons else None,
                files=files.get(one.partition, ()),
                rows=one.rows,
                fingerprint=one.fingerprint,
                compute_key=keys[one.partition],
                recorded_at=now,
                reason=reasons.get(one.partition) or remarks.get(one.partition),
                seconds=seconds,
                unexplained=one.partition in remarks,
            )
            for one in metrics
        ]
        results = self._results(verdicts, now)
        with self.ledger.together():
            self.ledger.partitions.record(records, right.heartbeat.lease)
            self.ledger.gates.record(results)
        for partition, text in remarks.items():
            self._warn("not deterministic", f"{self.stage.name}[{partition}] {text}")

    def _results(self, verdicts: Sequence[Verdict], now: datetime) -> list[GateResult]:
        suite = self.suite.name if self.suite else ""
        return [
            GateResult(self.cell, one.partition, self.attempt_id, suite, one.expectation, one.passed, one.observed, now) for one in verdicts
        ]

    def _tell(
        self, epoch: int, wave: int, metrics: Sequence[PartitionMetrics], blocked: set[int], landed: Landed | None, seconds: float
    ) -> None:
        for one in metrics:
            state = f"consumable, version {landed.version}" if landed and one.partition not in blocked else "blocked by its gate"
            self.progress(f"{self.stage.name}[{one.partition}] {state}: {one.rows} rows (epoch {epoch}, wave {wave})")
        self.progress(f"{self.stage.name}: wave {wave}, {len(metrics)} partitions, took {seconds:.1f} s")

    def _warn_of_skew(self, decisions: Sequence[Decision]) -> None:
        """Of the partitions computed just now, name those that are much larger than the stage's others."""
        found = skewed(self.ledger.partitions.newest(self.cell))
        for partition in sorted(found.keys() & {decision.partition for decision in decisions}):
            self._warn("skewed", f"{self.stage.name}[{partition}] is skewed: {skew_text(found[partition])}")

    def _warn(self, kind: str, text: str) -> None:
        self.progress(f"warning: {text}")
        self.ledger.events.append(Event(self.run_id, kind, self.stage.name, text, datetime.now(UTC)))

    def _reach(self, point: Point, wave: int) -> None:
        reach(self.home, point, self.stage.name, wave)


def _recorded_files(decisions: Sequence[Decision]) -> list[DataFile]:
    return [file for decision in decisions if decision.record for file in decision.record.files]


def _keys(decisions: Sequence[Decision]) -> Mapping[int, str]:
    return {decision.partition: str(decision.key) for decision in decisions}


def _remarks(decisions: Sequence[Decision], fingerprints: Mapping[int, str]) -> dict[int, str]:
    """What is odd about partitions that were computed before."""
    found = {
        one.partition: remark(
            one.record,
            compute_key=str(one.key),
            fingerprint=fingerprints[one.partition],
            healed=one.action is Action.HEAL,
            because=one.reason,
        )
        for one in decisions
    }
    return {partition: text for partition, text in found.items() if text}


def _refused(verdicts: Sequence[Verdict]) -> list[Verdict]:
    return [verdict for verdict in verdicts if not verdict.passed and verdict.severity is Severity.CRITICAL]


def _reasons(refused: Sequence[Verdict]) -> dict[int, str]:
    """Why each refused partition is blocked, all its failed expectations in one text."""
    texts: dict[int, list[str]] = {}
    for verdict in refused:
        texts.setdefault(verdict.partition, []).append(f"{verdict.expectation}: got {verdict.observed}")
    return {partition: "; ".join(lines) for partition, lines in texts.items()}
