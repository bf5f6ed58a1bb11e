from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagehold.code.sql_slice import SliceUnfit, check_slice, read_slice, with_interval

TYPES = {
    **{
        "day": "date",
        "at": "timestamp",
        "moment": "timestamp",
        "here": "timestamp_ntz",
        "country": "string",
        "n": "long",
    },
    **{"price": "decimal(10,2)", "paid": "boolean", "of a kind": "int", "share": "double"},
}
MIDNIGHT = datetime(2026, 11, 26)


def edge(name: str) -> datetime:
    return MIDNIGHT + timedelta(days=name == "end")


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("day = '2026-11-26'", "`day` = DATE '2026-11-26'"),
        ("DAY = :interval_start", "`day` = DATE '2026-11-26'"),
        ("at < :interval_end", "`at` < TIMESTAMP '2026-11-27 00:00:00+00:00'"),
        ("at < TIMESTAMP '2026-11-26 03:00:00+02:00'", "`at` < TIMESTAMP '2026-11-26 01:00:00+00:00'"),
        ("here >= :interval_start", "`here` >= TIMESTAMP_NTZ '2026-11-26 00:00:00'"),
        ("country IN ('de', 'it''s')", "`country` IN ('de', 'it\\'s')"),
        ("n between -1 AND 3", "`n` >= (-1) AND `n` <= (3)"),
        ("price != 1.50", "`price` <> CAST('1.50' AS DECIMAL(10,2))"),
        ("paid = true and `of a kind` > 7 -- and that is all", "`paid` = TRUE AND `of a kind` > (7)"),
    ],
)
def test_values_have_the_type_of_their_column(text, condition):
    assert read_slice(with_interval(text, edge, "+00:00"), TYPES).condition == condition


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it ends where a column is expected"),
        ("day", "it ends where a comparison is expected"),
        ("day >", "it ends where a value is expected"),
        ("day = 1 OR n = 2", "AND is expected where 'OR n = 2' stands"),
        ("date(at) = '2026-11-26'", "a comparison is expected where .\\(at\\)"),
        ("day = current_date()", "a value is expected where 'current_date"),
        ("n = other", "a value is expected where 'other"),
        ("country LIKE 'd%'", 'a comparison is expected where "LIKE'),
        ("country = 'a\\\\'", "a text without a backslash"),
        ("n = 1 n = 2", "AND is expected where 'n = 2'"),
        ("day = :interval_middle", "a value is expected where ':interval_middle"),
    ],
)
def test_what_is_no_such_condition_is_told_with_what_is_allowed(text, why):
    with pytest.raises(SliceUnfit, match=why) as refused:
        check_slice(with_interval(text, edge, "+00:00"))
    assert "comparisons joined by AND" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nobody = 1", "there is no column nobody; there are day, at"),
        ("n = 'three'", "n is of type long, and 'three' is no such value"),
        ("n = 9223372036854775808", "n is of type long"),
        ("day = 5", "day is of type date, and 5 is no such value"),
        ("day >= TIMESTAMP '2026-11-26 05:00:00'", "day is of type date.*write '\\$\\{interval.start:%Y-%m-%d\\}'"),
        ("country = :interval_start", "country is of type string.*write '\\$\\{interval.start:%Y-%m-%d\\}'"),
        ("share > 0.5", "share is of type double, which `where` does not compare"),
    ],
)
def test_what_does_not_fit_the_columns_is_told_with_their_type(text, why):
    with pytest.raises(SliceUnfit, match=why):
        read_slice(with_interval(text, edge, "+00:00"), TYPES)


VALUES = {
    "day": st.dates(date(2026, 11, 20), date(2026, 11, 24)),
    "n": st.integers(-2, 2),
    "country": st.sampled_from(["", "a", "b", "ba", "é"]),
    "price": st.sampled_from([Decimal("-1.50"), Decimal("0.00"), Decimal("2.25")]),
    "moment": st.datetimes(datetime(2026, 11, 20), datetime(2026, 11, 21), timezones=st.just(UTC)),
}
WRITTEN = {"day": "'{}'", "n": "{}", "country": "'{}'", "price": "{}", "moment": "TIMESTAMP '{}'"}


@st.composite
def comparisons(draw: st.DrawFn) -> str:
    column = draw(st.sampled_from(sorted(VALUES)))
    value = lambda: WRITTEN[column].format(draw(VALUES[column]))  # noqa: E731
    operator = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "IN", "BETWEEN"]))
    if operator == "IN":
        return f"{column} IN ({', '.join(value() for _ in range(draw(st.integers(1, 3))))})"
    return f"{column} BETWEEN {value()} AND {value()}" if operator == "BETWEEN" else f"{column} {operator} {value()}"


FILE = st.lists(st.fixed_dictionaries(VALUES), min_size=1, max_size=4)


@given(files=st.lists(FILE, min_size=1, max_size=3), conditions=st.lists(comparisons(), min_size=1, max_size=3))
def test_no_file_is_left_out_that_has_a_row_for_which_duckdb_finds_the_condition_true(files, conditions):
    text = " AND ".join(conditions)
    of_slice = read_slice(text, TYPES)
    with duckdb.connect() as base:
        base.execute("SET TimeZone = 'UTC'")
        for rows in files:
            spans = {name: (min(row[name] for row in rows), max(row[name] for row in rows)) for name in VALUES}
            base.execute(
                "CREATE OR REPLACE TABLE rows "
                "(day DATE, n BIGINT, country TEXT, price DECIMAL(10,2), moment TIMESTAMPTZ)"
            )
            base.executemany(
                "INSERT INTO rows VALUES (?, ?, ?, ?, ?)",
                [[row[name] for name in ("day", "n", "country", "price", "moment")] for row in rows],
            )
            found = base.execute(f"SELECT count(*) FROM rows WHERE {text}").fetchone()
            assert found is not None
            if found[0]:
                assert of_slice.may_have(spans.get)


def test_a_file_that_is_all_on_one_side_is_left_out_and_one_of_which_nothing_is_known_is_not():
    of_slice = read_slice("day >= '2026-11-26' AND n = 3", TYPES)
    day = date(2026, 11, 26)
    assert of_slice.may_have({"day": (day, day), "n": (0, 9)}.get)
    assert of_slice.may_have({}.get)
    assert not of_slice.may_have({"day": (date(2026, 11, 1), date(2026, 11, 25))}.get)
    assert not of_slice.may_have({"n": (4, 9)}.get)
