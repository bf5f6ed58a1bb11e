"""How often each expectation was met over the last intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from stagehold.airflow.pipeline_page.pipeline_responses import ExpectationRates, GateRates, IntervalRate, StageRates
from stagehold.gates.verdicts import NOT_MET, Outcome, waived_in
from stagehold.ledger.across.intervals import GateTally
from stagehold.ledger.ledger import Ledger
from stagehold.model.choices import Severity
from stagehold.model.records import Cell
from stagehold.plan.resume.waiving import in_force, refused_data
from stagehold.run.planning.acceptance import newest_verdict
from stagehold.spec.pipeline import Pipeline

WaivedCounts = Mapping[tuple[str, str, str], int]  # by interval, stage id and expectation


def read_gate_rates(pipeline: Pipeline, intervals: Sequence[str], ledger: Ledger) -> GateRates:
    """The rates of these intervals.

    :param intervals: the oldest first.
    """
    tallies = ledger.gate_tallies.of(pipeline.name, intervals)
    waived = _waived(pipeline, ledger.waivers.waived_intervals(pipeline.name, intervals), ledger)
    return gate_rates(pipeline, intervals, tallies, waived)


def gate_rates(
    pipeline: Pipeline, intervals: Sequence[str], tallies: Iterable[GateTally], waived: WaivedCounts
) -> GateRates:
    """The rates of stages that were judged, whether or not they still have a gate. Pure."""
    by_stage: dict[str, list[GateTally]] = {}
    for one in tallies:
        by_stage.setdefault(one.stage, []).append(one)
    stages = (
        StageRates(
            stage=stage.name,
            gate=stage.gate,
            expectations=tuple(_expectations(by_stage[stage.id], intervals, waived)),
        )
        for stage in pipeline.stages
        if stage.id in by_stage
    )
    return GateRates(intervals=tuple(intervals), stages=tuple(stages))


def _expectations(
    tallies: Iterable[GateTally], intervals: Sequence[str], waived: WaivedCounts
) -> Iterator[ExpectationRates]:
    by_expectation: dict[str, list[GateTally]] = {}
    for one in tallies:
        by_expectation.setdefault(one.expectation, []).append(one)
    for expectation, some in by_expectation.items():
        newest = max(some, key=lambda one: one.judged_at)
        rates = (_rate(interval, some, waived) for interval in intervals)
        told = tuple(one for one in rates if one.counts)
        yield ExpectationRates(suite=newest.suite, expectation=expectation, severity=newest.severity, rates=told)


def _rate(interval: str, tallies: Iterable[GateTally], waived: WaivedCounts) -> IntervalRate:
    counts: Counter[Outcome] = Counter()
    for one in tallies:
        if one.interval == interval:
            let = waived.get((interval, one.stage, one.expectation), 0) if _blocks(one) else 0
            let = min(let, one.partitions)
            counts[Outcome.WAIVED] += let
            counts[Outcome.PASSED if one.passed else NOT_MET[one.severity]] += one.partitions - let
    return IntervalRate(interval=interval, counts={outcome: count for outcome, count in counts.items() if count})


def _blocks(tally: GateTally) -> bool:
    return not tally.passed and tally.severity is Severity.CRITICAL


def _waived(pipeline: Pipeline, intervals: Iterable[str], ledger: Ledger) -> WaivedCounts:
    """How many refused partitions are waived. Data that waivers hold for is looked up only in intervals that have
    waivers.
    """
    counts: Counter[tuple[str, str, str]] = Counter()
    for interval in intervals:
        words = in_force(ledger.waivers.of(pipeline.name, interval), datetime.now(UTC))
        for stage in {one.stage for one in words}:
            records = ledger.partitions.newest(Cell(pipeline.name, stage, interval))
            data = refused_data(records, newest_verdict(records, ledger) if records else None)
            for _, expectation in waived_in(data, [one for one in words if one.stage == stage]):
                counts[interval, stage, expectation] += 1
    return counts
