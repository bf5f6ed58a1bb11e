"""TPC-H tables for the sample pipelines, made offline by tpchgen-cli, in a folder or in a bucket.

`python -m stagehold.local.demo.sample 2026-11-01` brings the orders of one day more.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

from stagehold.errors import ToolMissing
from stagehold.extras import Extra, brought_by
from stagehold.lake.store.files import Files, files_at
from stagehold.lake.store.location import OBJECT_STORE
from stagehold.settings import load_settings

TABLES = ("customer", "orders", "lineitem")
PARTS = 16
TOOL = "tpchgen-cli"
SCALE = 0.05  # if nobody says otherwise
RAW, ORDERS = "raw", "raw/orders"


def make_sample(lake: Path, scale: float, tool: str = TOOL) -> None:
    """Write ``PARTS`` Parquet files per table under ``lake``/raw, unless that scale is there already.

    The stamp is removed first and written last, so an interrupted call is repeated in full by the next one. Files of
    another scale are replaced.
    """
    raw = lake / "raw"
    stamp = raw / "_sample"
    wanted = f"tpch scale {scale} in {PARTS} parts\n"
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    raw.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    for table in TABLES:
        shutil.rmtree(raw / table, ignore_errors=True)
    _generate(raw, scale, tool)
    stamp.write_text(wanted)


def bring_day(lake: Path, day: date) -> Path:
    """Write the orders of ``day`` where the pipeline `customer_totals` looks for them, and give that file: those of the
    same day in 1995, from the tables that `make_sample` wrote.
    """
    with brought_by(Extra.INSPECT):
        import duckdb

    place = lake / "raw" / "daily_orders" / f"{day}.parquet"
    place.parent.mkdir(parents=True, exist_ok=True)
    same = f"make_date(1995, {day.month}, {min(day.day, 28) if day.month == 2 else day.day})"
    orders = f"SELECT * FROM read_parquet('{lake}/raw/orders/*.parquet') WHERE o_orderdate = {same} ORDER BY o_orderkey"
    duckdb.execute(f"COPY ({orders}) TO '{place}.part' (FORMAT parquet)")
    return Path(f"{place}.part").rename(place)


def lay_sample(lake: str) -> None:
    """See that the tables are in the lake; those of whatever scale are left as they are."""
    files = files_at(lake)
    if "_sample" in files_at(f"{lake}/{RAW}").names():
        return
    if not lake.startswith(OBJECT_STORE):
        return make_sample(Path(lake), SCALE)
    with TemporaryDirectory() as folder:
        make_sample(Path(folder), SCALE)
        for table in TABLES:
            files.delete(f"{RAW}/{table}")
            _send(Path(folder), f"{RAW}/{table}/*.parquet", files)
        _send(Path(folder), f"{RAW}/_sample", files)
    return None


def lay_day(lake: str, day: date) -> str:
    """The same of `bring_day`; gives the place of the file."""
    if not lake.startswith(OBJECT_STORE):
        return str(bring_day(Path(lake), day))
    files = files_at(lake)
    with TemporaryDirectory() as folder:
        (Path(folder) / ORDERS).mkdir(parents=True)
        for name in files.sizes(ORDERS):
            (Path(folder) / name).write_bytes(files.read(name))
        brought = bring_day(Path(folder), day).relative_to(folder)
        files.remove([str(brought)])
        _send(Path(folder), str(brought), files)
    return f"{lake}/{brought}"


def _send(folder: Path, pattern: str, files: Files) -> None:
    for file in sorted(folder.glob(pattern)):
        files.create(str(file.relative_to(folder)), file.read_bytes())


def _generate(raw: Path, scale: float, tool: str) -> None:
    command = [
        _path_of(tool),
        "parquet",
        f"--scale-factor={scale}",
        f"--output-dir={raw}",
        f"--tables={','.join(TABLES)}",
        f"--parts={PARTS}",
        "--quiet",
    ]
    subprocess.run(command, check=True)


def _path_of(tool: str) -> str:
    """The tool that is installed beside this Python, which may not be on PATH, else any of that name."""
    found = shutil.which(tool, path=str(Path(sys.executable).parent)) or shutil.which(tool)
    if found is None:
        raise ToolMissing(tool, "make the sample data", "make demo")
    return found


if __name__ == "__main__":
    lake = load_settings().lake_uri.rstrip("/")
    lay_sample(lake)
    for each in sys.argv[1:]:
        print(lay_day(lake, date.fromisoformat(each)))
