"""What earlier intervals say of a partition, as tables; and of random histories the same that DuckDB says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ledger.samples import record

from stagehold.gates.earlier_figures import (
    MEASURES,
    NAMES,
    EarlierFigures,
    as_identifiers,
    earlier_figures,
    figures_named,
    in_words,
)
from stagehold.model.keys.compute_key import ComputeKey
from stagehold.model.records import DataFile, PartitionRecord
from stagehold.model.standing import PartitionState

pytestmark = pytest.mark.slow

BLOCKED, RELEASED, DAMAGED = PartitionState.BLOCKED, PartitionState.RELEASED, PartitionState.DAMAGED
NONE, OTHER_CUT, UNKNOWN = (
    "no earlier interval",
    "no earlier interval with as many partitions",
    "no earlier interval that has these figures",
)
SETTINGS = str(ComputeKey("c", "s", "e", "p", "i")), str(ComputeKey("c", "other", "e", "p", "i"))


def one(partition: int, rows: int, **facts: Any) -> PartitionRecord:
    size = facts.pop("bytes", 10 * rows)
    files = () if facts.get("state") is RELEASED else (DataFile("f", size, rows),)
    return record(partition, **{"rows": rows, "files": files, "seconds": rows / 2, **facts})


def two(*rows: int, **facts: Any) -> list[PartitionRecord]:
    return [one(partition, count, **facts) for partition, count in enumerate(rows)]


CASES: list[tuple[str, Sequence[Sequence[PartitionRecord]], dict[int, float | None], str]] = [
    # intervals from the newest on; then `previous.rows` of each of two partitions
    ("the first night", [], {0: None, 1: None}, NONE),
    ("the night before counts", [two(4, 5), two(7, 8)], {0: 4, 1: 5}, ""),
    ("what was released counts", [two(4, 5, state=RELEASED)], {0: 4, 1: 5}, ""),
    ("no rows are a figure too", [two(0, 5)], {0: 0, 1: 5}, ""),
    ("what was refused does not", [[one(0, 4), one(1, 5, state=BLOCKED)], two(7, 8)], {0: 4, 1: 8}, ""),
    ("nor what is damaged", [[one(0, 4), one(1, 5, state=DAMAGED)]], {0: 4, 1: None}, UNKNOWN),
    ("another cut does not", [two(3, 3, 3), two(7, 8)], {0: 7, 1: 8}, ""),
    ("no cut alike", [two(3, 3, 3), two(9)], {0: None, 1: None}, OTHER_CUT),
    ("what was not computed whole does not", [[one(1, 5)], two(7, 8)], {0: 7, 1: 8}, ""),
    (
        "nor what has partitions of two cuts",
        [[one(0, 4, compute_key=SETTINGS[0]), one(1, 5, compute_key=SETTINGS[1])], two(7, 8)],
        {0: 7, 1: 8},
        "",
    ),
]


@pytest.mark.parametrize(
    ("intervals", "rows", "lacking"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_the_newest_earlier_interval_that_can_be_compared_with_gives_the_figures(intervals, rows, lacking):
    found = earlier_figures(intervals, 2)
    told = {partition: found.of(partition, ["previous.rows"]) for partition in rows}
    assert told == {number: None if count is None else {"previous.rows": count} for number, count in rows.items()}
    assert not lacking or found.lacking == lacking


def test_a_partition_with_all_facts_has_every_figure():
    found = earlier_figures([two(4, 0), two(8, 0), two(6, 0)], 2).of(0, NAMES)
    assert found == {
        **{"previous.rows": 4, "previous.mean_rows": 6, "previous.min_rows": 4, "previous.max_rows": 8},
        **{"previous.bytes": 40, "previous.mean_bytes": 60, "previous.min_bytes": 40, "previous.max_bytes": 80},
        **{"previous.seconds": 2, "previous.mean_seconds": 3, "previous.min_seconds": 2, "previous.max_seconds": 4},
    }


def test_a_fact_that_is_not_on_record_comes_from_the_interval_before():
    adopted = earlier_figures([two(4, 5, seconds=None), two(8, 9)], 2)
    assert adopted.of(0, ["previous.rows", "previous.seconds"]) == {"previous.rows": 4, "previous.seconds": 4}
    released = earlier_figures([two(4, 5, state=RELEASED)], 2)
    assert released.of(0, ["previous.rows"]) == {"previous.rows": 4}
    assert released.of(0, ["previous.rows", "previous.bytes"]) is None, "its record lists no files any more"


@st.composite
def histories(draw: st.DrawFn) -> list[list[PartitionRecord]]:
    """Intervals of a stage that is cut into two or three, some of them not whole."""
    made = []
    for _ in range(draw(st.integers(0, 7))):
        there = draw(st.sets(st.integers(0, 2), max_size=3))
        made.append(
            [
                one(
                    number,
                    draw(st.integers(0, 10**6)),
                    state=draw(st.sampled_from(PartitionState)),
                    seconds=draw(st.none() | st.integers(0, 1000).map(lambda some: some / 8)),
                    bytes=draw(st.integers(0, 2**50)),
                )
                for number in sorted(there)
            ]
        )
    return made


QUERY = """\
with counted as (
    select *, count(*) over whole as partitions, max(partition) over whole as highest from records
    window whole as (partition by night)
), counting as (select * from counted where partitions = ? and highest = ? - 1 and state in ('consumable', 'released'))
select partition, {figures} from counting group by partition
"""
SQL = {
    "": "arg_min({0}, night) filter (where {0} is not null)",
    "mean_": "avg({0})",
    "min_": "min({0})",
    "max_": "max({0})",
}
OTHERS = {"state": pa.string(), "seconds": pa.float64()}


def duckdb_says(intervals: Sequence[Sequence[PartitionRecord]], partitions: int) -> dict[int, dict[str, float]]:
    """``night`` grows from the newest to the oldest."""
    rows = [
        {
            "night": night,
            "partition": each.partition,
            "state": str(each.state),
            "rows": each.rows,
            "bytes": None if each.state is RELEASED else each.bytes,
            "seconds": each.seconds,
        }
        for night, records in enumerate(intervals)
        for each in records
    ]
    schema = pa.schema({**dict.fromkeys(("night", "partition", "rows", "bytes"), pa.int64()), **OTHERS})
    figures = {f"previous.{word}{name}": sql.format(name) for word, sql in SQL.items() for name in MEASURES}
    query = QUERY.format(figures=", ".join(figures.values()))
    with duckdb.connect() as connection:
        connection.register("records", pa.Table.from_pylist(rows, schema))
        found = connection.execute(query, [partitions, partitions]).fetchall()
    return {
        partition: {name: value for name, value in zip(figures, values, strict=True) if value is not None}
        for partition, *values in found
    }


@settings(deadline=None, max_examples=150)
@given(histories(), st.integers(1, 3))
def test_random_histories_have_the_figures_that_duckdb_finds(intervals, partitions):
    found, expected = earlier_figures(intervals, partitions), duckdb_says(intervals, partitions)
    for partition in range(partitions):
        known: Mapping[str, float] = found.known.get(partition, {})
        assert known == pytest.approx(expected.get(partition, {}), rel=1e-12)


@pytest.mark.parametrize(
    ("text", "names", "rewritten"),
    [
        ("previous.rows", ("previous.rows",), "previous$rows"),
        ("0.8*previous.rows", ("previous.rows",), "0.8*previous$rows"),
        ("previous.rows-previous.bytes/2", ("previous.rows", "previous.bytes"), "previous$rows-previous$bytes/2"),
        ("(previous.nothing)", ("previous.nothing",), "(previous$nothing)"),
        ("previous.rows.mean", ("previous.rows.mean",), "previous$rows.mean"),
        ("previous.", ("previous.",), "previous$"),
        ("previous_rows + previous", (), None),
        ("the_previous.rows", (), None),
    ],
)
def test_names_of_figures_become_names_that_great_expectations_can_read(text, names, rewritten):
    arguments = {"column": "previous.rows", "min_value": {"$PARAMETER": text}, "max_value": 3}
    assert figures_named(arguments).get("min_value", ()) == names
    assert as_identifiers(arguments) == {**arguments, "min_value": {"$PARAMETER": rewritten or text}}


def test_an_argument_that_is_no_text_names_no_figure():
    assert figures_named({"a": {"$PARAMETER": 3}, "b": [{"$PARAMETER": "previous.rows"}], "c": None}) == {}


def test_figures_are_shown_with_few_digits():
    assert in_words({"previous.rows": 25, "previous.mean_rows": 24.0, "previous.seconds": 1.23456}) == (
        "previous.rows is 25 and previous.mean_rows is 24 and previous.seconds is 1.235"
    )
    assert EarlierFigures().of(0, ()) == {}
