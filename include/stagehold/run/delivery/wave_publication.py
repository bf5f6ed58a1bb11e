"""Publishes and records the partitions of a wave that its gate lets through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from stagehold.errors import CameOutDifferent
from stagehold.lake.commit.committed_waves import Landed
from stagehold.lake.commit.wave_commit import CommittedPartition, WaveCommit
from stagehold.lake.declared_columns import refuse_nulls
from stagehold.model.records import PartitionRecord
from stagehold.run.delivery.publish import Publication, publish, wave_of
from stagehold.run.delivery.ruling import Rulings, results, unmet, warn
from stagehold.run.delivery.wave import EquippedStage, PublishRight, Wave


class Delivery:
    """Takes the waves of one stage from staged to consumable.

    ``may_differ`` says that data may come out different though its key is the same.
    """

    def __init__(self, equipped: EquippedStage, *, may_differ: bool) -> None:
        self.task, self.workplace, self.committer = equipped.task, equipped.workplace, equipped.committer
        self.may_differ = may_differ

    def deliver(self, wave: Wave, right: PublishRight) -> Mapping[int, str]:
        """Publish and record the partitions that pass their gate; return those that do not, and why.

        :raises CameOutDifferent: data differs though its key is the same; nothing was published.
        :raises ColumnsNotAsDeclared: a column is NULL somewhere that may not be; nothing was published.
        """
        if not wave.metrics:
            return {}
        self._refuse_other_data(wave)
        fingerprints = {metrics.partition: metrics.fingerprint for metrics in wave.metrics}
        rulings = Rulings.of(unmet(wave.verdicts), fingerprints, self.task)
        passing = [metrics for metrics in wave.metrics if metrics.partition not in rulings.blocked]
        refuse_nulls(self.task.stage, {metrics.partition: metrics.nulls for metrics in passing})
        said = results(self.task, wave.verdicts, datetime.now(UTC))
        own = wave_of(self.task, right, wave.number)
        commit = self._commit(wave, own, rulings)
        landed = publish(
            Publication(self.task.stage.name, self.task.location, wave.number, commit, said),
            lambda landed: self._records(wave, own, landed, rulings),
            self.committer,
            right.heartbeat,
            self.workplace,
        )
        self._tell(wave, right, landed, rulings)
        warn(self.task, wave.verdicts, rulings, self.workplace)
        return rulings.blocked

    def _refuse_other_data(self, wave: Wave) -> None:
        """Refuse different data under the same key. Readers rely on the data being the same, unless the author says
        that it may differ.
        """
        if not self.may_differ and wave.other_data:
            raise CameOutDifferent(self.task.stage.name, dict(wave.other_data))

    def _commit(self, wave: Wave, own: WaveCommit, rulings: Rulings) -> WaveCommit | None:
        """The commit to publish; None if nothing passes, or if all partitions of the stage are to be judged together
        before any is read.
        """
        passing = [metrics for metrics in wave.metrics if metrics.partition not in rulings.blocked]
        if not passing or self.task.whole:
            return None
        committed = (
            CommittedPartition(
                metrics.partition,
                metrics.rows,
                metrics.fingerprint,
                wave.keys[metrics.partition],
                wave.staged.files.get(metrics.partition, ()),
                wave.kept.get(metrics.partition, ()),
                self.task.judge,
                rulings.of_partition(metrics.partition).refused,
                wave.counted.get(metrics.partition, ()),
            )
            for metrics in passing
        )
        return replace(own, partitions=tuple(committed))

    def _records(self, wave: Wave, own: WaveCommit, landed: Landed | None, rulings: Rulings) -> list[PartitionRecord]:
        now, seconds = datetime.now(UTC), wave.seconds / len(wave.decisions)
        files = {**wave.staged.files, **(landed.files if landed else {})}
        return [
            PartitionRecord(
                cell=self.task.cell,
                partition=metrics.partition,
                state=rulings.of_partition(metrics.partition).state_in(self.task),
                run_id=own.run_id,
                attempt_id=own.attempt_id,
                epoch=own.epoch,
                wave=own.wave,
                table=self.task.location.uri,
                version=landed.version if landed and metrics.partition not in rulings.blocked else None,
                files=files.get(metrics.partition, ()),
                rows=metrics.rows,
                fingerprint=metrics.fingerprint,
                compute_key=wave.keys[metrics.partition],
                recorded_at=now,
                reason=rulings.of_partition(metrics.partition).reason or wave.remarks.get(metrics.partition),
                seconds=seconds,
                storing=max(0.0, seconds - wave.computing / len(wave.decisions)),
                unexplained=metrics.partition in wave.remarks,
                kept=wave.kept.get(metrics.partition, ()),
                judged=self.task.judge,
                refused=rulings.of_partition(metrics.partition).refused,
                counted=wave.counted.get(metrics.partition, ()),
            )
            for metrics in wave.metrics
        ]

    def _tell(self, wave: Wave, right: PublishRight, landed: Landed | None, rulings: Rulings) -> None:
        stage, progress = self.task.stage.name, self.workplace.progress
        for partition, text in wave.remarks.items():
            self.workplace.warn(self.task.attempt.run_id, "not deterministic", stage, f"{stage}[{partition}] {text}")
        for metrics in wave.metrics:
            passed = landed is not None and metrics.partition not in rulings.blocked
            kept_back = "blocked by its gate" if metrics.partition in rulings.blocked else "held"
            state = f"consumable, version {landed.version}" if landed and passed else kept_back
            made_by = f"epoch {right.attempt.epoch}, wave {wave.number}"
            progress(f"{stage}[{metrics.partition}] {state}: {metrics.rows} rows ({made_by})")
        if self.task.suite:
            progress(f"{stage}: {rulings.in_words(self.task.suite.name, len(wave.metrics))}")
        progress(f"{stage}: wave {wave.number}, {len(wave.metrics)} partitions, took {wave.seconds:.1f} s")
