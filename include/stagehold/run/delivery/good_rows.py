"""Publishes the good rows of partitions that do not meet their gate, if its suite wants the bad rows set aside.

A partition's bad rows are committed with it, like the state that it keeps for later intervals: they are fenced,
restored and deleted with it, and an attempt that dies in between leaves neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stagehold.errors import GateErrored, RowsUnaccounted
from stagehold.gates.judge import Measured, Unmet
from stagehold.gates.suite import Suite
from stagehold.gates.verdicts import GateVerdict
from stagehold.lake.commit.staging import SPLIT_FOLDER, StagedWave, WaveFiles
from stagehold.lake.measure import PartitionMetrics
from stagehold.lake.quarantine import bring_up_to_date, quarantine_uri
from stagehold.lake.store.columns import EXPECTATION
from stagehold.model.choices import Severity
from stagehold.model.records import QUARANTINE, StatePart
from stagehold.run.delivery.wave import EquippedStage, StageTask
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.faults import QuarantinePoint
from stagehold.spec.settings.output_settings import CommitterKind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


class SettingAside:
    """Sets aside bad rows of the waves of one stage, in one attempt."""

    def __init__(self, equipped: EquippedStage) -> None:
        self.task, self.session, self.workplace = equipped.task, equipped.session, equipped.workplace

    def good_rows(
        self, staged: StagedWave, measured: Measured, schema: StructType, files: WaveFiles, seconds: float
    ) -> tuple[StagedWave, Measured, Mapping[int, tuple[StatePart, ...]]]:
        """The wave as it is to be delivered, and the rows that were set aside of some of its partitions.

        Partitions without bad rows stay where they are. The good rows of the others are staged anew and judged, so what
        is published meets all other expectations of its gate.

        :raises GateErrored: an expectation does not say which rows it does not expect.
        """
        suite = self.task.suite
        unmet = _unmet(suite, measured) if suite else ()
        if suite is None or not unmet:
            return staged, measured, {}
        if self.task.stage.output.committer is not CommitterKind.STAGED:
            raise GateErrored(suite.name, ["on_fail: quarantine needs an output with `committer: staged`"])
        partitions = tuple(sorted({number for _, numbers in unmet for number in numbers}))
        files = replace(files, partitions=partitions, arranged=False)
        good, bad = self.session.split(staged, schema, unmet, suite)
        rest, aside = self._staged(good, bad, files)
        self.workplace.faults.reach(QuarantinePoint.AFTER_SPLIT, self.task.stage.name, files.wave)
        again = self.session.measure(rest, schema, partitions, suite, seconds)
        apart = self.session.measure(aside, _schema_of(bad), partitions, None, 0)
        split = _Split(measured, again, apart, frozenset(partitions))
        split.require_all_rows(self.task.stage.name)
        parts = {metrics.partition: (self._part(metrics, aside),) for metrics in apart.metrics if metrics.rows}
        paths = {**staged.files, **{number: rest.files.get(number, ()) for number in partitions}}
        return replace(staged, files=paths), split.measured(suite), parts

    def _staged(self, good: DataFrame, bad: DataFrame, files: WaveFiles) -> tuple[StagedWave, StagedWave]:
        rest = self.session.write(good, replace(files, below=f"{SPLIT_FOLDER}/rest"))
        unordered = replace(files, below=f"{SPLIT_FOLDER}/aside", sort_by=(), rows_per_file=0)
        return rest, self.session.write(bad, unordered)

    def _part(self, measured: PartitionMetrics, aside: StagedWave) -> StatePart:
        stage = self.task.stage
        return StatePart(
            name=QUARANTINE,
            files=aside.files.get(measured.partition, ()),
            rows=measured.rows,
            fingerprint=measured.fingerprint,
            partitions=stage.partitions,
            max_parallelism=stage.max_parallelism,
            began="",
        )


@dataclass(frozen=True)
class _Split:
    """The measures of whole partitions ``before`` some were split, of the ``rest`` of the split ones, and of the rows
    set ``aside``.
    """

    before: Measured
    rest: Measured
    aside: Measured
    partitions: frozenset[int]

    def require_all_rows(self, stage: str) -> None:
        left, aside = _rows(self.rest), _rows(self.aside)
        for number, rows in _rows(self.before).items():
            if number in self.partitions and left[number] + aside[number] != rows:
                raise RowsUnaccounted(stage, number, rows, left[number], aside[number])

    def measured(self, suite: Suite) -> Measured:
        left = {metrics.partition: metrics for metrics in self.rest.metrics}
        metrics = tuple(left.get(metrics.partition, metrics) for metrics in self.before.metrics)
        return Measured(metrics, (*self._verdicts(suite), *self._beyond(suite)))

    def _verdicts(self, suite: Suite) -> Iterator[GateVerdict]:
        """Verdicts on the rows that are left. Expectations that were not met before rows were set aside stay on record
        as not met.
        """
        setting_aside = {str(expectation) for expectation in suite.setting_aside}
        again = {(verdict.partition, verdict.expectation): verdict for verdict in self.rest.verdicts}
        for verdict in self.before.verdicts:
            found = again.get((verdict.partition, verdict.expectation), verdict)
            if found is not verdict and found.passed and not verdict.passed and verdict.expectation in setting_aside:
                yield _as_set_aside(verdict)
            else:
                yield as_blocking(found, suite)

    def _beyond(self, suite: Suite) -> Iterator[GateVerdict]:
        """A verdict for each partition of which too many rows are set aside."""
        limit, of_all = suite.max_quarantined, _rows(self.before)
        for number, rows in _rows(self.aside).items():
            if limit and not limit.allows(rows, of_all[number]):
                text, seen = f"max_quarantined({limit})", f"{rows} of {of_all[number]} rows set aside"
                yield GateVerdict(number, text, False, seen, Severity.CRITICAL)


def _unmet(suite: Suite, measured: Measured) -> tuple[Unmet, ...]:
    """The expectations for which rows are set aside, each with the partitions that do not meet it."""
    failed: dict[str, list[int]] = {}
    for verdict in measured.verdicts:
        if not verdict.passed:
            failed.setdefault(verdict.expectation, []).append(verdict.partition)
    return tuple(
        (expectation, tuple(sorted(failed[str(expectation)])))
        for expectation in suite.setting_aside
        if str(expectation) in failed
    )


def as_blocking(verdict: GateVerdict, suite: Suite) -> GateVerdict:
    """The verdict on rows that are to be published: if its rows should have been set aside and could not be, it
    blocks.
    """
    fails = not verdict.passed and verdict.expectation in {str(expectation) for expectation in suite.setting_aside}
    return replace(verdict, severity=Severity.CRITICAL) if fails else verdict


def _as_set_aside(verdict: GateVerdict) -> GateVerdict:
    severity = Severity.WARNING if verdict.severity is Severity.CRITICAL else verdict.severity
    return replace(verdict, severity=severity, observed=f"{verdict.observed}; set aside")


def _rows(measured: Measured) -> Mapping[int, int]:
    return {metrics.partition: metrics.rows for metrics in measured.metrics}


def _schema_of(bad: DataFrame) -> StructType:
    from pyspark.sql.types import StructType

    return StructType([field for field in bad.schema.fields if field.name != EXPECTATION])


def show_quarantined(task: StageTask, workplace: Workplace) -> None:
    """Bring the stage's quarantine table up to date for the interval, also if its gate no longer sets rows aside or
    there is no gate. If that fails, a warning says so: the rows are kept with their partitions all the same.
    """
    from deltalake.exceptions import DeltaError

    uri = quarantine_uri(workplace.settings.lake_uri, task.cell.pipeline, task.stage)
    try:
        records = workplace.ledger.partitions.newest(task.cell)
        changed = bring_up_to_date(uri, task.cell.interval, records, task.stage.partitions)
    except (DeltaError, OSError) as error:
        text = f"{uri} does not show what was set aside of {task.stage.name} for {task.cell.interval}: {error}"
        workplace.warn(task.attempt.run_id, "quarantine", task.stage.name, text)
        return
    if changed:
        workplace.progress(f"{task.stage.name}: {uri} shows the rows that are set aside now")
