"""Waves with few rows, and what their gate says of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.lake.stagehand import Stagehand

from stagehold.gates.judge import Measured, measure_and_judge
from stagehold.gates.suite import Expectation, Suite
from stagehold.lake.measure import Content, StagedContent
from stagehold.model.choices import Severity

BETWEEN, COUNT = "expect_column_values_to_be_between", "expect_table_row_count_to_be_between"
ROWS = {4: [("a", 7), ("b", -2), ("c", -1)], 9: [("a", 1), ("a", None)], 11: []}
SECONDS = 6.0


def suite(*expectations: Expectation) -> Suite:
    return Suite("toy", expectations, "toy.yaml")


def between(column: str, severity: Severity = Severity.CRITICAL, line: int = 0, **limits: object) -> Expectation:
    return Expectation(BETWEEN, {"column": column, **limits}, severity, line=line)


def staged(hand: Stagehand, rows: dict[int, Sequence[Any]]) -> StagedContent:
    return StagedContent(hand.stage(rows), hand.schema)


def of_content(hand: Stagehand, content: Content, partitions: Sequence[int], gate: Suite) -> Measured:
    return measure_and_judge(
        content.frame(hand.spark), content, partitions, gate, dict.fromkeys(partitions, SECONDS / 3)
    )
