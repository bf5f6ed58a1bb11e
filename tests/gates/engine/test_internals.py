"""What the engine uses of private parts of libraries is there and behaves so."""

from __future__ import annotations

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType

from stagehold.gates.engine.internals import alias_of, apart, is_aggregate, only_where, said, within

pytestmark = pytest.mark.slow  # imports Great Expectations, which takes seconds


@pytest.fixture(autouse=True)
def session(unconnected):
    return unconnected


@pytest.mark.filterwarnings("ignore:WARN WindowExpression")
@pytest.mark.parametrize(
    "window",
    [
        lambda: F.count(F.lit(1)).over(Window.partitionBy("a")) <= 1,
        lambda: F.when(F.col("b") > F.lag("b").over(Window.orderBy(F.lit(1))), 1).otherwise(0),
        lambda: F.sum("b").over(Window.partitionBy("a").orderBy("b").rowsBetween(-1, 0)).alias("sums"),
    ],
)
def test_windows_are_kept_within_a_partition_wherever_they_stand(session, window):
    kept = within(window(), F.col("part"))
    assert said(kept, session) != said(window(), session)
    assert str(kept).count("part") == 1


def test_an_expression_without_a_window_stays_as_it_is():
    column = F.col("a").isNotNull() & ~F.col("a").rlike("x")
    assert within(column, F.col("part")) is column


def test_equal_expressions_have_equal_texts(session):
    assert said(F.col("a") > 1, session) == said(F.col("a") > 1, session)
    assert said(F.col("a") > 1, session) != said(F.col("a") > "1", session)


@pytest.mark.parametrize(
    ("column", "wanted"),
    [
        (lambda: F.countDistinct("a"), True),
        (lambda: (F.sum("a") / F.count(F.lit(1))).alias("mean"), True),
        (lambda: F.upper("a"), False),
        (lambda: F.count("a").over(Window.partitionBy("b")), False),
        (lambda: "a", False),
    ],
)
def test_aggregates_are_told_from_other_expressions(column, wanted):
    assert is_aggregate(column()) is wanted


def test_the_name_of_a_column_is_found():
    assert (alias_of(F.sum("a").alias("sums")), alias_of(F.sum("a"))) == ("sums", None)


def positive():
    return F.col("a") > 0


@pytest.mark.filterwarnings("ignore:Cannot infer the eval type")
@pytest.mark.parametrize(
    ("of_some", "of_all"),
    [
        (lambda: F.count(F.lit(1)), lambda: F.count(F.when(positive(), F.lit(1)))),
        (lambda: F.count("*"), lambda: F.count(F.when(positive(), F.lit(1)))),
        (
            lambda: F.sum("b") / F.max("c"),
            lambda: F.sum(F.when(positive(), F.col("b"))) / F.max(F.when(positive(), F.col("c"))),
        ),
        (lambda: F.countDistinct("b"), lambda: F.countDistinct(F.when(positive(), F.col("b")))),
        (lambda: F.first("b"), None),
        (lambda: F.max_by("b", "c"), None),
        (lambda: F.count_if(F.udf(bool, BooleanType())("b")), None),
    ],
)
def test_aggregates_of_some_rows_are_aggregates_of_all_where_nulls_do_not_count(session, of_some, of_all):
    found = only_where(positive(), of_some())
    assert (found is None) is (of_all is None)
    if of_all:
        assert str(found) == str(of_all())


def test_distinct_aggregates_and_those_that_spark_cannot_compile_have_queries_of_their_own():
    together = [(F.sum("a"),), (F.max("b"), F.count(F.lit(1)))]
    assert [apart(one) for one in together] == [None, None]
    assert apart((F.collect_list("a"),)) == apart((F.percentile_approx("b", 0.5),))
    assert len({apart((F.countDistinct(one),)) for one in ("a", "b")}) == 2
