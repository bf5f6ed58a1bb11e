"""Makes orders of a day, and compares what the pipeline published with what DuckDB answers.

`python sales.py data [--orders 2000000] [--day 2026-11-20]`, then `python sales.py compare [--before FOLDER]`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
from deltalake import DeltaTable

HERE = Path(__file__).parent
LAKE = HERE / ".stagehold" / "lake"
FILES = 8
DATA = """
COPY (
    SELECT n AS order_id, hash(n) % {customers} AS customer_id,
        ['north', 'south', 'east', 'west', 'centre'][(1 + hash(n, 1) % 5)::INT] AS region,
        'product ' || hash(n, 2) % 50 AS product_name, DATE '{day}' AS order_date,
        1 + hash(n, 3) % 9 AS quantity, (1 + hash(n, 4) % 99999)::DECIMAL(10, 2) / 100 AS unit_price
    FROM range({first}, {last}) AS rows(n)
) TO '{file}' (HEADER)
"""
READ = (
    "CREATE VIEW sales AS SELECT *, quantity * unit_price::DECIMAL(10, 2) AS total_amount "
    "FROM read_csv('{raw}/*.csv', types = {{'unit_price': 'DECIMAL(10, 2)'}})"
)
ORDERS = "SELECT *, count(order_id) OVER (PARTITION BY customer_id) AS customer_order_count FROM sales"
REGIONS = """
SELECT region, count(order_id) AS total_orders, sum(total_amount) AS total_sales,
    round(avg(total_amount)::DECIMAL(20, 6), 2) AS average_order_value, count(customer_id) AS unique_customers
FROM sales GROUP BY region
"""
TABLES = {"orders": ORDERS, "regions": REGIONS}


def make_data(lake: Path, day: str, orders: int) -> None:
    folder = lake / "raw" / "sales" / f"day={day}"
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(FILES):
        first, last = (place * orders // FILES for place in (number, number + 1))
        file = folder / f"part-{number}.csv"
        duckdb.execute(DATA.format(first=first, last=last, file=file, day=day, customers=max(orders // 20, 1)))


def differing(lake: Path, day: str, before: Path | None = None) -> Iterator[str]:
    """How many rows of a table are others than DuckDB's or, with ``before``, than those of the program before."""
    with duckdb.connect() as base:
        base.execute(READ.format(raw=lake / "raw" / "sales" / f"day={day}"))
        for table, query in TABLES.items():
            base.register("published", DeltaTable(f"{lake}/marts/{table}").to_pyarrow_table())
            columns = ", ".join(name for name in _columns(base, query))
            now = f"SELECT {_rounded(base, query)} FROM published WHERE _interval = '{day}'"
            wanted = f"SELECT {columns} FROM read_parquet('{before}/{table}/day={day}/*.parquet')" if before else query
            then = f"SELECT {_rounded(base, query)} FROM ({wanted})"
            count = f"SELECT count(*) FROM (({now} EXCEPT ALL {then}) UNION ALL ({then} EXCEPT ALL {now}))"
            ((others,),) = base.execute(count).fetchall()
            if others:
                yield f"{table}: {others} rows"


def _columns(base: duckdb.DuckDBPyConnection, query: str) -> list[str]:
    return [column[0] for column in base.execute(f"DESCRIBE {query}").fetchall()]


def _rounded(base: duckdb.DuckDBPyConnection, query: str) -> str:
    """The columns, amounts to the cent: the program before adds doubles."""
    amounts = ("unit_price", "total_amount", "total_sales", "average_order_value")
    return ", ".join(
        f"round({name}::DECIMAL(30, 6), 2)::DECIMAL(30, 2)" if name in amounts else f"{name}"
        for name in _columns(base, query)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["data", "compare"])
    parser.add_argument("--day", default="2026-11-20")
    parser.add_argument("--orders", type=int, default=2_000_000)
    parser.add_argument("--before", type=Path)
    asked = parser.parse_args()
    if asked.what == "data":
        make_data(LAKE, asked.day, asked.orders)
        return
    wrong = list(differing(LAKE, asked.day, asked.before))
    other = "the program before" if asked.before else "DuckDB"
    print(f"{len(TABLES) - len(wrong)} of {len(TABLES)} tables are as {other} has them")
    sys.exit(f"Different: {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main()
