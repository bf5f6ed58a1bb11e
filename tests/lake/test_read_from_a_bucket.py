"""Files of several attempts are read from a bucket, where Spark lists the folder of each attempt that wrote many."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.lake.stagehand import Stagehand

from stagehold.lake.read import MANY, read_partitions

pytestmark = pytest.mark.spark


@pytest.fixture
def table(hand: Stagehand, lake_in_s3: str) -> Stagehand:
    return hand.at(location=replace(hand.location, uri=f"{lake_in_s3}/joined")).prepare()


@pytest.mark.parametrize("later", [MANY, 1], ids=["many files", "few files"])
def test_what_a_later_attempt_added_is_read_with_what_the_one_before_left(table, later):
    first = table.publish({number: [("a", number)] for number in range(MANY)})
    added = table.at(epoch=2).prepare().publish({number: [("b", number)] for number in range(MANY, MANY + later)})
    recorded = [*first, *added]
    assert read_partitions(table.spark, recorded).columns == ["name", "amount", "_partition"]
    assert table.read(recorded) == sorted(
        [(number, "a", number) for number in range(MANY)]
        + [(number, "b", number) for number in range(MANY, MANY + later)]
    )
