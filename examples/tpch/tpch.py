"""Makes the tables of TPC-H, and compares what the pipeline published with what DuckDB answers.

`python tpch.py data [--scale 0.05]` needs tpchgen-cli, `python tpch.py compare` what Stagehold is installed with.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
from deltalake import DeltaTable

HERE = Path(__file__).parent
LAKE = HERE / ".stagehold" / "lake"
TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
# What Spark says in another way than DuckDB.
IN_DUCKDB = {"to_date(o_orderdate)": "o_orderdate", "DOUBLE(sum(l_quantity))": "sum(l_quantity)::DOUBLE", '"': "'"}
NEAR = 1e-6  # averages of decimals have six digits in Spark, and are doubles in DuckDB

Answer = list[tuple[Any, ...]]


def make_data(lake: Path, scale: float) -> None:
    """Two files of each table, one of those that have a few rows."""
    command = ["tpchgen-cli", "parquet", f"--scale-factor={scale}", f"--output-dir={lake / 'raw'}", "--quiet"]
    subprocess.run([*command, f"--tables={','.join(TABLES)}", "--parts=2"], check=True)


def queries() -> tuple[str, ...]:
    return tuple(path.stem for path in sorted((HERE / "sql").glob("q*.sql")))


def differing(lake: Path) -> Iterator[str]:
    """The queries whose published rows are others than DuckDB's, in any order."""
    with duckdb.connect() as base:
        for table in TABLES:
            base.execute(f"CREATE VIEW {table} AS FROM read_parquet('{lake}/raw/{table}/*.parquet')")
        for query in queries():
            if not _alike(_published(lake, query), _answered(base, query)):
                yield query


def _published(lake: Path, query: str) -> Answer:
    rows = DeltaTable(f"{lake}/tpch/{query}").to_pyarrow_table().to_pylist()
    return [tuple(value for name, value in row.items() if not name.startswith("_")) for row in rows]


def _answered(base: duckdb.DuckDBPyConnection, query: str) -> Answer:
    text = (HERE / "sql" / f"{query}.sql").read_text()
    for spark, other in IN_DUCKDB.items():
        text = text.replace(spark, other)
    return base.execute(text).fetchall()


def _alike(found: Answer, wanted: Answer) -> bool:
    pairs = zip(sorted(found, key=_place), sorted(wanted, key=_place), strict=False)
    return len(found) == len(wanted) and all(_are_near(row, other) for row, other in pairs)


def _place(row: Iterable[Any]) -> str:
    return repr([round(float(value), 2) if _is_number(value) else str(value) for value in row])


def _are_near(row: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return len(row) == len(other) and all(
        abs(float(value) - float(there)) <= NEAR * max(1.0, abs(float(there)))
        if _is_number(value) and _is_number(there)
        else value == there
        for value, there in zip(row, other, strict=True)
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["data", "compare"])
    parser.add_argument("--scale", type=float, default=0.05)
    asked = parser.parse_args()
    if asked.what == "data":
        make_data(LAKE, asked.scale)
        return
    wrong = list(differing(LAKE))
    print(f"{len(queries()) - len(wrong)} of {len(queries())} queries are as DuckDB answers them")
    sys.exit(f"Different: {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main()
