"""Values at places of the order, through bins and without, are those of the sorted values; so are repeated rows."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from stagehold.gates.engine.asked_partitions import AskedPartitions, Awaited
from stagehold.gates.engine.grouped_frame import GroupedFrame
from stagehold.gates.engine.metrics import repeated
from stagehold.gates.engine.quantiles import at_ranks

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

NAN, INFINITY = float("nan"), float("inf")
SKEWED = [*range(500), *[7.5] * 300, 1e300, -0.25]
VALUES = {
    0: SKEWED,
    1: [None, NAN, 3.0, None],
    2: [None, NAN],
    4: [round(random.Random(1).gauss(0, 1), 3) for _ in range(400)],
}
KEYS = {  # of two columns
    "dense": {0: [(one // 4, one % 4) for one in range(200)], 1: [(one + 900, 0) for one in range(200)]},
    "one is there twice": {0: [*((one // 4, one % 4) for one in range(200)), (7, 2)], 1: [(3, 1)] * 3},
    "scattered": {0: [(one * 2**40, -one) for one in range(50)] * 2, 1: [(-(2**63), 0), (2**63 - 1, 0)]},
    "nulls": {0: [(None, None)] * 2 + [(None, 1), (1, None), (1, 1)] + [(2, one) for one in range(99)], 1: []},
    "nulls among others": {0: [(None, one) for one in range(90)] + [(0, one) for one in range(90)], 1: [(0, None)]},
}


@pytest.fixture
def grouped(spark) -> Callable[..., GroupedFrame]:
    def made(values: Mapping[int, Sequence[Any]], kinds: str) -> GroupedFrame:
        rows = [(number, *one) for number, some in values.items() for one in some]
        return GroupedFrame(AskedPartitions("p", (*values, 9)), spark.createDataFrame(rows, f"p int, {kinds}"))

    return made


def asked(frame: GroupedFrame, ask: Callable[[], Any]) -> Any:
    while True:
        try:
            return ask()
        except Awaited:
            frame.partitions.ask_wanted()


def places(count: int) -> list[int]:
    return [1, math.ceil(0.9 * count), math.ceil(0.5 * count), count]


@pytest.mark.parametrize("few", [0, 10**6], ids=["counted in bins first", "at once"])
@pytest.mark.parametrize("more", [[], [INFINITY]], ids=["finite", "infinite"])
def test_places_are_those_of_the_sorted_values(grouped, few, more):
    values = {number: [*some, *more] if some == SKEWED else some for number, some in VALUES.items()}
    frame = grouped({number: [(one,) for one in some] for number, some in values.items()}, "value double")
    found = asked(frame, lambda: at_ranks(frame, "value", places, few))
    for number, some in values.items():
        known = sorted(one for one in some if one is not None and not math.isnan(one))
        assert found[number] == [known[place - 1] for place in places(len(known)) if known]
    assert found[9] == []


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("for_one_task", [10, 10**6], ids=["many tasks", "one task"])
@pytest.mark.parametrize("kept", [None, "a >= 0 OR a IS NULL"], ids=["all rows", "some rows"])
def test_repeated_rows_are_counted_whatever_their_values_are(grouped, keys, kept, for_one_task):
    values = KEYS[keys]
    frame = grouped(values, "a bigint, b int")
    frame = frame.filter(kept) if kept else frame
    found = asked(frame, lambda: repeated(frame, ["a", "b"], for_one_task))
    for number, some in values.items():
        times = Counter(one for one in some if kept is None or one[0] is None or one[0] >= 0)
        assert found[number] == sum(count for count in times.values() if count > 1)
    assert found[9] == 0
