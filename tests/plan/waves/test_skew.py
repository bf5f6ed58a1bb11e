from __future__ import annotations

import pytest
from tests.ledger.samples import record

from stagehold.model.records import DataFile
from stagehold.plan.waves.skew import skew_text, skewed


def sized(partition, rows, size):
    return record(partition, rows=rows, files=(DataFile("f", size, rows),) if rows else ())


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], {}),
        ([(100, 1000)], {}),
        ([(100, 1000), (100, 1000), (500, 5000)], {}),  # five times is not above five times
        ([(100, 1000), (100, 1000), (501, 1000)], {2: "501 rows, 5.0 times the median of 100"}),
        ([(100, 1000), (100, 1000), (100, 9000)], {2: "9000 bytes, 9.0 times the median of 1000"}),
        (
            [(100, 1000), (700, 9000), (100, 1000)],
            {1: "700 rows, 7.0 times the median of 100; 9000 bytes, 9.0 times the median of 1000"},
        ),
        ([(0, 0)] * 10 + [(7, 100), (7, 100)], {}),  # empty ones are usual; the others are alike
        (
            [(0, 0)] * 10 + [(7, 100), (7, 100), (70, 100)],
            {12: "70 rows, 10.0 times the median of 7"},
        ),
        ([(0, 0)] * 3, {}),
        ([(0, 0), (1, 400), (4, 500), (0, 0)], {}),  # half are empty
    ],
)
def test_partitions_far_above_the_median_are_named_with_figures(sizes, expected):
    records = [sized(partition, rows, size) for partition, (rows, size) in enumerate(sizes)]
    assert {partition: skew_text(found) for partition, found in skewed(records).items()} == expected
