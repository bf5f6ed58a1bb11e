"""Figures of earlier intervals, which parameters of a suite can name: `{$PARAMETER: "previous.rows * 0.8"}`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stagehold.model.keys.compute_key import ComputeKey
from stagehold.model.records import PartitionRecord
from stagehold.model.standing import PartitionState

INTERVALS = 7  # the newest ones before the interval that is judged
PARAMETER = "$PARAMETER"
PREFIX = "previous."

Amounts = Sequence[float]  # of one partition, by interval, the newest first
MEASURES: Mapping[str, Callable[[PartitionRecord], float | None]] = {
    "rows": lambda record: record.rows,
    "bytes": lambda record: (
        None if record.state is PartitionState.RELEASED else record.bytes
    ),  # a released partition lists no files
    "seconds": lambda record: record.seconds,
}
SUMMARIES: Mapping[str, Callable[[Amounts], float]] = {
    "": lambda amounts: amounts[0],
    "mean_": lambda amounts: sum(amounts) / len(amounts),
    "min_": min,
    "max_": max,
}
NAMES = tuple(f"{PREFIX}{summary}{measure}" for summary in SUMMARIES for measure in MEASURES)

# Great Expectations compares these arguments with its result, and its query does not depend on them. A query that has
# them in it would have to be asked once for each partition.
COMPARED = ("min_value", "max_value", "value")
COMPARING = (
    "expect_column_max_to_be_between",
    "expect_column_mean_to_be_between",
    "expect_column_median_to_be_between",
    "expect_column_min_to_be_between",
    "expect_column_proportion_of_non_null_values_to_be_between",
    "expect_column_proportion_of_unique_values_to_be_between",
    "expect_column_stdev_to_be_between",
    "expect_column_sum_to_be_between",
    "expect_column_unique_value_count_to_be_between",
    "expect_table_row_count_to_be_between",
    "expect_table_row_count_to_equal",
)

_NAMED = re.compile(rf"(?<![\w.$]){re.escape(PREFIX)}([\w.]*)")
_IDENTIFIER = "previous$"  # Great Expectations' arithmetic knows `$` in names, and no dot; no parameter has such a name


@dataclass(frozen=True)
class EarlierFigures:
    """The figures of one stage: what is ``known`` of each partition, by the names of `NAMES`; ``lacking`` says why
    other figures are missing.
    """

    known: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    lacking: str = "no earlier interval"

    def of(self, partition: int, names: Sequence[str]) -> Mapping[str, float] | None:
        """The figures of a partition by these names; None if any of them is unknown."""
        found = self.known.get(partition, {})
        return {name: found[name] for name in names} if all(name in found for name in names) else None


def earlier_figures(intervals: Sequence[Sequence[PartitionRecord]], partitions: int) -> EarlierFigures:
    """The figures that a stage with ``partitions`` partitions is compared with.

    An interval counts if it has as many partitions, since otherwise a partition's number means other rows. Of that
    interval those partitions count whose newest record has passed its gate.

    :param intervals: the newest records of all partitions, for each earlier interval, the newest interval first.
    """
    alike = [records for records in intervals if _is_cut_into(partitions, records)]
    if not alike:
        return EarlierFigures(lacking="no earlier interval with as many partitions") if intervals else EarlierFigures()
    passed = [{record.partition: record for record in records if record.state.counts_as_done} for records in alike]
    known = {
        number: _figures([of_interval[number] for of_interval in passed if number in of_interval])
        for number in range(partitions)
    }
    return EarlierFigures(known, "no earlier interval that has these figures")


def figures_named(arguments: Mapping[str, Any]) -> Mapping[str, tuple[str, ...]]:
    """The figures that each argument of an expectation is computed from, known or not; arguments that name no figures
    are left out.
    """
    texts = {name: _parameter(value) for name, value in arguments.items()}
    named = {name: tuple(match[0] for match in _NAMED.finditer(text)) for name, text in texts.items()}
    return {name: found for name, found in named.items() if found}


def as_identifiers(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with figures under names that Great Expectations can read, as `identified` makes them."""
    found = {
        name: {PARAMETER: _NAMED.sub(lambda match: _IDENTIFIER + match[1], _parameter(arguments[name]))}
        for name in figures_named(arguments)
    }
    return {**arguments, **found}


def identified(figures: Mapping[str, float]) -> dict[str, float]:
    return {_IDENTIFIER + name.removeprefix(PREFIX): value for name, value in figures.items()}


def in_words(figures: Mapping[str, float]) -> str:
    """The figures as a text that explains a bound."""
    return " and ".join(f"{name} is {shortened(value)}" for name, value in figures.items())


def _is_cut_into(partitions: int, records: Sequence[PartitionRecord]) -> bool:
    """Whether the interval has all of so many partitions, and none that an earlier division of the same interval left
    behind.
    """
    keys = (ComputeKey.parse(record.compute_key) for record in records)
    alike = len({key.settings if key else None for key in keys}) == 1
    return alike and {record.partition for record in records} == set(range(partitions))


def _figures(records: Sequence[PartitionRecord]) -> Mapping[str, float]:
    """The figures of one partition, from its records in earlier intervals, the newest first."""
    found = {}
    for measure, amount_of in MEASURES.items():
        amounts = [amount for record in records if (amount := amount_of(record)) is not None]
        for summary, summed_up in SUMMARIES.items() if amounts else ():
            found[f"{PREFIX}{summary}{measure}"] = summed_up(amounts)
    return found


def _parameter(value: Any) -> str:
    text = value.get(PARAMETER) if isinstance(value, Mapping) else None
    return text if isinstance(text, str) else ""


def shortened(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.3f}".rstrip("0").rstrip(".")
