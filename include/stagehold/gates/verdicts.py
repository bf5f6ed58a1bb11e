"""Verdicts: how the result of an expectation for a partition is shown and recorded, and what follows from it: whether
it was met, how severe it is, and whether somebody waived it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from stagehold.gates.earlier_figures import in_words, shortened
from stagehold.gates.suite import Expectation, Samples, Suite
from stagehold.model.choices import RefusedData, Severity, Waiver
from stagehold.model.records import GateResult
from stagehold.plan.resume.waiving import waivers_of

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation as TheirExpectation

    from stagehold.gates.engine.grouped_frame import GroupedFrame
    from stagehold.gates.engine.judging import Judged, Variant

SAID = 5  # unexpected values that a text names
ROWS = (
    "partial_unexpected_index_list"  # Great Expectations' name for unexpected rows with the columns that identify them
)
COUNTED = (  # fields of a result that have no value of a row
    "element_count",
    "missing_count",
    "missing_percent",
    "unexpected_count",
    "unexpected_percent",
    "unexpected_percent_nonmissing",
    "unexpected_percent_total",
)
SAMPLES = ("partial_unexpected", "unexpected_list", "unexpected_index")  # how names of fields with values begin


@dataclass(frozen=True)
class GateVerdict:
    """The verdict of one expectation on one partition; ``observed`` says in a few words what the expectation saw.
    ``configuration`` is the expectation, and ``result`` its whole result, in Great Expectations' JSON.
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
        shown = shown_of(own, result.result, suite.samples)
        seen = observed(shown, suite.samples, hidden=suite.samples.hides(own))
        yield GateVerdict(result.partition, text, result.success, seen, own.severity, configuration, _as_json(shown))


def comparisons_of(
    own: Expectation, variants: Sequence[Variant], said: Mapping[int, Judged], suite: Suite, frame: GroupedFrame
) -> Iterator[GateVerdict]:
    """The verdicts of an expectation that compares with earlier intervals. A partition without figures to compare with
    passes, and its verdict says so.
    """
    asked = {number: expectation for expectation, numbers in variants for number in numbers}
    for number in frame.partitions.numbers:
        figures = suite.earlier.of(number, own.earlier_figures)
        if figures is None:
            yield GateVerdict(number, str(own), True, suite.earlier.lacking, own.severity)
            continue
        one = said[number]
        shown, hidden = shown_of(own, one.result, suite.samples), suite.samples.hides(own)
        seen = _own_figures(own, frame, number) if own.is_of_figures else observed(shown, hidden=hidden)
        text, result = f"{seen}, where {in_words(figures)}", _as_json(shown)
        yield GateVerdict(number, str(own), one.success, text, own.severity, _configuration(asked[number]), result)


def shown_of(own: Expectation, result: Mapping[str, Any], samples: Samples) -> Mapping[str, Any]:
    """The part of a result that may be shown: of masked columns only counts of rows, and of other columns no more rows
    than the samples allow.
    """
    if samples.hides(own):
        return {name: value for name, value in result.items() if name in COUNTED}
    most = samples.rows
    return {
        name: value[:most] if name.startswith(SAMPLES) and isinstance(value, list) else value
        for name, value in result.items()
        if most or not name.startswith(SAMPLES)
    }


def observed(result: Mapping[str, Any], samples: Samples | None = None, hidden: Sequence[str] = ()) -> str:
    """What an expectation saw, in a few words, from the part of its result that may be shown.

    :param samples: whose keys identify the rows that are named.
    :param hidden: columns of which nothing may be shown.
    """
    if result.get("unexpected_count") is not None and result.get("observed_value") is None:
        shown = list(dict.fromkeys(_examples(result, samples.keys if samples else ())))[:SAID]
        such = f", such as {', '.join(shown)}" if shown else ""
        of_all = f" of {result['element_count']}" if "element_count" in result else ""
        return f"{result['unexpected_count']}{of_all} unexpected{such}"
    if hidden:
        return f"not shown: {', '.join(hidden)} {'is' if len(hidden) == 1 else 'are'} masked"
    return str(result["observed_value"]) if "observed_value" in result else "no rows" if result else ""


def _examples(result: Mapping[str, Any], keys: Sequence[str]) -> Iterator[str]:
    """Unexpected values, each with the keys of its row if they are known."""
    rows = result.get(ROWS)
    if not rows:
        yield from map(str, result.get("partial_unexpected_list") or ())
        return
    for row in rows:
        values = ", ".join(str(value) for name, value in row.items() if name not in keys)
        place = ", ".join(f"{name}={row[name]}" for name in keys)
        yield f"{values} ({place})" if values else place


def _own_figures(own: Expectation, frame: GroupedFrame, partition: int) -> str:
    (row,) = frame.partitions.rows(frame, partition)
    return " and ".join(shortened(row[name]) for name in own.columns)


def _configuration(asked: TheirExpectation) -> str:
    return _as_json(asked.configuration.to_json_dict())


def _as_json(theirs: Mapping[str, Any]) -> str:
    from great_expectations.util import convert_to_json_serializable

    return json.dumps(convert_to_json_serializable(dict(theirs)), sort_keys=True)


Waived = Mapping[tuple[int, str], Waiver]  # by partition and expectation


class Outcome(StrEnum):
    """What follows from the verdict of an expectation on a partition. A critical expectation that is not met blocks the
    partition, unless it is waived.
    """

    PASSED = "passed"
    FAILED = "failed"
    WAIVED = "waived"
    WARNING = "warning"
    INFO = "info"


NOT_MET = {Severity.CRITICAL: Outcome.FAILED, Severity.WARNING: Outcome.WARNING, Severity.INFO: Outcome.INFO}


def waived_in(data: Iterable[RefusedData], words: Sequence[Waiver]) -> Waived:
    """The waivers that hold for this data.

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
