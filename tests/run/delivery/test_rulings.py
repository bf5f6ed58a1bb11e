"""What is told of a gate's verdicts."""

from __future__ import annotations

from stagehold.gates.verdicts import GateVerdict
from stagehold.model.records import Severity
from stagehold.run.delivery.ruling import unmet, warnings


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


def test_warnings_are_told_once_for_all_partitions():
    assert {name: [one.partition for one in some] for name, some in warnings(VERDICTS).items()} == {"warning": [0, 2]}
