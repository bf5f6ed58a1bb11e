"""What expectations say of partitions, as it is told and kept, and what that comes to: whether it was met, how much it
matters, and whether somebody let it pass.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from stagehold.gates.earlier_figures import in_words, shortened
from stagehold.gates.suite import Expectation, Suite
from stagehold.model.records import GateResult, RefusedData, Severity, Waiver
from stagehold.plan.resume.waiving import waivers_of

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation as TheirExpectation

    from stagehold.gates.engine.grouped_frame import GroupedFrame
    from stagehold.gates.engine.judging import Judged, Variant

SAID = 5  # unexpected values that a text has
SAMPLES = ("partial_unexpected", "unexpected_list", "unexpected_index")  # how fields with values begin


@dataclass(frozen=True)
class GateVerdict:
    """What one expectation says about one partition; ``observed`` is what it saw. ``configuration`` is the expectation
    and ``result`` all that it saw, in Great Expectations' JSON.
    """

    partition: int
    expectation: str
    passed: bool
    observed: str
    severity: Severity
    configuration: str = ""
    result: str = ""


def verdicts_of(
    own: Expectation, asked: TheirExpectation, judged: Sequence[Judged], suite: Suite
) -> Iterator[GateVerdict]:
    """The verdicts of an expectation that is the same for all partitions."""
    text, configuration = str(own), _configuration(asked)
    for result in judged:
        seen = observed(result.result, samples=suite.samples)
        yield GateVerdict(
            result.partition, text, result.success, seen, own.severity, configuration, _result(result, suite)
        )


def comparisons_of(
    own: Expectation, variants: Sequence[Variant], said: Mapping[int, Judged], suite: Suite, frame: GroupedFrame
) -> Iterator[GateVerdict]:
    """The verdicts of an expectation that compares with earlier intervals. A partition passes that there is nothing to
    compare with, and its verdict says so.
    """
    asked = {number: expectation for expectation, numbers in variants for number in numbers}
    for number in frame.partitions.numbers:
        figures = suite.earlier.of(number, own.earlier_figures)
        if figures is None:
            yield GateVerdict(number, str(own), True, suite.earlier.lacking, own.severity)
            continue
        one = said[number]
        seen = _own_figures(own, frame, number) if own.is_of_figures else observed(one.result)
        text, result = f"{seen}, where {in_words(figures)}", _result(one, suite)
        yield GateVerdict(number, str(own), one.success, text, own.severity, _configuration(asked[number]), result)


def observed(result: Mapping[str, Any], *, samples: bool = True) -> str:
    """What an expectation saw, in a few words; without ``samples`` no value that was not expected is among them."""
    if result.get("unexpected_count") is not None and result.get("observed_value") is None:
        unexpected = result.get("partial_unexpected_list") if samples else None
        shown = list(dict.fromkeys(map(str, unexpected or ())))[:SAID]
        such = f", such as {', '.join(shown)}" if shown else ""
        of_all = f" of {result['element_count']}" if "element_count" in result else ""
        return f"{result['unexpected_count']}{of_all} unexpected{such}"
    return str(result["observed_value"]) if "observed_value" in result else "no rows" if result else ""


def _own_figures(own: Expectation, frame: GroupedFrame, partition: int) -> str:
    (row,) = frame.partitions.rows(frame, partition)
    return " and ".join(shortened(row[name]) for name in own.columns)


def _configuration(asked: TheirExpectation) -> str:
    return _as_json(asked.configuration.to_json_dict())


def _result(judged: Judged, suite: Suite) -> str:
    kept = {name: value for name, value in judged.result.items() if suite.samples or not name.startswith(SAMPLES)}
    return _as_json(kept)


def _as_json(theirs: Mapping[str, Any]) -> str:
    from great_expectations.util import convert_to_json_serializable

    return json.dumps(convert_to_json_serializable(dict(theirs)), sort_keys=True)


Waived = Mapping[tuple[int, str], Waiver]  # by partition and expectation


class Outcome(StrEnum):
    """What an expectation's verdict on a partition comes to. A critical one that is not met blocks, unless it is
    waived.
    """

    PASSED = "passed"
    FAILED = "failed"
    WAIVED = "waived"
    WARNING = "warning"
    INFO = "info"


NOT_MET = {Severity.CRITICAL: Outcome.FAILED, Severity.WARNING: Outcome.WARNING, Severity.INFO: Outcome.INFO}


def waived_in(data: Iterable[RefusedData], words: Sequence[Waiver]) -> Waived:
    """Which of these waivers hold for this data.

    :param words: waivers of one stage that are in force now.
    """
    return {
        (refused.partition, waiver.expectation): waiver for refused in data for waiver in waivers_of(refused, words)
    }


def outcome_of(result: GateResult, waived: Waived) -> Outcome:
    if result.passed:
        return Outcome.PASSED
    if result.severity is Severity.CRITICAL and (result.partition, result.expectation) in waived:
        return Outcome.WAIVED
    return NOT_MET[result.severity]
