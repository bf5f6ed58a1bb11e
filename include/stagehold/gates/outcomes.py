"""What a verdict comes to: whether it was met, how much that matters, and whether somebody let it pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from stagehold.model.records import GateResult, RefusedData, Severity, Waiver
from stagehold.plan.resume.waiving import waivers_of

Waived = Mapping[tuple[int, str], Waiver]  # by partition and expectation


class Outcome(StrEnum):
    """Of one expectation for one partition. One that is critical and not met blocks, unless it is waived."""

    PASSED = "passed"
    FAILED = "failed"
    WAIVED = "waived"
    WARNING = "warning"
    INFO = "info"


NOT_MET = {Severity.CRITICAL: Outcome.FAILED, Severity.WARNING: Outcome.WARNING, Severity.INFO: Outcome.INFO}


def waived_in(data: Iterable[RefusedData], words: Sequence[Waiver]) -> Waived:
    """Which of these words hold for this data.

    :param words: of one stage, that hold now.
    """
    return {(one.partition, word.expectation): word for one in data for word in waivers_of(one, words)}


def outcome_of(result: GateResult, waived: Waived) -> Outcome:
    if result.passed:
        return Outcome.PASSED
    if result.severity is Severity.CRITICAL and (result.partition, result.expectation) in waived:
        return Outcome.WAIVED
    return NOT_MET[result.severity]
