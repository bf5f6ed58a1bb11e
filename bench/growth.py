"""How what a run costs grows with the number of partitions, at the same rows: the sample cut into 16 to 4,096.

Of each number: a first run from a cold start, a second run for another interval, a run that reuses everything, and a
plan, all from `exec` of Python to its end and without a server before; then the bytes of the ledger, of its chronicle
in the lake and of Delta's logs, and the peak memory of Spark's server and of the commands.
``python bench/growth.py [--before TREE] [--counts 16 64 256 1024 4096] [--scale 0.2] [--pairs 1] [--wave 30s]``
writes results/growth.json. With other code to compare with, each number is measured with both, in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import sqlite3
import statistics
import sys
import tempfile
from contextlib import closing, suppress
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "include"), str(HERE.parent), str(HERE)]

import pyarrow as pa  # type: ignore[import-untyped]  # noqa: E402
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # noqa: E402
from start import Tree, succeeded  # noqa: E402

from stagehold.chronicle.chronicle import FOLDER  # noqa: E402
from stagehold.local.demo.sample import TABLES, make_sample  # noqa: E402
from stagehold.settings import PROJECT  # noqa: E402

RESULTS = HERE / "results" / "growth.json"
COUNTS = (16, 64, 256, 1024, 4096)
TIMED = ("first", "second", "reuse", "plan")
WAVES = "SELECT count(*) FROM (SELECT DISTINCT interval, stage, attempt_id, wave FROM partitions WHERE interval = ?)"
ANSWERS = "SELECT DISTINCT fingerprint FROM partitions WHERE stage LIKE '%top_orders'"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, help="a checkout of the code to compare with")
    parser.add_argument("--counts", type=int, nargs="+", default=COUNTS)
    parser.add_argument("--scale", type=float, default=0.2)
    parser.add_argument("--pairs", type=int, default=1)
    parser.add_argument("--wave", default="30s")
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    code = {"now": PROJECT, **({"before": asked.before.absolute()} if asked.before else {})}
    measured: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with get_context("spawn").Pool(1) as pool:  # commands begin with as much memory as this process has
            pool.apply(make_sample, (folder / "sample", asked.scale))
            for count in asked.counts:
                pool.apply(cut, (folder / "sample" / "raw", folder / f"raw-{count}", count))
        for pair in range(asked.pairs):
            for count in asked.counts:
                for name in sorted(code, reverse=bool(pair % 2)):
                    tree = Tree(code[name], folder / f"{name}-{count}-{pair}")
                    tree.prepare(folder / f"raw-{count}", asked.wave, count)
                    measured.append({"code": name, "partitions": count, **run(tree)})
                    print(json.dumps(measured[-1]), flush=True)
                    write(measured, vars(asked))
    answers = {answer for one in measured for answer in one["answers"]}  # type: ignore[attr-defined]
    assert len(answers) == 1, answers


def cut(raw: Path, into: Path, count: int) -> None:
    """The rows of each table in so many files of about the same size."""
    for table in TABLES:
        rows = pa.concat_tables(pq.read_table(file) for file in sorted((raw / table).glob("*.parquet")))
        (into / table).mkdir(parents=True)
        bounds = [rows.num_rows * place // count for place in range(count + 1)]
        for place in range(count):
            part = rows.slice(bounds[place], bounds[place + 1] - bounds[place])
            pq.write_table(part, into / table / f"part-{place:05}.parquet")


def run(tree: Tree) -> dict[str, object]:
    first, second = tree.interval(), tree.interval()
    found: dict[str, object] = {}
    peak = 0
    for name, interval, word in zip(TIMED, (first, second, second, second), ("run", "run", "run", "plan"), strict=True):
        tree.await_no_server()
        found[name] = round(succeeded(tree.run(interval, word)), 2)
        peak = max([peak, *map(peak_megabytes, tree.server())])
    tree.await_no_server()
    ledger = tree.home / "ledger.db"
    with closing(sqlite3.connect(ledger)) as connection:
        waves = [connection.execute(WAVES, [interval]).fetchone()[0] for interval in (first, second)]
        answers = sorted(row[0] for row in connection.execute(ANSWERS))
    lake = tree.home / "lake"
    logs = (file for file in lake.glob("**/_delta_log/*") if "raw" not in file.parts)
    return {
        **found,
        "waves": waves,
        "ledger_bytes": ledger.stat().st_size,
        "chronicle_bytes": sum(file.stat().st_size for file in lake.glob(f"{FOLDER}/**/*") if file.is_file()),
        "log_bytes": sum(file.stat().st_size for file in logs),
        "server_megabytes": peak,
        "command_megabytes": max(tree.peaks),
        "answers": answers,
    }


def peak_megabytes(pid: int) -> int:
    """Nothing, if it has ended meanwhile."""
    with suppress(OSError):
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
        return int(found[1]) // 1024 if found else 0
    return 0


def write(measured: list[dict[str, object]], asked: dict[str, object]) -> None:
    """Times as many as the fewest partitions take, as medians; and what this code takes of what the other took."""

    def middle(code: str, count: object, what: str) -> float:
        return statistics.median(
            float(str(one[what])) for one in measured if (one["code"], one["partitions"]) == (code, count)
        )

    have = sorted({(str(one["code"]), int(str(one["partitions"]))) for one in measured})
    fewest = min(count for _, count in have)
    growth = {
        f"{code}: {what}, {count} against {fewest}": middle(code, count, what) / middle(code, fewest, what)
        for code, count in have
        for what in (*TIMED, "ledger_bytes", "chronicle_bytes", "log_bytes")
        if count != fewest and (code, fewest) in have
    }
    against = {
        f"{what} of {count}, now against before": middle("now", count, what) / middle("before", count, what)
        for code, count in have
        for what in TIMED
        if code == "now" and ("before", count) in have
    }
    facts = {"machine": platform.platform(), "cores": os.cpu_count(), "at": datetime.now(UTC).isoformat()}
    facts |= {name: str(asked[name]) for name in ("scale", "wave")}
    ratios = {name: round(ratio, 3) for name, ratio in (growth | against).items()}
    results = Path(str(asked["results"]))
    results.write_text(json.dumps({**facts, "ratios": ratios, "measured": measured}, indent=1) + "\n")


if __name__ == "__main__":
    main()
