"""The swap of the sample's sink, called as often and in such order as a killed coordinator and its successors may."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from sqlalchemy import create_engine, text
from tests.postgres import BACK_ENDS, own_schema, postgres_server

from stagehold import StageCheckpoint

__all__ = ["postgres_server"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("postgresql" not in BACK_ENDS, reason="this machine has no PostgreSQL"),
]


@pytest.fixture
def url(postgres_server, monkeypatch) -> Iterator[str]:
    with own_schema(postgres_server) as own:
        monkeypatch.setenv("EXPORT_URL", own)
        yield own


def stage(batch: str, *customers: int) -> None:
    """What the stage's function does with rows of a partition."""
    from jobs import export

    rows = [{"batch": batch, "custkey": customer, "spent": 10, "orders": 1} for customer in customers]
    with export.database() as connection:
        connection.execute(export.STAGE, rows)


def publish(number: int, *receipts: tuple[str, int], parallelism: int | None = None, day: str = "d") -> None:
    from jobs import export

    rows = pa.table({"batch": [batch for batch, _ in receipts], "rows": [count for _, count in receipts]})
    export.publish(
        StageCheckpoint(
            pipeline="sold",
            stage="exported",
            interval=day,
            run_id="r",
            number=number,
            partitions=tuple(range(len(receipts))),
            parallelism=parallelism or len(receipts),
            read=lambda: rows,
        )
    )


def read(url: str, table: str = "customer_totals") -> Sequence[tuple[str, int]]:
    engine = create_engine(url)
    with engine.connect() as connection:
        found = connection.execute(text(f"SELECT batch, custkey FROM {table} ORDER BY batch, custkey")).fetchall()
    engine.dispose()
    return [tuple(row) for row in found]


def test_it_may_be_called_again_and_staged_again(url):
    for _ in range(2):
        stage("a", 1, 2)
        stage("b", 3)
    for _ in range(3):
        publish(1, ("a", 2), ("b", 1))
        assert read(url) == [("a", 1), ("a", 2), ("b", 3)]
    assert read(url, "staged_totals") == []


def test_a_part_of_the_day_changes_nothing(url):
    stage("a", 1)
    publish(1, ("a", 1), parallelism=2)
    assert read(url) == []
    assert read(url, "staged_totals") == [("a", 1)]


def test_an_older_checkpoint_that_is_told_late_changes_nothing(url):
    stage("a", 1)
    publish(1, ("a", 1))
    stage("b", 1, 2)
    publish(2, ("b", 2))
    publish(1, ("a", 1))
    assert read(url) == [("b", 1), ("b", 2)]


def test_a_batch_that_nobody_staged_is_an_error_and_the_table_stays_as_it_is(url):
    stage("a", 1)
    publish(1, ("a", 1))
    with pytest.raises(LookupError, match="0 of 2 rows are staged"):
        publish(2, ("gone", 2))
    assert read(url) == [("a", 1)]
    stage("gone", 1, 2)
    publish(2, ("gone", 2))
    assert read(url) == [("gone", 1), ("gone", 2)]


def test_a_partition_without_rows_has_a_batch_without_rows(url):
    stage("a", 1)
    publish(1, ("a", 1), ("empty", 0))
    assert read(url) == [("a", 1)]


def test_days_do_not_touch_each_other(url):
    stage("a", 1)
    publish(1, ("a", 1), day="monday")
    stage("b", 1)
    publish(1, ("b", 1), day="tuesday")
    assert read(url) == [("a", 1), ("b", 1)]


def test_two_that_swap_at_once_leave_what_one_of_them_would(url):
    stage("a", *range(50))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: publish(number, ("a", 50)), (1, 2, 1, 2)))
    assert read(url) == [("a", customer) for customer in range(50)]
