"""Arguments of `spark.sql` come out as what pyspark makes of them elsewhere."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from stagehold.code.sql_text import NotConstant, literal, with_arguments

TEXTS = [
    ("SELECT :a, :b", {"a": 1, "b": "x"}, "SELECT (1), 'x'"),
    ("SELECT * FROM t WHERE a < ? AND b = ?", [1, 2], "SELECT * FROM t WHERE a < (1) AND b = (2)"),
    ("SELECT ':a', \":a\" -- :a", {"a": 1}, "SELECT ':a', \":a\" -- :a"),
    ("SELECT v::int, v:path FROM t WHERE v=:int", {"int": 1, "path": 2}, "SELECT v::int, v:path FROM t WHERE v=(1)"),
    ("SELECT f(:a,:a)", {"a": 1}, "SELECT f((1),(1))"),
    ("SELECT :other", {"a": 1}, "SELECT :other"),
    ("FROM IDENTIFIER(:t)", {"t": "db.t"}, "FROM IDENTIFIER('db.t')"),
]


@pytest.mark.parametrize(("text", "arguments", "sent"), TEXTS)
def test_each_marker_becomes_its_argument(text, arguments, sent):
    assert with_arguments(text, arguments) == sent


def test_what_is_no_plain_value_is_left_to_pyspark():
    with pytest.raises(NotConstant):
        with_arguments("SELECT :a", {"a": object()})


VALUES = [
    *(None, True, 0, -1, 2**31 - 1, 2**40, -(2**62), 1.5, -0.25, 1e300, float("inf"), float("-inf")),
    *("", "it's", 'a "b"', "back\\slash\nline", "ä", b"\x00\xff", bytearray(b"x")),
    *(Decimal("1.50"), Decimal("-0.001"), Decimal("12345678901234567890.5"), Decimal("1E+3")),
    *(date(2020, 2, 29), datetime(2020, 2, 29, 12, 30, 1, 500), datetime(2020, 2, 29, 12, tzinfo=UTC)),
    *(timedelta(days=1, seconds=2, microseconds=3), timedelta(days=-1), [1, 2], ["a", None], {"a": 1}),
]


@pytest.mark.spark
def test_a_literal_is_the_value_that_pyspark_has(spark):
    from pyspark.sql import functions as F

    def as_pyspark_has_it(value):
        if isinstance(value, dict):
            return F.create_map(*(F.lit(part) for pair in value.items() for part in pair))
        return F.lit(value)

    written = ", ".join(f"{literal(value)} AS c{place}" for place, value in enumerate(VALUES))
    found = spark.sql(f"SELECT {written}")
    right = spark.range(1).select(*(as_pyspark_has_it(value).alias(f"c{n}") for n, value in enumerate(VALUES)))
    assert [field.dataType for field in found.schema] == [field.dataType for field in right.schema]
    assert found.collect() == right.collect()
