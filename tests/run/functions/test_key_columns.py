"""Equal keys are in one group, as Spark compares and groups them: for every pair of types, or the pair is refused."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from stagehold.errors import KeyTypesUnlike, StageContractBroken
from stagehold.model.keys.key_groups import HASH_NAME, index_of_group
from stagehold.model.keys.key_types import may_meet
from stagehold.run.functions.key_columns import (
    in_groups,
    key_group,
    key_of,
    key_type,
    partition_of_key,
    refuse_unlike_keys,
)

pytestmark = pytest.mark.spark

GROUPS = 32768
SEED = 12
DECIMALS = [(10, 1), (10, 2), (12, 0), (20, 8), (28, 0), (38, 0), (38, 10), (38, 18), (38, 38)]
WHOLE = ["tinyint", "smallint", "int", "bigint"]
NUMBERS = [*WHOLE, "float", "double", *(f"decimal({digits},{scale})" for digits, scale in DECIMALS)]
TEXTS = [
    "",
    " ",
    "a",
    "A",
    "a ",
    "a  ",
    "aa",
    "\xe4",
    "a\u0308",
    "\u65e5\u672c",
    "a\x1fb",
    "\x00",
    "0",
    "01",
    "1",
    "2026-01-01",
    None,
]
TIMES = [
    "1969-12-31 23:59:59.999999",
    "2026-01-01 00:00:00",
    "2026-01-01 00:00:01",
    "2026-03-29 02:30:00",
    "0001-01-01 00:00:00",
    None,
]
TYPES = {  # name -> how a value is made of a number, of a text or of a time
    **{name: f"try_cast(number as {name})" for name in NUMBERS},
    "string": "text",
    "char(3)": "rpad(text, 3, ' ')",
    "char(8)": "rpad(text, 8, ' ')",
    "string collate UTF8_LCASE": "text collate UTF8_LCASE",
    "string collate UTF8_BINARY_RTRIM": "text collate UTF8_BINARY_RTRIM",
    "binary": "cast(text as binary)",
    "boolean": "number > '1'",
    "date": "cast(time as date)",
    "timestamp": "cast(time || 'Z' as timestamp)",
    "timestamp_ntz": "cast(time as timestamp_ntz)",
    "interval day": "cast(make_dt_interval(length(text)) as interval day)",
    "interval hour to second": "cast(make_dt_interval(0, 24 * length(text)) as interval hour to second)",
    "interval year": "cast(make_ym_interval(length(text)) as interval year)",
    "interval month": "cast(make_ym_interval(0, 12 * length(text)) as interval month)",
    "void": "null",
    "struct of bigint": "if(number = '0', null, named_struct('n', try_cast(number as bigint), 's', text))",
    "struct of double": "named_struct('n', try_cast(number as double), 's', text)",
    "struct of decimal": "named_struct('n', try_cast(number as decimal(20, 4)), 's', text)",
    "struct in struct": "named_struct('in', named_struct('n', try_cast(number as int)))",
    "struct in struct, other names": "named_struct('out', named_struct('m', try_cast(number as double)))",
    "array of int": "if(number = '0', null, array(try_cast(number as int), 0))",
    "array of double": "array(try_cast(number as double), -0.0d)",
    "array of structs": "array(named_struct('n', try_cast(number as int)))",
    "array of structs of decimal": "array(named_struct('n', try_cast(number as decimal(10, 1))))",
    "map": "map(1, number)",
    "variant": "to_variant_object(array(text))",
    "calendar interval": "make_interval(length(text))",
    "struct of map": "named_struct('m', map(1, text))",
}
FORMS = (11603, 26579, 23039, 3254, 19204, 22825, 14767, 13543)  # groups of one row's columns
SETTINGS = {
    "as Stagehold starts it": {},
    "without ANSI, elsewhere": {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "Asia/Kolkata"},
}


def numbers() -> list[str | None]:
    """Numbers as text: those where types differ, random ones, and neighbours of both."""
    drawn = random.Random(SEED)
    plain = [
        "0",
        "-0",
        "1",
        "-1",
        "0.1",
        "0.10",
        "0.3",
        "0.30000000000000004",
        "1.4",
        "1.5",
        "100",
        "127",
        "1e-320",
        "1e300",
    ]
    large = ["16777217", "9007199254740992", "9007199254740993", "9223372036854775295", "9223372036854775807", "9" * 38]
    scattered = [str(round(drawn.uniform(-(10**digits), 10**digits), drawn.randint(0, 8))) for digits in range(1, 12)]
    return [*plain, *large, *scattered, "NaN", "Infinity", "-Infinity", None]


@pytest.fixture(scope="module")
def values(spark):
    """A row per place, a column ``v0``, ``v1``... for each of the types, their groups beside them as ``g0``..."""
    pools = [numbers(), TEXTS, TIMES]
    size = max(map(len, pools))
    rows = [(place, *(pool[place % len(pool)] for pool in pools)) for place in range(size)]
    made = spark.createDataFrame(rows, "place int, number string, text string, time string")
    columns = [F.expr(how).alias(f"v{place}", metadata=padded(name)) for place, (name, how) in enumerate(TYPES.items())]
    return with_groups(made.select("place", *columns))


def padded(name: str) -> dict[str, str]:
    """What tells Spark that a string column is one of a table's `char` columns."""
    return {"__CHAR_VARCHAR_TYPE_STRING": name} if name.startswith("char") else {}


