"""What is told of a gate's verdicts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from stagehold.gates.verdicts import GateVerdict
from stagehold.model.choices import Severity, Waiver
from stagehold.run.delivery.ruling import Rulings, unmet, warnings
from stagehold.run.delivery.wave import StageTask


def verdict(partition: int, expectation: str, *, passed: bool, severity: Severity) -> GateVerdict:
    return GateVerdict(partition, expectation, passed, f"{expectation} of {partition}", severity)


VERDICTS = [
    verdict(0, "critical", passed=True, severity=Severity.CRITICAL),
    verdict(1, "critical", passed=False, severity=Severity.CRITICAL),
    verdict(1, "other", passed=False, severity=Severity.CRITICAL),
    verdict(0, "warning", passed=False, severity=Severity.WARNING),
    verdict(2, "warning", passed=False, severity=Severity.WARNING),
    verdict(1, "warning", passed=True, severity=Severity.WARNING),
    verdict(0, "info", passed=False, severity=Severity.INFO),
]


def test_only_what_is_critical_blocks():
    assert unmet(VERDICTS) == {1: {"critical": "critical of 1", "other": "other of 1"}}


def waiver(partition: int, expectation: str) -> Waiver:
    return Waiver("p", "i", "s", partition, expectation, f"data {partition}", "ann", "known", datetime.now(UTC))


def rulings(*waivers: Waiver) -> Rulings:
    task = StageTask(None, None, None, None, (), None, waivers)
    return Rulings.of(unmet(VERDICTS), {1: "data 1"}, task)


def test_what_is_not_met_blocks_unless_all_of_it_is_waived():
    assert rulings().blocked == {1: "critical: got critical of 1; other: got other of 1"}
    assert rulings(waiver(1, "critical")).blocked == rulings().blocked
    assert rulings(waiver(2, "critical"), waiver(2, "other")).blocked == rulings().blocked
    let = rulings(waiver(1, "other"), waiver(1, "critical"))
    assert (let.blocked, let.of_partition(1).refused) == ({}, ("critical", "other"))
    assert let.of_partition(1).reason == "ann waived other: known; ann waived critical: known"
    assert let.in_words("own", 3) == "gate own lets 2 of 3 partitions through, and 1 may be read all the same"
    assert rulings().in_words("own", 3) == "gate own lets 2 of 3 partitions through"


def test_what_somebody_waived_of_other_data_blocks():
    other = replace(waiver(1, "other"), fingerprint="data of yesterday")
    assert rulings(waiver(1, "critical"), other).of_partition(1).blocks


def test_warnings_are_told_once_for_all_partitions():
    assert {name: [one.partition for one in some] for name, some in warnings(VERDICTS).items()} == {"warning": [0, 2]}
