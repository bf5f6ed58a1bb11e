from __future__ import annotations

import pytest

from stagehold.code.stage_code import CodeCall
from stagehold.plan.determinism.operations import RULES, Kind, Order, PlanFacts, Use, findings, uses_in_sql

GIVEN = Order.GIVEN
TABLE = [
    # use, the same in the second plan -> kind and whether it is certain, None for nothing
    (Use("rand", ("1",)), Use("rand", ("2",)), (Kind.RANDOM, True)),
    (Use("rand", ("1",)), Use("rand", ("1",)), (Kind.RANDOM, False)),
    (Use("rand"), Use("rand"), (Kind.RANDOM, True)),
    (Use("sample", ("7",)), Use("sample", ("8",)), (Kind.RANDOM, True)),
    (Use("shuffle", ("", "1")), Use("shuffle", ("", "2")), (Kind.RANDOM, True)),
    (Use("shuffle", ("", "1")), Use("shuffle", ("", "1")), (Kind.RANDOM, False)),
    (Use("shuffle", ("a",)), Use("shuffle", ("a",)), (Kind.RANDOM, True)),
    (Use("uniform", ("1", "2", "3")), Use("uniform", ("1", "2", "3")), (Kind.RANDOM, False)),
    (Use("current_timestamp"), None, (Kind.CLOCK, True)),
    (Use("unix_timestamp"), None, (Kind.CLOCK, True)),
    (Use("unix_timestamp", ("",)), None, None),
    (Use("monotonically_increasing_id"), None, (Kind.PLACE, True)),
    (Use("input_file_name"), None, (Kind.PLACE, False)),
    (Use("limit"), None, (Kind.ORDER, True)),
    (Use("limit", order=GIVEN), None, None),
    (Use("dropDuplicates"), None, (Kind.ORDER, True)),
    (Use("first", ("",)), None, (Kind.ORDER, True)),
    (Use("first", ("",), order=GIVEN), None, (Kind.ORDER, False)),
    (Use("row_number", order=GIVEN), None, (Kind.ORDER, False)),
    (Use("rank", order=GIVEN), None, None),
    (Use("collect_list", ("",)), None, (Kind.ORDER, True)),
    (Use("collect_list", ("",), "sort_array"), None, None),
    (Use("collect_set", ("",), "size"), None, None),
    (Use("collect_list", ("",), "concat_ws"), None, (Kind.ORDER, True)),
    (Use("percentile_approx", ("", "0.5")), None, (Kind.ORDER, False)),
    (Use("sum", ("",), floating=True), None, (Kind.FLOATING, True)),
    (Use("sum", ("",), floating=False), None, None),
    (Use("sum", ("",)), None, (Kind.FLOATING, False)),
    (Use("avg", ("",), "round", floating=True), None, None),
    (Use("stddev", ("",)), None, (Kind.FLOATING, True)),
    (Use("udf"), None, (Kind.CODE, True)),
    (Use("upper", ("",)), None, None),
]


@pytest.mark.parametrize(("use", "again", "expected"), TABLE)
def test_an_operation_is_judged(use, again, expected):
    found = findings(PlanFacts((use,)), PlanFacts((again or use,)), ())
    assert [(one.kind, one.certain) for one in found] == ([expected] if expected else [])


def test_a_function_that_builds_another_plan_each_time_is_found():
    calls = (
        CodeCall("now", "jobs.py", 7, "datetime.now()", silenced=False),
        CodeCall("select", "jobs.py", 8, "", silenced=False),
    )
    (found,) = findings(PlanFacts((), ("2026-01-01",)), PlanFacts((), ("2026-01-02",)), calls)
    assert str(found) == (
        "jobs.py:7: the stage function builds another plan each time it is called; "
        "take times, ids and random numbers from ctx.logical_date, ctx.seed and ctx.params"
    )
    (reshaped,) = findings(PlanFacts((Use("upper"),)), PlanFacts(()), ())
    assert (reshaped.kind, reshaped.certain) == (Kind.CODE, True)


def test_a_finding_names_every_line_it_can_come_from_once_with_the_remedy():
    calls = tuple(
        CodeCall(name, "jobs.py", line, "", silenced=False) for line, name in ((3, "first"), (5, "first"), (6, "last"))
    )
    found = findings(
        PlanFacts((Use("first", ("",)), Use("first", ("",)))),
        PlanFacts((Use("first", ("",)), Use("first", ("",)))),
        calls,
    )
    assert [str(one) for one in found] == [
        "jobs.py:3 or jobs.py:5: first takes any row of its group; take min, max, or max_by with a unique key"
    ]


@pytest.mark.parametrize(
    ("silenced", "places"),
    [((True, True), None), ((True, False), ["jobs.py:2"]), ((False, False), ["jobs.py:1", "jobs.py:2"])],
)
def test_the_comment_silences_its_own_line_only(silenced, places):
    calls = tuple(CodeCall("limit", "jobs.py", line, "", silenced=said) for line, said in enumerate(silenced, 1))
    found = findings(PlanFacts((Use("limit"),)), PlanFacts((Use("limit"),)), calls)
    assert [[call.place for call in one.places] for one in found] == ([places] if places else [])


def test_other_names_for_the_same_operation_lead_to_its_line():
    calls = (
        CodeCall("mean", "jobs.py", 4, "", silenced=False),
        CodeCall("drop_duplicates", "jobs.py", 5, "", silenced=False),
    )
    facts = PlanFacts((Use("avg", ("",), floating=True), Use("dropDuplicates")))
    assert [finding.places[0].line for finding in findings(facts, facts, calls)] == [4, 5]


def test_every_rule_says_what_to_do():
    assert all(rule.problem and rule.remedy and not rule.remedy.endswith(".") for rule in RULES.values())


TEXTS = [
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


@pytest.mark.parametrize(("text", "expected"), TEXTS)
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
