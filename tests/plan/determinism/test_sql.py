from __future__ import annotations

import pytest

from stagehold.plan.determinism.operations import Order
from stagehold.plan.determinism.sql import uses_in_sql

TABLE = [
    ("a + 1", []),
    ("rand()", [("rand", (), "")]),
    ("RAND(42) < 0.5", [("rand", ("42",), "")]),
    ("round(sum(a * (1 - b)), 2)", [("sum", ("a * (1 - b)",), "round"), ("round", ("sum(a * (1 - b))", "2"), "")]),
    (
        "coalesce(uuid(), 'rand()', `now()`) -- now()",
        [("uuid", (), "coalesce"), ("coalesce", ("uuid()", "'rand()'", "`now()`"), "")],
    ),
    ("current_date - 1", [("current_date", (), "")]),
    ("'it''s ' || now()", [("now", (), "")]),
    (")(", []),
]


@pytest.mark.parametrize(("text", "expected"), TABLE)
def test_functions_are_found_with_their_arguments_and_surroundings(text, expected):
    assert [(use.name, use.literals, use.inside) for use in uses_in_sql(text)] == expected


def test_what_stands_in_a_text_inside_a_function_is_inside_it():
    assert [use.inside for use in uses_in_sql("collect_list(a)", "sort_array")] == ["sort_array"]


ORDERS = [
    ("row_number() over (partition by a order by b)", "row_number", Order.GIVEN),
    ("first(a) OVER (partition by a)", "first", Order.NONE),
    ("select * from t limit 3", "limit", Order.NONE),
    ("select * from t order by a limit 3", "limit", Order.GIVEN),
]


@pytest.mark.parametrize(("text", "name", "order"), ORDERS)
def test_an_order_is_seen(text, name, order):
    (use,) = (use for use in uses_in_sql(text) if use.name == name)
    assert use.order is order
