"""What real Great Expectations says of all partitions together, and what DuckDB says of the same rows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from tests.lake.stagehand import Stagehand

from stagehold.gates.judge import judge_together
from stagehold.gates.suite import Expectation, Scope, Suite
from stagehold.lake.measure import StagedContent
from stagehold.lake.store.location import TableLocation
from stagehold.model.choices import Severity
from stagehold.model.records import WHOLE

pytestmark = pytest.mark.spark

UNIQUE, SUM, COUNT = (
    "expect_column_values_to_be_unique",
    "expect_column_sum_to_be_between",
    "expect_table_row_count_to_equal",
)
# Few values of each type, so that some are in more than one partition.
KINDS = {
    "int": lambda chance: chance.randrange(60),
    "bigint": lambda chance: 2**40 + chance.randrange(60),
    "double": lambda chance: chance.choice([0.5, -1.25, *map(float, range(60))]),
    "decimal(10,2)": lambda chance: Decimal(chance.randrange(6000)) / 100,
    "string": lambda chance: chance.choice(["", "a ", "ä", *map(str, range(60))]),
    "date": lambda chance: date.fromordinal(730_000 + chance.randrange(60)),
}
SUMMED = ("int", "bigint", "double", "decimal(10,2)")


def staged(spark: Any, folder: Any, kind: str, rows: dict[int, Sequence[Any]]) -> StagedContent:
    hand = Stagehand(spark, TableLocation("s", str(folder), "cell", None), f"value {kind}")
    return StagedContent(hand.stage(rows), hand.schema)


def random_rows(kind: str, seed: int) -> dict[int, list[tuple[Any]]]:
    """Partitions of any size, with nulls, and sometimes none at all."""
    chance = random.Random(f"{kind} {seed}")
    made = KINDS[kind]
    sizes = [chance.choice([0, 0, 1, 5, 12]) if seed else 0 for _ in range(4)]
    return {
        number: [(None if chance.random() < 0.1 else made(chance),) for _ in range(size)]
        for number, size in enumerate(sizes)
    }


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_all_partitions_are_judged_as_duckdb_sees_their_rows(spark, tmp_path, kind, seed):
    rows = random_rows(kind, seed)
    every = [value for some in rows.values() for (value,) in some]
    database = duckdb.connect()
    database.execute(f"CREATE TABLE own (value {'varchar' if kind == 'string' else kind})")
    if every:
        database.executemany("INSERT INTO own VALUES (?)", [[value] for value in every])
    of_value = "SELECT count(*) AS n FROM own WHERE value IS NOT NULL GROUP BY value"
    doubled = database.execute(f"SELECT coalesce(sum(n), 0) FROM ({of_value}) WHERE n > 1").fetchone()[0]
    asked = [Expectation(UNIQUE, {"column": "value"}), Expectation(COUNT, {"value": len(every)})]
    if kind in SUMMED and any(value is not None for value in every):
        total = float(database.execute("SELECT sum(value) FROM own").fetchone()[0])
        bounds = {"min_value": total - 0.001, "max_value": total + 0.001}
        asked += [
            Expectation(SUM, {"column": "value", **bounds}),
            Expectation(SUM, {"column": "value", "min_value": total + 1}),
        ]
    suite = Suite("own", tuple(asked))
    said = judge_together(staged(spark, tmp_path, kind, rows).frame(spark), suite)
    assert {one.partition for one in said} == {WHOLE}
    assert [one.passed for one in said] == [doubled == 0, True, True, False][: len(asked)]
    if doubled:
        assert said[0].observed.startswith(f"{doubled} of {len(every)} unexpected")


def test_rows_that_are_unique_in_each_partition_may_not_be_in_all_of_them(spark, tmp_path):
    content = staged(spark, tmp_path, "int", {0: [(1,), (2,)], 1: [(2,), (3,)], 2: []})
    suite = Suite("own", (Expectation(UNIQUE, {"column": "value"}, Severity.WARNING, scope=Scope.STAGE),))
    assert suite.of_stage is not None
    (said,) = judge_together(content.frame(spark), suite.of_stage)
    assert (said.passed, said.severity, said.observed) == (False, Severity.WARNING, "2 of 4 unexpected, such as 2")