def with_groups(frame):
    """The frame and its types, each usable column's group beside it."""
    schema = frame.schema
    types = {field.name: key_type(field.dataType) for field in schema.fields if field.name != "place"}
    groups = {f"g{name[1:]}": key_group([name], schema, GROUPS) for name, kind in types.items() if kind.usable}
    return frame.withColumns(groups), types


@contextmanager
def settings(spark, chosen: dict[str, str]) -> Iterator[None]:
    for name, text in chosen.items():
        spark.conf.set(name, text)
    try:
        yield
    finally:
        for name in chosen:
            spark.conf.unset(name)


def meeting(frame, types) -> list[tuple[str, str]]:
    """The pairs that may meet and that Spark can compare: it cannot always find a type for two nested ones."""
    names = list(types)
    pairs = [
        (one, other) for place, one in enumerate(names) for other in names[place:] if may_meet(types[one], types[other])
    ]
    return [
        (one, other) for one, other in pairs if one == other or not types[one].parts or comparable(frame, one, other)
    ]


def comparable(frame, one: str, other: str) -> bool:
    try:
        return bool(frame.selectExpr(f"{one} <=> {other}").schema)
    except AnalysisException:
        return False


@pytest.mark.parametrize("chosen", SETTINGS)
def test_keys_that_spark_compares_as_equal_are_in_one_group(spark, values, chosen):
    frame, types = values
    pairs = meeting(frame, types)
    left, right = frame.alias("l"), frame.alias("r")
    apart = [F.count_if(F.expr(f"l.{one} <=> r.{other} and l.g{one[1:]} <> r.g{other[1:]}")) for one, other in pairs]
    equal = [F.count_if(F.expr(f"l.{one} <=> r.{other}")) for one, other in pairs]
    with settings(spark, SETTINGS[chosen]):
        found, met = left.crossJoin(right).agg(F.array(*apart), F.array(*equal)).collect()[0]
    names = [(named(one), named(other)) for one, other in pairs]
    assert [pair for pair, count in zip(names, found, strict=True) if count] == []
    assert [pair for pair, count in zip(names, met, strict=True) if not count and "void" not in pair] == []


UNIONS = [
    ("decimal(10,1)", "decimal(20,8)"),
    ("bigint", "decimal(38,18)"),
    ("bigint", "double"),
    ("float", "decimal(38,38)"),
    ("smallint", "float"),
    ("double", "double"),
    ("char(3)", "char(8)"),
    ("struct of bigint", "struct of decimal"),
    ("array of int", "array of double"),
    ("interval day", "interval hour to second"),
    ("void", "timestamp"),
]


def test_keys_that_spark_groups_together_are_in_one_group(spark, values):
    frame, types = values
    apart = []
    for pair in UNIONS:
        one, other = (f"v{list(TYPES).index(name)}" for name in pair)
        assert may_meet(types[one], types[other])
        both = frame.selectExpr(f"{one} k", f"g{one[1:]} g").union(frame.selectExpr(f"{other} k", f"g{other[1:]} g"))
        groups = both.groupBy("k").agg(F.count_distinct("g").alias("groups"))
        found = [
            F.lit(str(pair)).alias("pair"),
            F.count_if(F.col("groups") > 1).alias("apart"),
            F.count("*").alias("keys"),
        ]
        apart.append(groups.agg(*found))
    rows = [row for some in apart for row in some.collect()]
    assert all(row["keys"] > 1 for row in rows)
    assert [row["pair"] for row in rows if row["apart"]] == []


