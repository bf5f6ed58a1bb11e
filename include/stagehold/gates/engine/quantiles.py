"""The values at given places of each partition's order, without sorting all values.

Rows are counted in bins between the smallest value and the largest. Then only the rows of bins that contain a wanted
place are brought together. The answers are exact for any values; bins only save work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from stagehold.lake.store.columns import quoted

if TYPE_CHECKING:
    from stagehold.gates.engine.grouped_frame import GroupedFrame

BINS = 16 * 1024  # of all partitions together
KEY, VALUE = "__key", "__value"  # columns of our own
Place = tuple[int, int]  # a bin, and which of its values, from 0 on
FEW = 200_000  # rows that are brought together at once in less time than it takes to count them first


def at_ranks(
    frame: GroupedFrame, column: str, ranks: Callable[[int], Sequence[int]], few: int = FEW
) -> Mapping[int, Sequence[float]]:
    """The values of a column that each partition has at some ``ranks``, from 1 on, in order of values.

    Nulls and NaN are no values. A partition without values gets an empty list.

    :param ranks: gives the wanted ranks for a number of values.
    :param few: if there are more rows than this, they are counted in bins first.
    :raises Awaited: for the number of values.
    """
    value = F.col(quoted(column)).cast("double")
    number = F.when(~F.isnan(value), value)
    known = {
        partition: row for partition, (row,) in frame.agg(F.count(number), F.min(number), F.max(number)).each().items()
    }
    wanted = {partition: ranks(row[0]) if row[0] else [] for partition, row in known.items()}
    bin_of, places = F.lit(0), {partition: [(0, rank - 1) for rank in places] for partition, places in wanted.items()}
    if sum(row[0] for row in known.values()) > few:
        filled = [row for row in known.values() if row[0]]
        low, high = min(row[1] for row in filled), max(row[2] for row in filled)
        bin_of = _bin(number, low, high, max(BINS // len(known), 2))
        counted = frame.filter(number.isNotNull()).groupBy(bin_of.alias("bin")).agg(F.count(F.lit(1))).each()
        places = {
            partition: list(_places(dict(map(tuple, counted.get(partition, ()))), places))
            for partition, places in wanted.items()
        }
    return _values(frame, number, bin_of, places)


def _bin(number: Any, low: float, high: float, bins: int) -> Any:
    """The bin of a number: a larger number is in no lower bin. All are in one bin if there is no finite width to
    divide.
    """
    width = high - low
    if not width or not math.isfinite(width):
        return F.lit(0)
    share = (number - F.lit(low)) / F.lit(width)
    return F.least(F.floor(share * F.lit(float(bins))), F.lit(bins - 1)).cast("int")


def _places(counts: Mapping[int, int], ranks: Sequence[int]) -> Iterator[Place]:
    bins = sorted(counts)
    upto = list(accumulate(counts[number] for number in bins))
    for rank in ranks:
        index = next(index for index, most in enumerate(upto) if most >= rank)
        yield bins[index], rank - 1 - (upto[index - 1] if index else 0)


def _values(
    frame: GroupedFrame, number: Any, bin_of: Any, places: Mapping[int, Sequence[Place]]
) -> Mapping[int, Sequence[float]]:
    """The values at wanted places. Spark gets the places as text: as many expressions would take long to build."""
    wanted: dict[int, list[int]] = {}
    for partition, wanted_places in places.items():
        for bin_, at in wanted_places:
            wanted.setdefault(partition * BINS + bin_, []).append(at)
    if not wanted:
        return {partition: [] for partition in places}
    key = F.col(quoted(frame.partitions.column)).cast("bigint") * BINS + bin_of
    listed = frame.select(key.alias(KEY), number.alias(VALUE)).filter(f"{KEY} IN ({_text(wanted)})")
    ordered = listed.groupBy(KEY).agg(F.sort_array(F.collect_list(VALUE)).alias(VALUE))
    entries = _text(f"{group}L, array({_text(ats)})" for group, ats in wanted.items())
    found = ordered.select(KEY, F.expr(f"transform(element_at(map({entries}), {KEY}), place -> {VALUE}[place])")).each()
    values = {
        (group, at): value
        for rows in found.values()
        for group, listed_values in rows
        for at, value in zip(wanted[group], listed_values, strict=True)
    }
    return {
        partition: [values[partition * BINS + bin_, at] for bin_, at in wanted_places]
        for partition, wanted_places in places.items()
    }


def _text(parts: Iterable[object]) -> str:
    return ", ".join(map(str, parts))
