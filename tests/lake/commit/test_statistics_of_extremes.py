"""Whatever values a file has: its statistics are said, or left out, and no range leaves a row outside."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagehold.lake.commit.staged_committer import delta_statistics
from stagehold.lake.store.footers import read_footer

EPOCH, DAY = datetime(1970, 1, 1, tzinfo=UTC), timedelta(days=1)


def around(*edges: int, bits: int) -> st.SearchStrategy[int]:
    """Whole numbers of so many bits, more often near these and near the ends."""
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    near = st.sampled_from((low, -1, 0, high, *edges)).flatmap(lambda edge: st.integers(edge - 2, edge + 2))
    return st.one_of(near, st.integers(low, high)).map(lambda value: min(max(value, low), high))


def days(text: str) -> int:
    return (date.fromisoformat(text) - EPOCH.date()) // DAY


def micros(text: str) -> int:
    return (datetime.fromisoformat(text.removesuffix("Z") + "+00:00") - EPOCH) // timedelta(microseconds=1)


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    digits = 10**precision - 1
    numbers = st.one_of(st.sampled_from((-digits, -1, 0, 1, digits)), st.integers(-digits, digits))
    return numbers.map(lambda number: Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale)))


YEAR_1, YEAR_10000 = days("0001-01-01"), days("9999-12-31") + 1
MOMENTS = around(YEAR_1 * 86_400_000_000, YEAR_10000 * 86_400_000_000, YEAR_10000 * 86_400_000_000 - 500, bits=64)
TEXTS = st.one_of(st.text(max_size=40), st.just("z" * 70))
FLOATS = st.floats(width=32)


def same(value: Any) -> Any:
    return value


# type: values as they are stored, and what a value in the log is in the same terms
KINDS: dict[pa.DataType, tuple[st.SearchStrategy[Any], Callable[[Any], Any]]] = {
    pa.bool_(): (st.booleans(), same),
    pa.int8(): (around(bits=8), same),
    pa.int16(): (around(bits=16), same),
    pa.int32(): (around(bits=32), same),
    pa.int64(): (around(bits=64), same),
    pa.float32(): (FLOATS, same),
    pa.float64(): (st.floats(), same),
    pa.decimal128(5, 2): (decimals(5, 2), lambda number: Decimal(repr(number))),
    pa.decimal128(15, 0): (decimals(15, 0), lambda number: Decimal(repr(number))),
    pa.decimal128(38, 0): (decimals(38, 0), lambda number: Decimal(repr(number))),
    pa.decimal128(38, 38): (decimals(38, 38), lambda number: Decimal(repr(number))),
    pa.string(): (TEXTS, same),
    pa.binary(): (st.binary(max_size=40), same),
    pa.date32(): (around(YEAR_1, YEAR_10000, bits=32), days),
    pa.timestamp("us", tz="UTC"): (MOMENTS, micros),
    pa.timestamp("us"): (MOMENTS, micros),
    pa.list_(pa.int64()): (st.lists(around(bits=64), max_size=3), same),
    pa.struct([("a", pa.float64())]): (st.fixed_dictionaries({"a": st.floats()}), same),
}


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_statistics_are_said_or_left_out_and_no_value_is_outside_its_range(kind: pa.DataType, tmp_path: Path) -> None:
    strategy, in_the_log = KINDS[kind]

    @given(values=st.lists(st.one_of(st.none(), strategy), min_size=1, max_size=8))
    def holds(values: list[Any]) -> None:
        name = f"{uuid4().hex}.parquet"
        stored = (
            pa.array(values, pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)
            if _counted(kind)
            else (pa.array(values, kind))
        )
        pq.write_table(pa.table({"it": stored}), tmp_path / name, row_group_size=3)
        told = json.loads(delta_statistics(read_footer(str(tmp_path), name)))
        (tmp_path / name).unlink()
        assert told["numRecords"] == len(values)
        assert told["nullCount"].get("it", values.count(None)) == values.count(None)
        if "it" in told["minValues"]:
            low, high = in_the_log(told["minValues"]["it"]), in_the_log(told["maxValues"]["it"])
            assert all(low <= value <= high for value in values if value is not None)

    holds()


def _counted(kind: pa.DataType) -> bool:
    """Days and moments are made from their numbers: Python cannot say all of them."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))
