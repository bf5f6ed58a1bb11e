"""TPC-H tables for the sample pipeline, made offline by tpchgen-cli."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from stagehold.errors import ToolMissing

TABLES = ("customer", "orders", "lineitem")
PARTS = 16
TOOL = "tpchgen-cli"


def make_sample(lake: Path, scale: float) -> None:
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
    _generate(raw, scale)
    stamp.write_text(wanted)


def _generate(raw: Path, scale: float) -> None:
    command = [
        _tool(),
        "parquet",
        f"--scale-factor={scale}",
        f"--output-dir={raw}",
        f"--tables={','.join(TABLES)}",
        f"--parts={PARTS}",
        "--quiet",
    ]
    subprocess.run(command, check=True)


def _tool() -> str:
    """The one installed beside this Python, which may not be on PATH, else any."""
    found = shutil.which(TOOL, path=str(Path(sys.executable).parent)) or shutil.which(TOOL)
    if found is None:
        raise ToolMissing(TOOL, "make the sample data", "make demo")
    return found
