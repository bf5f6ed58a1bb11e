"""Plans as Spark prints them, and whether several partitions may share the call that made them."""

from __future__ import annotations

import pytest

from stagehold.plan.isolation.attributes import keeps_group
from stagehold.plan.isolation.tree import GivenInput
from stagehold.plan.isolation.verdict import NOT_UNDERSTOOD, Isolation, NullableKey, isolation_of, separate_calls_text


def over(operator: str, *children: str) -> str:
    """An operator and what it reads, drawn as Spark does."""
    drawn = [operator]
    for number, child in enumerate(children, 1):
        first, *others = child.split("\n")
        last = number == len(children)
        drawn += [f"{'+' if last else ':'}- {first}", *(f"{' ' if last else ':'}  {line}" for line in others)]
    return "\n".join(drawn)


def given(place: int, columns: str) -> str:
    return over(f"SubqueryAlias _stagehold_input_{place}", over(f"Project [{columns}]", "Relation [x#99] parquet"))


LEFT = given(0, "id#1L, a#2L, arr#3")
RIGHT = given(1, "id#11, b#12L")
FIXED = given(2, "id#21L, c#22")
OWN = given(3, "id#31L, d#32L")
INPUTS = (
    GivenInput("left", ("id",), {"id": "bigint"}),
    GivenInput("right", ("id",), {"id": "int"}),
    GivenInput("fixed", None),
    GivenInput("own", ()),
)
MEET = "(id#1L = cast(id#11 as bigint))"


def judge(plan: str, *columns: str, key: str = "id", functions: tuple[str, ...] = ()) -> Isolation:
    explained = (
        f"== Parsed Logical Plan ==\nx\n\n== Analyzed Logical Plan ==\nid: bigint\n{plan}\n\n== Optimized "
        "Logical Plan ==\nx"
    )
    return isolation_of(explained, INPUTS, (key,), columns, functions)


def select(columns: str, child: str) -> str:
    return over(f"Project [{columns}]", child)


def join(kind: str, left: str = LEFT, right: str = RIGHT, on: str = MEET) -> str:
    return over(f"Join {kind}, {on}" if on else f"Join {kind}", left, right)


WINDOW = (
    "row_number() windowspecdefinition({0}, a#2L ASC NULLS FIRST, specifiedwindowframe(RowFrame, x$(), y$())) AS n#5"
)
LEFT_ROWS = ("id", "a", "arr")
COALESCED = "coalesce(id#1L, cast(id#11 as bigint)) AS id#40L"
UNION = over("Union false, false", select("id#1L, a#2L", LEFT), select("cast(id#11 as bigint) AS id#41L, b#12L", RIGHT))
ROLLUP = "Expand [[id#1L, a#2L, id#50L, 0], [id#1L, a#2L, null, 1]], [id#1L, a#2L, id#51L, g#52L]"

