"""Whether the api-server's memory grows while people look at a run of 100,024 partitions and at a long backfill.

    python bench/soak.py [--minutes 120] [--users 5] [--think 10] [--seed 1]

Airflow's own app serves them from a process of its own, over HTTP. Each user asks for a page, thinks, and asks for the
next one: the overview, the tab of a pipeline, the page of the large run, what a resume of it would do, and the plan of
a backfill of 400 intervals and 100,000 cells. Meanwhile partitions of the large run are recorded, so that nothing that
is kept holds for long. Every 10 s the server's memory, its processor time and what its `/health` says are written
to results/soak.jsonl, as they are found; at the end the summary is written to results/soak.json and the memory is drawn
in docs/images/soak.svg. It ends with 1 if a request failed, or if the memory has grown in the second half: the median
of its second part is more than 5 % above that of its first.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "include"), str(HERE.parent)]

import httpx  # noqa: E402
from pages import DAYS, FIRST, FIRST_DAY, LONG, NIGHTS, OF_LONG, OF_WIDE, SMALL, WIDE, record_days  # noqa: E402
from worlds.half_done_runs import LAST as LAST_STAGE  # noqa: E402
from worlds.half_done_runs import airflow_server, data_is_there, make_runs, prepare, token  # noqa: E402
from worlds.results import write_results  # noqa: E402

RAW, RESULTS = HERE / "results" / "soak.jsonl", HERE / "results" / "soak.json"
CHART = HERE.parent / "docs" / "images" / "soak.svg"
PIPELINES = 20
SAMPLE_SECONDS, WRITE_SECONDS = 10.0, 30.0
GROWTH = 1.05
MEGABYTE = 2**20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--users", type=int, default=5)
    parser.add_argument("--think", type=float, default=10, help="seconds between two requests of a user, on average")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--serve", type=Path, help="make the world in this folder and serve it until stdin ends")
    options = parser.parse_args()
    if options.serve:
        _serve(options.serve)
        return 0
    before = os.getloadavg()
    with tempfile.TemporaryDirectory() as folder, _server(Path(folder)) as (pid, world):
        samples, asked = _soak(pid, world, options)
    told = _summary(samples)
    facts = {"minutes": options.minutes, "users": options.users, "think": options.think, "seed": options.seed}
    requests = {"seconds": asked.seconds, "failures": asked.failures}
    write_results(RESULTS, before, **facts, raw=RAW.name, **told, requests=requests)
    CHART.write_text(_chart(samples))
    print(json.dumps({**told, "requests": {name: len(took) for name, took in asked.seconds.items()}}, indent=1))
    return 0 if told["kept"] and not asked.failures else 1


def _serve(folder: Path) -> None:
    """Prints the address, a user's token and the large run's address, when all is there."""
    small = [f"p{number:04}" for number in range(PIPELINES)]
    sizes = {**dict.fromkeys(small, SMALL), WIDE: OF_WIDE, LONG: OF_LONG}
    prepare(folder, sizes, schedules={LONG: "@daily"})
    runs = make_runs({name: size for name, size in sizes.items() if name in (FIRST, WIDE, LONG)})
    for name in small:
        record_days(name, NIGHTS, FIRST)
    record_days(LONG, DAYS // 2, LONG)
    with data_is_there(), airflow_server() as url:
        print(json.dumps({"url": url, "token": token(), "run": runs[WIDE].url}), flush=True)
        writing = threading.Event()
        writer = threading.Thread(target=_write_on, args=(writing,))
        writer.start()
        sys.stdin.read()
        writing.set()
        writer.join()


def _write_on(ended: threading.Event) -> None:
    """As an attempt does that goes on: every now and then a partition of the last stage is recorded."""
    from stagehold.ledger.ledger import Ledger
    from stagehold.settings import load_settings

    with Ledger.open(load_settings().ledger_url) as ledger:
        known = ledger.partitions.newest_of(WIDE, "bench")[LAST_STAGE]
        lease = ledger.leases.acquire(f"{WIDE}/bench/{LAST_STAGE}", "bench", 60)
        ledger.leases.release(lease)  # so that nobody is told to wait for its holder
        number = 0
        while not ended.wait(WRITE_SECONDS):
            ledger.partitions.record([replace(known[number % len(known)], epoch=lease.epoch)], lease)
            number += 1


@contextmanager
def _server(folder: Path) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Its process, and where it answers."""
    command = [sys.executable, __file__, "--serve", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        told = next(json.loads(line) for line in process.stdout if line.startswith('{"url"'))
        threading.Thread(target=process.stdout.read, daemon=True).start()  # what Airflow logs is nobody's
        try:
            yield process.pid, told
        finally:
            process.communicate()


@dataclass
class Asked:
    """How long each kind of request took, and what went wrong."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    failures: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, name: str, seconds: float, failure: str | None) -> None:
        with self.lock:
            self.seconds.setdefault(name, []).append(round(seconds, 3))
            if failure:
                self.failures[f"{name}: {failure}"] += 1


def _soak(pid: int, world: Mapping[str, str], options: argparse.Namespace) -> tuple[list[dict[str, Any]], Asked]:
    asked, ended = Asked(), threading.Event()
    chances = [random.Random(options.seed * 1_000 + number) for number in range(options.users)]
    users = [threading.Thread(target=_use, args=(world, chance, options.think, asked, ended)) for chance in chances]
    for user in users:
        user.start()
    samples = list(_sampled(pid, world, options.minutes * 60))
    ended.set()
    for user in users:
        user.join()
    return samples, asked


def _use(world: Mapping[str, str], chance: random.Random, think: float, asked: Asked, ended: threading.Event) -> None:
    """One user, who knows what he was shown last and sends its ETag, as a browser does."""
    with _client(world) as client:
        etags: dict[str, str] = {}
        while not ended.wait(chance.expovariate(1 / think)):
            name, path, body = _wish(world["run"], chance)
            began, failure = time.perf_counter(), None
            try:
                known = {"If-None-Match": etags[path]} if path in etags else {}
                answer = client.post(path, json=body) if body else client.get(path, headers=known)
                failure = str(answer.status_code) if answer.status_code >= 400 else None
                if tag := answer.headers.get("etag"):
                    etags[path] = tag
            except httpx.HTTPError as error:
                failure = type(error).__name__
            asked.add(name, time.perf_counter() - began, failure)


def _wish(run: str, chance: random.Random) -> tuple[str, str, Mapping[str, Any] | None]:
    """A page, and how often somebody asks for it."""
    pipeline = f"/stagehold/api/dags/p{chance.randrange(PIPELINES):04}"
    last = FIRST_DAY + timedelta(DAYS - 1)
    wishes = (
        (6, "overview", f"/stagehold/api/overview?limit=50&offset={chance.choice((0, 10))}", None),
        (4, "intervals", f"{pipeline}/intervals", None),
        (2, "history", f"{pipeline}/history", None),
        (2, "stale", f"{pipeline}/stale", None),
        (8, "large run: grid", f"{run}/grid", None),
        (3, "large run: gates", f"{run}/gates", None),
        (3, "large run: timeline", f"{run}/timeline", None),
        (1, "large run: dry run", f"{run}/resume", {"dry_run": True}),
        (1, "backfill", f"/stagehold/api/dags/{LONG}/backfill?first={FIRST_DAY}&last={last}", None),
    )
    (_, *wish), *_ = chance.choices(wishes, [weight for weight, *_ in wishes])
    return wish[0], wish[1], wish[2]


def _client(world: Mapping[str, str]) -> httpx.Client:
    return httpx.Client(base_url=world["url"], headers={"Authorization": f"Bearer {world['token']}"}, timeout=600)


def _sampled(pid: int, world: Mapping[str, str], seconds: float) -> Iterator[dict[str, Any]]:
    """Each sample is on disk before the next one is taken."""
    began = time.monotonic()
    RAW.parent.mkdir(parents=True, exist_ok=True)
    with _client(world) as client, RAW.open("w") as raw:
        while (at := time.monotonic() - began) < seconds:
            kept = client.get("/stagehold/api/health").json()
            sample = {
                "seconds": round(at, 1),
                "resident_megabytes": round(_resident_bytes(pid) / MEGABYTE, 1),
                "processor_seconds": _processor_seconds(pid),
                "kept_megabytes": round(kept["kept_bytes"] / MEGABYTE, 1),
                "kept": {one["kind"]: round(one["bytes"] / MEGABYTE, 2) for one in kept["kept"]},
            }
            raw.write(json.dumps(sample) + "\n")
            raw.flush()
            yield sample
            time.sleep(max(0.0, SAMPLE_SECONDS - (time.monotonic() - began - at)))


def _resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _processor_seconds(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _summary(samples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    memory = [sample["resident_megabytes"] for sample in samples]
    first, second = _halves(memory)
    third, fourth = _halves(second)
    medians = {"second_half_first_part": statistics.median(third), "second_half_second_part": statistics.median(fourth)}
    return {
        "ran_minutes": round(samples[-1]["seconds"] / 60, 1),
        "cores_used": round(
            (samples[-1]["processor_seconds"] - samples[0]["processor_seconds"]) / max(samples[-1]["seconds"], 1), 2
        ),
        "resident_megabytes": {
            "first_half": {"median": statistics.median(first), "most": max(first)},
            "second_half": {"median": statistics.median(second), "most": max(second)},
            **medians,
        },
        "most_kept_megabytes": max(sample["kept_megabytes"] for sample in samples),
        "kept": medians["second_half_second_part"] <= GROWTH * medians["second_half_first_part"],
    }


def _halves(memory: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    """The first and the second half."""
    half = max(1, len(memory) // 2)
    return memory[:half], memory[half:] or memory[-1:]


WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 900, 320, 60, 30, 40
LINES = (("resident_megabytes", "#1f6feb", "memory of the process"), ("kept_megabytes", "#bf8700", "kept by Stagehold"))


def _chart(samples: Sequence[Mapping[str, Any]]) -> str:
    """Megabytes by minutes, as SVG."""
    minutes = max(samples[-1]["seconds"] / 60, 1)
    most = max(sample["resident_megabytes"] for sample in samples) * 1.1
    across, down = (WIDTH - LEFT - 20) / minutes, (HEIGHT - TOP - BOTTOM) / most

    def place(sample: Mapping[str, Any], name: str) -> str:
        return f"{LEFT + sample['seconds'] / 60 * across:.1f},{HEIGHT - BOTTOM - sample[name] * down:.1f}"

    shapes = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif"'
        ' font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
    ]
    for megabytes in range(0, int(most) + 1, _step(most)):
        height = HEIGHT - BOTTOM - megabytes * down
        shapes.append(f'<path d="M{LEFT} {height:.1f}H{WIDTH - 20}" stroke="#d0d7de"/>')
        shapes.append(f'<text x="{LEFT - 8}" y="{height + 4:.1f}" text-anchor="end">{megabytes}</text>')
    for minute in range(0, int(minutes) + 1, _step(minutes)):
        x = LEFT + minute * across
        shapes.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{minute}</text>')
    for number, (name, colour, text) in enumerate(LINES):
        points = " ".join(place(sample, name) for sample in samples)
        shapes.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        shapes.append(f'<text x="{LEFT + 200 * number}" y="{TOP - 12}" fill="{colour}">{text} (MB)</text>')
    shapes.append(f'<text x="{WIDTH - 20}" y="{HEIGHT - 6}" text-anchor="end">minutes</text>')
    return "\n".join([*shapes, "</svg>"]) + "\n"


def _step(most: float) -> int:
    """Between two lines, so that there are at most ten."""
    return next(step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000) if most / step <= 10)


if __name__ == "__main__":
    sys.exit(main())