def named(column: str) -> str:
    return list(TYPES)[int(column[1:])]


def test_a_group_depends_on_no_setting_of_the_session(spark, values):
    frame, types = values
    groups = frame.select(*(f"g{name[1:]}" for name, kind in types.items() if kind.usable)).orderBy("place")
    before = groups.collect()
    with settings(spark, SETTINGS["without ANSI, elsewhere"]):
        assert groups.collect() == before


def test_types_that_have_no_canonical_form(values):
    _, types = values
    refused = {name for name, kind in zip(TYPES, types.values(), strict=True) if not kind.usable}
    assert refused == {
        "string collate UTF8_LCASE",
        "string collate UTF8_BINARY_RTRIM",
        "map",
        "variant",
        "calendar interval",
        "struct of map",
    }


def test_every_nan_is_one_key_and_so_are_the_zeros(spark):
    bits = pa.array([0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8000000000000, 0, 1 << 63], pa.uint64())
    frame = spark.createDataFrame(pa.table({"k": bits.view(pa.float64())}))
    groups = [row["g"] for row in frame.select(key_group(["k"], frame.schema, GROUPS).alias("g")).collect()]
    assert len(set(groups[:3])) == len(set(groups[3:])) == 1


def test_a_change_of_hash_or_forms_needs_a_new_name(spark):
    row = (
        "1L a, 'b' b, date'2026-01-01' c, 1.50bd d, timestamp'2026-01-01' e, true f, named_struct('x', 1, 'y', "
        "array(0.5d)) g"
    )
    frame = spark.range(1).selectExpr(*row.split(", ", 6))
    groups = frame.select(
        *(key_group([name], frame.schema, GROUPS) for name in "abcdefg"), key_group(["a", "b"], frame.schema, GROUPS)
    )
    assert (HASH_NAME, tuple(groups.collect()[0])) == ("xxhash64-canonical-1", FORMS)


def test_a_partition_owns_the_groups_of_its_rows_and_reads_just_them(spark):
    frame = spark.range(500)
    group, partition = (
        key_group(["id"], frame.schema, 7),
        partition_of_key(["id"], frame.schema, partitions=5, max_parallelism=7),
    )
    rows = frame.select("id", group.alias("group"), partition.alias("partition")).collect()
    assert all(row["partition"] == index_of_group(row["group"], 5, 7) for row in rows)
    read = frame.where(in_groups(group, [range(5, 7), range(1), range(4, 5)])).collect()
    assert {row["id"] for row in read} == {row["id"] for row in rows if row["group"] in (0, 4, 5, 6)}


def test_a_thousand_ranges_of_groups_are_no_deep_condition(spark):
    every_other = [range(2 * number, 2 * number + 1) for number in range(1000)]
    assert spark.range(3000).where(in_groups(F.col("id"), every_other)).count() == 1000


@pytest.mark.parametrize(
    "how",
    ["id", "id + 1099511627776", "date_add(date'2000-01-01', cast(id as int))", "concat('customer-', id)", "id / 8"],
)
def test_keys_are_spread_evenly(spark, how):
    frame = spark.range(12800).selectExpr(f"{how} k")
    sizes = [row["count"] for row in frame.groupBy(key_group(["k"], frame.schema, 128)).count().collect()]
    assert len(sizes) == 128
    assert 50 < min(sizes) <= max(sizes) < 150


def test_columns_of_a_key_do_not_run_into_each_other(spark):
    frame = spark.createDataFrame([("ab", "c"), ("a", "bc"), ("", "abc")], "`a b` string, `c.d` string")
    groups = frame.select(key_group(["a b", "c.d"], frame.schema, GROUPS)).collect()
    assert len(set(groups)) == 3


def test_a_key_column_that_is_not_there_is_named(spark):
    with pytest.raises(StageContractBroken, match="no key column other; it has id"):
        key_of("left", ["id", "other"], spark.range(1).schema)


def test_unlike_keys_are_refused_and_like_ones_are_not(spark):
    left, right = spark.sql("select 1 n, '1' s").schema, spark.sql("select 1.0bd n, 1L s").schema
    refuse_unlike_keys("joined", [key_of("left", ["n"], left), key_of("right", ["n"], right)])
    with pytest.raises(KeyTypesUnlike, match=r"left.s is string and right.s is bigint"):
        refuse_unlike_keys("joined", [key_of("left", ["n", "s"], left), key_of("right", ["n", "s"], right)])