TOGETHER = {
    "the input": (LEFT, LEFT_ROWS),
    "a filter with and": (over("Filter ((a#2L > cast(1 as bigint)) AND (id#1L = cast(2 as bigint)))", LEFT), LEFT_ROWS),
    "a projection, a renamed key": (select("a#2L, id#1L AS id#7L, concat_ws(, , x, y) AS t#8", LEFT), ("a", "id", "t")),
    "a key in other letters": (select("ID#1L, a#2L", LEFT), ("id", "a")),
    "a join": (join("Inner"), (*LEFT_ROWS, "id2", "b")),
    "a join by more than the key": (join("Inner", on=f"({MEET} AND (a#2L = b#12L))"), (*LEFT_ROWS, "id2", "b")),
    "a join as a filter": (over(f"Filter {MEET}", join("Inner", on="")), (*LEFT_ROWS, "id2", "b")),
    "the right key of an inner join": (select("id#11", join("Inner")), ("id",)),
    "a left join": (join("LeftOuter"), (*LEFT_ROWS, "id2", "b")),
    "a full join, keys coalesced": (select(COALESCED, join("FullOuter")), ("id",)),
    "a right key that is not null": (select("id#11", over("Filter isnotnull(id#11)", join("LeftOuter"))), ("id",)),
    "a right key that is not dropped": (
        select("id#11", over("Filter atleastnnonnulls(1, id#11)", join("LeftOuter"))),
        ("id",),
    ),
    "a semi join": (join("LeftSemi"), LEFT_ROWS),
    "an anti join": (join("LeftAnti", on="(id#1L <=> cast(id#11 as bigint))"), LEFT_ROWS),
    "a broadcast input by anything": (join("LeftOuter", right=FIXED, on="(a#2L = id#21L)"), (*LEFT_ROWS, "x", "c")),
    "the key of a broadcast input": (select("id#21L", join("Inner", right=FIXED, on="(id#1L = id#21L)")), ("id",)),
    "a broadcast input crossed": (join("Cross", FIXED, LEFT, on=""), ("x", "c", *LEFT_ROWS)),
    "groups": (over("Aggregate [id#1L, a#2L], [id#1L, a#2L, sum(a#2L) AS s#5L]", LEFT), ("id", "a", "s")),
    "groups by both sides of a full join": (
        select(COALESCED, over("Aggregate [id#1L, id#11], [id#1L, id#11, count(1) AS n#5L]", join("FullOuter"))),
        ("id",),
    ),
    "a window": (over(f"Window [{WINDOW.format('id#1L')}], [id#1L], [a#2L ASC NULLS FIRST]", LEFT), (*LEFT_ROWS, "n")),
    "distinct rows": (over("Distinct", select("id#1L", LEFT)), ("id",)),
    "no duplicates": (over("Deduplicate [id#1L, a#2L]", LEFT), LEFT_ROWS),
    "a union": (UNION, ("id", "a")),
    "groups of a union": (over("Aggregate [id#1L], [id#1L]", UNION), ("id",)),
    "an intersection": (
        over("Intersect false", select("id#1L", LEFT), select("cast(id#11 as bigint) AS id#41L", RIGHT)),
        ("id",),
    ),
    "an explosion": (over("Generate explode(arr#3), false, [e#5]", LEFT), (*LEFT_ROWS, "e")),
    "melted columns": (over("Expand [[id#1L, x, a#2L], [id#1L, y, a#2L]], [id#1L, v#5, w#6L]", LEFT), ("id", "v", "w")),
    "order and layout": (over("Sort [a#2L ASC NULLS FIRST], true", over("Repartition 3, true", LEFT)), LEFT_ROWS),
    "a shared part": (
        over(
            "WithCTE",
            over("CTERelationDef 0, false", LEFT),
            over("SubqueryAlias c", "CTERelationRef 0, true, [id#61L, a#62L, arr#63], false"),
        ),
        LEFT_ROWS,
    ),
    "a limit of a broadcast input": (
        join("Inner", right=over("GlobalLimit 3", FIXED), on="(a#2L = id#21L)"),
        (*LEFT_ROWS, "x", "c"),
    ),
    "a table of its own": (
        join("Inner", right="Relation [id#71L,z#72] parquet", on="(id#1L = id#71L)"),
        (*LEFT_ROWS, "x", "z"),
    ),
}


@pytest.mark.parametrize(("plan", "columns"), TOGETHER.values(), ids=TOGETHER.keys())
def test_partitions_may_share_a_call(plan, columns):
    assert judge(plan, *columns) == Isolation()


