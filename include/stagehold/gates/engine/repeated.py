"""How many rows of each partition have values that others of it have, too.

Nearly always none has. Of whole numbers that lie close together, as keys do, that is seen without bringing equal rows
together: 64 neighbours are a group, of which each row sets its own bit. There are as many bits as rows if no value is
there twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from stagehold.lake.store.columns import quoted

if TYPE_CHECKING:
    from stagehold.gates.engine.grouped_frame import GroupedFrame

BITS_OF_ONE, SHIFT = 64, 6  # of a bigint
TIMES, GROUP, ROWS, BITS = "__times", "__group", "__rows", "__bits"  # columns of our own
WHOLE = frozenset(["tinyint", "smallint", "int", "bigint"])
FOR_ONE_TASK = 1_000_000  # rows to compare
MOST = 2**62  # combinations of values
WORTH_IT = 4  # rows for each group; with fewer it is as much work as to compare the rows


@dataclass(frozen=True)
class _Whole:
    """The whole numbers of a column from ``low`` on; one of its ``values`` is null."""

    name: str
    low: int
    values: int

    @property
    def place(self) -> Any:
        offset = F.col(quoted(self.name)).cast("bigint") - F.lit(self.low).cast("bigint")
        return F.coalesce(offset, F.lit(self.values - 1))


def repeated(frame: GroupedFrame, columns: Sequence[str]) -> Mapping[int, int]:
    """
    :raises Awaited: for the range of values, or for the number itself.
    """
    kinds = dict(frame.dtypes)
    whole = [F.col(quoted(one)).cast("bigint") for one in columns if kinds.get(one) in WHOLE]
    limits = [limit(one) for one in whole for limit in (F.min, F.max)]
    known = [row for (row,) in frame.agg(F.count(F.lit(1)), *limits).each().values()]
    if len(whole) == len(columns) and _all_differ(frame, columns, known):
        return dict.fromkeys(frame.partitions.numbers, 0)
    tasks = sum(row[0] for row in known) // FOR_ONE_TASK + 1
    times = frame.spread(tasks, *columns).groupBy(*columns).agg(F.count(F.lit(1)).alias(TIMES))
    found = times.filter(F.col(TIMES) > 1).agg(F.sum(TIMES)).each()
    return {one: row[0] or 0 for one, (row,) in found.items()}


def _all_differ(frame: GroupedFrame, columns: Sequence[str], known: Sequence[Sequence[Any]]) -> bool:
    """Whether that is certain; False as well if it would be too much work to see it.

    :param known: how many rows each partition has, and the smallest and the largest number of each column.
    """
    ranges = {one: [row[2 * at + 1 : 2 * at + 3] for row in known] for at, one in enumerate(columns)}
    whole = sorted((_whole(name, some) for name, some in ranges.items()), key=lambda one: -one.values)
    inner = prod(one.values for one in whole[1:])
    groups = sum(_span(limits) * inner // BITS_OF_ONE + 1 for limits in ranges[whole[0].name])
    if inner * whole[0].values > MOST or groups * WORTH_IT > sum(row[0] for row in known):
        return False
    combined = F.lit(0).cast("bigint")
    for one in whole:
        combined = combined * F.lit(one.values).cast("bigint") + one.place
    rows = frame.withColumn(GROUP, combined)
    bit = F.expr(f"shiftleft(1L, cast({GROUP} & {BITS_OF_ONE - 1} AS int))")
    grouped = rows.groupBy(F.shiftright(GROUP, SHIFT)).agg(F.count(F.lit(1)).alias(ROWS), F.bit_or(bit).alias(BITS))
    surplus = grouped.agg(F.sum(F.col(ROWS) - F.bit_count(BITS)))
    return not any(row[0] for (row,) in surplus.each().values())


def _whole(name: str, ranges: Sequence[Sequence[Any]]) -> _Whole:
    filled = [one for one in ranges if one[0] is not None]
    low, high = min((one[0] for one in filled), default=0), max((one[1] for one in filled), default=-1)
    return _Whole(name, low, high - low + 2)


def _span(limits: Sequence[Any]) -> int:
    return 1 if limits[0] is None else int(limits[1] - limits[0] + 2)
