"""How large the lake grows over many nights of the sample, and what each night costs.

    python bench/nights.py [NIGHTS] [SCALE]

Every night is a run for an interval of its own, with `checkpoint: {retained: 3}`; one `stagehold gc` follows the last.
The sources do not count: they are the user's. Prints a line for every tenth night, writes results/nights.json, and ends
with 1 if the lake is more than 4 times as large as after the first night. The defaults are 100 nights and scale 1.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
import time
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import yaml

from stagehold.local.demo.sample import make_sample
from stagehold.run.clearing.garbage_collector import collect_garbage
from stagehold.run.here.local_run import run_locally
from stagehold.run.planning.planning import RunRequest
from stagehold.settings import Settings, load_settings
from stagehold.spark.server.server import spark_server
from stagehold.spec.loading.loader import find_pipeline

RESULTS = Path(__file__).parent / "results" / "nights.json"
PIPELINE = "shipping_priority"
FIRST = date(2026, 1, 1)
MOST = 4.0


def main() -> int:
    nights, scale = (
        (int(sys.argv[1]) if len(sys.argv) > 1 else 100),
        (float(sys.argv[2]) if len(sys.argv) > 2 else 1.0),
    )
    with tempfile.TemporaryDirectory() as folder:
        settings = replace(load_settings(), home=f"{folder}/home", spark_port=15114, pipelines=_pipelines(Path(folder)))
        make_sample(Path(settings.lake_uri), scale)
        with spark_server(settings):
            measured = [_night(settings, FIRST + timedelta(days=number)) for number in range(nights)]
        pipelines = [find_pipeline(PIPELINE, settings)]
        collected = collect_garbage(pipelines, datetime.now(UTC), settings, _quiet, dry_run=False)
        sizes = {**_sizes(settings), "freed by gc": collected.bytes}
    ratio = measured[-1]["bytes"] / measured[0]["bytes"]
    print(f"after {nights} nights the lake is {ratio:.2f} times as large as after the first; after gc: {sizes}")
    _write(scale, measured, ratio, sizes)
    return 0 if ratio <= MOST else 1


def _pipelines(folder: Path) -> str:
    (folder / "pipelines").mkdir()
    declared = yaml.safe_load((Path(load_settings().pipelines) / f"{PIPELINE}.yaml").read_text())
    del declared["wave"]  # the sample's own waves are short, so that the demo can fail half-way
    declared["checkpoint"] = {"retained": 3}
    (folder / "pipelines" / f"{PIPELINE}.yaml").write_text(yaml.safe_dump(declared))
    return f"{folder}/pipelines"


def _night(settings: Settings, day: date) -> dict[str, float]:
    pipeline, started = find_pipeline(PIPELINE, settings), time.perf_counter()
    run_locally(RunRequest(pipeline, f"night/{day}", str(day), dict(pipeline.params)), settings, _quiet)
    seconds = round(time.perf_counter() - started, 2)
    found = {"seconds": seconds, "bytes": sum(_sizes(settings).values()), "files": _files(settings)}
    if day.day % 10 == 0 or day == FIRST:
        print(f"{day}: {found}", flush=True)
    return found


def _sizes(settings: Settings) -> dict[str, int]:
    """Bytes of each folder of the lake but the sources."""
    lake = Path(settings.lake_uri)
    folders = [folder for folder in lake.iterdir() if folder.name != "raw"]
    return {one.name: sum(file.stat().st_size for file in one.rglob("*") if file.is_file()) for one in folders}


def _files(settings: Settings) -> int:
    return sum(file.is_file() for file in Path(settings.lake_uri).rglob("*"))


def _quiet(line: str) -> None:
    """Progress is for people."""


def _write(scale: float, measured: list[dict[str, float]], ratio: float, sizes: dict[str, int]) -> None:
    facts = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": platform.platform(),
        "cores": os.cpu_count(),
        "scale": scale,
        "times as large as after the first night": round(ratio, 2),
        "bytes after gc": sizes,
        "nights": measured,
    }
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(facts, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