APART = {
    "a cross join": (join("Cross", on=""), (*LEFT_ROWS, "id2", "b"), "Join Cross"),
    "a join by something else": (join("Inner", on="(a#2L = b#12L)"), (*LEFT_ROWS, "x", "b"), "Join Inner, (a = b)"),
    "a join by either": (
        join("Inner", on=f"({MEET} OR (a#2L = b#12L))"),
        (*LEFT_ROWS, "x", "b"),
        "Join Inner, ((id = cast(id as bigint)) OR (a = b))",
    ),
    "a join by a coarser key": (
        join("Inner", on="(cast(id#1L as int) = id#11)"),
        (*LEFT_ROWS, "x", "b"),
        "Join Inner, (cast(id as int) = id)",
    ),
    "a join by the opposite": (
        join("Inner", on="(-id#1L = cast(id#11 as bigint))"),
        (*LEFT_ROWS, "x", "b"),
        "Join Inner, (-id = cast(id as bigint))",
    ),
    "a right join that keeps a broadcast input": (
        select("id#1L AS n#8L, id#21L AS id#9L", join("RightOuter", right=FIXED, on="(a#2L = id#21L)")),
        ("n", "id"),
        "Join RightOuter, (a = id)",
    ),
    "an anti join of a broadcast input": (
        join("LeftAnti", FIXED, LEFT, on="(id#21L = id#1L)"),
        ("id", "c"),
        "Join LeftAnti, (id = id)",
    ),
    "everything": (over("Aggregate [max(id#1L) AS id#5L]", LEFT), ("id",), "Aggregate [max(id) AS id]"),
    "groups by something else": (
        over("Aggregate [a#2L], [a#2L, max(id#1L) AS id#5L]", LEFT),
        ("a", "id"),
        "Aggregate [a], [a, max(id) AS id]",
    ),
    "groups by the opposite": (
        over("Aggregate [-id#1L], [-id#1L AS id#5L]", LEFT),
        ("id",),
        "Aggregate [-id], [-id AS id]",
    ),
    "groups by a key that may be null": (
        over("Aggregate [id#11], [id#11 AS n#8, max(id#1L) AS id#5L]", join("LeftOuter")),
        ("n", "id"),
        "Aggregate [id], [id AS n, max(id) AS id]",
    ),
    "subtotals": (over("Aggregate [id#51L, g#52L], [id#51L]", over(ROLLUP, LEFT)), ("id",), "Aggregate [id, g], [id]"),
    "a window over everything": (over("Window [count(1) AS n#5L]", LEFT), (*LEFT_ROWS, "n"), "Window [count(1) AS n]"),
    "a window that is only ordered by the key": (
        over("Window [count(1) AS n#5L], [id#1L ASC NULLS FIRST]", LEFT),
        (*LEFT_ROWS, "n"),
        "Window [count(1) AS n], [id ASC NULLS FIRST]",
    ),
    "distinct rows without the key": (over("Distinct", select("a#2L", LEFT)), ("id",), "Distinct"),
    "duplicates by something else": (over("Deduplicate [a#2L]", LEFT), LEFT_ROWS, "Deduplicate [a]"),
    "a limit": (over("GlobalLimit 3", LEFT), LEFT_ROWS, "GlobalLimit 3"),
    "a sample": (over("Sample 0.0, 0.5, false, 42", LEFT), LEFT_ROWS, "Sample 0.0, 0.5, false, 42"),
    "a union with a broadcast input": (
        over("Union false, false", select("id#1L", LEFT), select("id#21L", FIXED)),
        ("id",),
        "Union false, false",
    ),
    "a function of batches": (
        over("MapInPandas f(id#1L)#7, [id#8L], false", LEFT),
        ("id",),
        "MapInPandas f(id), [id], false",
    ),
    "rows kept by Spark": ("LogicalRDD [id#1L], false", ("id",), "LogicalRDD [id], false"),
    "a view of the server": (over("View (`v`, [id#1L, a#2L, arr#3])", LEFT), LEFT_ROWS, "View (`v`, [id, a, arr])"),
    "an operator of another Spark": (over("Whirl id#1L", LEFT), LEFT_ROWS, "Whirl id"),
}


@pytest.mark.parametrize(("plan", "columns", "blamed"), APART.values(), ids=APART.keys())
def test_partitions_need_calls_of_their_own_and_the_operator_is_named(plan, columns, blamed):
    found = judge(plan, *columns)
    assert found.blame[0] == blamed
    assert not found.together
    assert f"kept apart by {blamed}" in separate_calls_text("s", found)


def test_a_subquery_over_a_keyed_input_needs_them_and_one_over_a_broadcast_input_does_not():
    def above(inner: str) -> str:
        drawn = inner.split("\n")
        return "\n".join(
            [
                "Filter (a#2L > scalar-subquery#5 [])",
                f":  +- {drawn[0]}",
                *(f":     {line}" for line in drawn[1:]),
                *over("X", LEFT).split("\n")[1:],
            ]
        )

    assert judge(above(over("Aggregate [max(b#12L) AS m#6L]", RIGHT)), *LEFT_ROWS).blame == (
        "a subquery in Filter (a > scalar-subquery [])",
    )
    assert judge(above(over("Aggregate [max(c#22) AS m#6]", FIXED)), *LEFT_ROWS) == Isolation()


