"""The sample pipeline's answer, computed by DuckDB straight from the source files: the independent judge."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

TopOrder = tuple[int, Decimal, date, int]

SHIPPING_PRIORITY = """
    SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
    FROM read_parquet(?) AS customer
    JOIN read_parquet(?) AS orders ON c_custkey = o_custkey
    JOIN read_parquet(?) AS lineitem ON l_orderkey = o_orderkey
    WHERE c_mktsegment = 'BUILDING' AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
    GROUP BY l_orderkey, o_orderdate, o_shippriority
    ORDER BY revenue DESC, o_orderdate, l_orderkey
    LIMIT 10
"""


def expected_top_orders(lake: Path) -> list[TopOrder]:
    """Rows of ``marts.top_orders``, columns and rows in order: l_orderkey, revenue, o_orderdate, o_shippriority."""
    import duckdb

    files = [str(lake / "raw" / table / "*.parquet") for table in ("customer", "orders", "lineitem")]
    with duckdb.connect() as connection:
        return connection.execute(SHIPPING_PRIORITY, files).fetchall()
