"""What stands in for values that nobody may read in a repository."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from stagehold.errors import InvalidArgument
from stagehold.run.here.masking import KEY, Masking

MASKING = Masking(b"a key")


def masked(kind: pa.DataType, *values: object) -> list[object]:
    table = pa.table({"n": pa.array([1] * len(values)), "c": pa.array(values, kind)})
    found = MASKING.masked(table, ["c"])
    assert found.schema == table.schema
    assert found.column("n") == table.column("n")
    return found.column("c").to_pylist()


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.string(), ["ann@example.org", "bob", ""]),
        (pa.large_string(), ["ann", "ünï", "'"]),
        (pa.binary(), [b"a", b"b", b"\x00"]),
        (pa.int32(), [1, -7, 2**31 - 1]),
        (pa.int64(), [1, -(2**62), 0]),
        (pa.decimal128(10, 2), [Decimal("12345678.90"), Decimal("-99999999.99"), Decimal("0.01")]),
        (pa.float64(), [1.5, -2.25, 1e300]),
        (pa.date32(), [date(2026, 11, 20), date(1970, 1, 1), date(2026, 2, 28)]),
        (pa.timestamp("us", "UTC"), [datetime(2026, 11, 20, 5, tzinfo=UTC), datetime(2024, 2, 29, tzinfo=UTC)]),
    ],
)
def test_values_of_each_type_are_replaced_and_fit_into_their_column(kind, values):
    found = masked(kind, *values, None, values[0])
    assert found[-2] is None
    assert found[-1] == found[0]
    assert not {*values} & {*found}
    assert len({*found}) == len(values) + 1  # with NULL


def test_equal_values_of_columns_that_join_are_masked_alike():
    assert masked(pa.int32(), 17) == masked(pa.int64(), 17)
    assert masked(pa.string(), "ann") == masked(pa.large_string(), "ann")
    day, moment = masked(pa.date32(), date(2026, 11, 20)), masked(pa.timestamp("us"), datetime(2026, 11, 20, 5, 30))
    assert moment == [datetime.combine(day[0], datetime(1, 1, 1, 5, 30).time())]


def test_numbers_that_are_none_stay_and_their_neighbours_are_masked():
    nan, infinite, one = masked(pa.float64(), float("nan"), float("inf"), 1.25)
    assert (str(nan), str(infinite)) == ("nan", "inf")
    assert one != 1.25


@pytest.mark.parametrize("kind", [pa.bool_(), pa.int8(), pa.list_(pa.string())])
def test_a_type_that_nothing_stands_in_for_is_refused_with_its_column(kind):
    with pytest.raises(InvalidArgument, match=r"--mask is .c, of the type .*; allowed: columns of text"):
        masked(kind, None)


def test_a_home_has_one_key_that_only_its_owner_reads_and_another_home_another(tmp_path):
    first, again = Masking.of_home(tmp_path / "home"), Masking.of_home(tmp_path / "home")
    assert first == again
    assert first != Masking.of_home(tmp_path / "other")
    assert (tmp_path / "home" / KEY).stat().st_mode & 0o777 == 0o600