NO_KEY = "its output column id, which nothing shows to be the key"
UNKNOWN_KEYS = {
    "another column": (select("a#2L AS id#5L", LEFT), ("id",), NO_KEY),
    "a changed key": (select("(id#1L + cast(1 as bigint)) AS id#5L", LEFT), ("id",), NO_KEY),
    "a coarser key": (select("cast(id#1L as int) AS id#5", LEFT), ("id",), NO_KEY),
    "a constant instead of null": (select("coalesce(id#1L, 0) AS id#5L", LEFT), ("id",), NO_KEY),
    "a forward input": (OWN, ("id", "d"), NO_KEY),
    "a broadcast input": (FIXED, ("id", "c"), "its output, which is the same for every partition"),
    "a function of groups": (
        over("FlatMapGroupsInPandas [id#1L], f(id#1L)#7, [id#8L]", LEFT),
        ("id",),
        "FlatMapGroupsInPandas [id], f(id), [id], whose Python function alone knows which key its rows have",
    ),
}


@pytest.mark.parametrize(("plan", "columns", "blamed"), UNKNOWN_KEYS.values(), ids=UNKNOWN_KEYS.keys())
def test_rows_whose_key_is_not_seen_to_be_theirs_are_made_one_partition_at_a_time(plan, columns, blamed):
    assert judge(plan, *columns, functions=("f",)).blame[0] == blamed


EMPTY_KEYS = {
    "full, left": (select("id#1L, b#12L", join("FullOuter")), ("left.id", "right.id")),
    "full, right": (select("id#11, b#12L", join("FullOuter")), ("right.id", "left.id")),
    "left, right": (select("id#11 AS id#5, b#12L", join("LeftOuter")), ("right.id", "left.id")),
    "right, left": (select("id#1L, b#12L", join("RightOuter")), ("left.id", "right.id")),
    "a broadcast input is kept": (
        select("id#1L, c#22", join("RightOuter", right=FIXED, on="(id#1L = id#21L)")),
        ("left.id",),
    ),
}


@pytest.mark.parametrize(("plan", "alternatives"), EMPTY_KEYS.values(), ids=EMPTY_KEYS.keys())
def test_a_key_that_an_outer_join_leaves_empty_is_told_with_what_to_write(plan, alternatives):
    (found,) = judge(plan, "id", "other").nullable
    assert found == NullableKey("id", alternatives)
    assert found.expression == f'F.coalesce({", ".join(alternatives)}).alias("id")'


UNREADABLE = {
    "no tree": "+- Project",
    "two trees": "Range (0, 1)\nRange (0, 1)",
    "a child too far right": "Filter x\n         +- Range (0, 1)",
    "brackets that do not match": select("id#1L, (a AS b#5", LEFT),
    "an element that is none": select("id#1L, , AS b#5", LEFT),
    "columns left out": select("id#1L, ... 3 more fields", LEFT),
    "a join of one": over(f"Join Inner, {MEET}", LEFT),
}


@pytest.mark.parametrize("plan", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_is_not_understood_shows_nothing(plan):
    assert judge(plan, "id").blame == (NOT_UNDERSTOOD,)


def test_a_function_that_is_only_known_by_its_name_may_see_rows_in_batches():
    plan = select("id#1L, f(a#2L)#7L AS x#8L, sum(a)#2L AS y#9L", LEFT)
    assert judge(plan, "id", "x", "y", functions=("f",)) == Isolation()
    assert judge(plan, "id", "x", "y").blame == ("the Python function f",)


@pytest.mark.parametrize(
    ("before", "after", "keeps"),
    [
        ("int", "bigint", True),
        ("bigint", "int", False),
        ("bigint", "decimal(20,0)", True),
        ("bigint", "decimal(19,0)", False),
        ("decimal(10,2)", "decimal(12,3)", True),
        ("decimal(10,2)", "decimal(12,1)", False),
        ("decimal(10,2)", "decimal(10,3)", False),
        ("bigint", "double", True),
        ("decimal(38,10)", "double", True),
        ("float", "double", True),
        ("double", "float", False),
        ("string", "bigint", False),
        ("bigint", "string", False),
        ("string", "double", False),
        ("", "bigint", False),
    ],
)
def test_casts_that_leave_each_key_in_its_group(before, after, keeps):
    assert keeps_group(before, after) is keeps
