"""How quick pages are with 5 and with 500 pipelines, beside Airflow's own list of DAGs on the same server.

    python bench/pages.py [--repetitions 10]

Airflow's own app serves them from this process, over HTTP; each number of pipelines has a process of its own. Of each
pipeline 14 runs are on record that stopped half-way. Measured are the routes of one pipeline and of its run, the
overview, and the request by which Airflow's own page lists as many DAGs: when it is asked for the first time, and after
that. With 5 pipelines, also: what gates said of a run of 100,024 partitions and what a resume of it would do; and the
plan of a backfill of 400 intervals with 100,000 cells, of which half are on record: its first answer, the longest
answer until it is there, when it is there, the memory that stays behind it, and how long the planner alone takes for
the same. Prints a table, writes results/pages.json, and ends with 1 if a limit is missed: a route takes with 500
pipelines at most 1.3 times what it takes with 5, the overview at most twice what Airflow's own list takes, the plan 1.5
times what the planner takes.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "include"), str(HERE.parent)]

import httpx  # noqa: E402
from worlds.half_done_runs import airflow_server, data_is_there, make_runs, prepare, token  # noqa: E402
from worlds.results import write_results  # noqa: E402

RESULTS = HERE / "results" / "pages.json"
FEW, MANY = 5, 500
FIRST = "p0000"
SMALL = (4, 2)  # partitions of each of four stages, and of the last
WIDE, OF_WIDE = "wide_100024", (25_000, 24)
NIGHTS = 13  # of each small pipeline; the first one has its half-done run besides
LONG, OF_LONG, DAYS = "long", (62, 2), 400  # 250 partitions of an interval
FIRST_DAY = date(2025, 1, 1)
TIMES_FOR_MANY, TIMES_AIRFLOWS, TIMES_THE_PLANNER = 1.3, 2.0, 1.5
SLACK_SECONDS = 0.005  # by which a route may be slower whatever it takes: the clock of a busy machine
POLL_SECONDS = 0.5
PAGE = 50  # rows
OURS, AIRFLOWS = f"/stagehold/api/overview?limit={PAGE}", f"/ui/dags?limit={PAGE}&dag_runs_limit=14"
OF_ONE = ("intervals", "history", "recoveries", "checkpoints", "gate-rates", "stale", "savepoints")
OF_RUN = ("grid", "plan", "gates", "timeline")
PLANNER = "stagehold.run.backfill.backfill_planning.resume_plan"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--only", type=int, help="measure so many pipelines here and print the raw data")
    parser.add_argument("--large", action="store_true", help="and the large run and the large backfill")
    options = parser.parse_args()
    if options.only:
        print(json.dumps(measure(options.only, options.repetitions, large=options.large)))
        return 0
    before = os.getloadavg()
    few = _apart(FEW, options.repetitions, "--large")
    many = _apart(MANY, options.repetitions)
    write_results(RESULTS, before, repetitions=options.repetitions, sizes=[few, many])
    return 0 if _report(few, many) else 1


def _apart(pipelines: int, repetitions: int, *more: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--only", str(pipelines), "--repetitions", str(repetitions), *more]
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    found: dict[str, Any] = json.loads(told.splitlines()[-1])  # Airflow logs before it
    return found


def measure(pipelines: int, repetitions: int, *, large: bool) -> dict[str, Any]:
    """Seconds of each request, and what the large ones took."""
    small = {f"p{number:04}": SMALL for number in range(pipelines)}
    sizes = {**small, **({WIDE: OF_WIDE, LONG: OF_LONG} if large else {})}
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder), sizes, schedules={LONG: "@daily"})
        runs = make_runs({name: size for name, size in sizes.items() if name in (FIRST, WIDE, LONG)})
        for name in small:
            record_days(name, NIGHTS, FIRST)
            _airflow_runs(name, NIGHTS)
        _long_ago(Path(folder) / "pipelines")
        _say(f"made {len(small)} pipelines, and what ran of them")
        found: dict[str, Any] = {"pipelines": pipelines}
        with data_is_there(), airflow_server() as url, _client(url) as client:
            found["lists"] = {path: _timed(client, path, repetitions) for path in (AIRFLOWS, OURS)}
            found["routes"] = dict(_routes(client, runs[FIRST].dag_id, runs[FIRST].url, repetitions))
            if large:
                found["large_run"] = _large_run(client, runs[WIDE].url)
                found["backfill"] = _backfill(client)
            found["health"] = client.get("/stagehold/api/health").json()
    return found


def _long_ago(folder: Path) -> None:
    """What was written in the last seconds is not kept."""
    for path in folder.iterdir():
        os.utime(path, (time.time() - 60, time.time() - 60))


def _client(url: str) -> httpx.Client:
    return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token()}"}, timeout=600)


def _routes(client: httpx.Client, dag_id: str, run: str, repetitions: int) -> Iterator[tuple[str, dict[str, Any]]]:
    of_pipeline = f"/stagehold/api/dags/{dag_id}"
    for name in OF_ONE:
        yield name, _timed(client, f"{of_pipeline}/{name}", repetitions)
    for name in OF_RUN:
        yield f"run: {name}", _timed(client, f"{run}/{name}", repetitions)
    yield "run: dry run", _timed_call(lambda: _dry_run(client, run), repetitions)


def _dry_run(client: httpx.Client, run: str) -> httpx.Response:
    return client.post(f"{run}/resume", json={"dry_run": True})


def _timed(client: httpx.Client, path: str, repetitions: int) -> dict[str, Any]:
    return _timed_call(lambda: client.get(path), repetitions)


def _timed_call(ask: Callable[[], httpx.Response], repetitions: int) -> dict[str, Any]:
    first, seconds = _asked(ask)
    return {"first": seconds, "bytes": len(first.content), "seconds": [_asked(ask)[1] for _ in range(repetitions)]}


def _asked(ask: Callable[[], httpx.Response]) -> tuple[httpx.Response, float]:
    began = time.perf_counter()
    answer = ask()
    seconds = time.perf_counter() - began
    answer.raise_for_status()
    return answer, seconds


def _large_run(client: httpx.Client, run: str) -> dict[str, Any]:
    _say("asking for the large run")
    gates, dry = _asked(lambda: client.get(f"{run}/gates")), _asked(lambda: _dry_run(client, run))
    return {"gates_seconds": gates[1], "gates_bytes": len(gates[0].content), "dry_run_seconds": dry[1]}


def _backfill(client: httpx.Client) -> dict[str, Any]:
    """The plan as the page gets it, and the planner alone, which is timed while the same plan is made once more."""
    record_days(LONG, DAYS // 2, LONG)
    _say("planning the large backfill")
    asked = {"first": FIRST_DAY.isoformat(), "last": (FIRST_DAY + timedelta(DAYS - 1)).isoformat()}
    path, before = f"/stagehold/api/dags/{LONG}/backfill", _resident_megabytes()
    began, answers = time.perf_counter(), []
    answer, seconds = _asked(lambda: client.get(path, params=asked))
    answers.append(seconds)
    while answer.status_code == httpx.codes.ACCEPTED:
        time.sleep(POLL_SECONDS)
        answer, seconds = _asked(lambda: client.get(path, params=asked))
        answers.append(seconds)
    there = time.perf_counter() - began
    plan = answer.json()
    return {
        "intervals": len(plan["intervals"]),
        "cells": plan["runs"] + plan["reuses"],
        "first_answer_seconds": answers[0],
        "longest_answer_seconds": max(answers),
        "there_seconds": there,
        "resident_megabytes": [before, _resident_megabytes()],
        **_planned_here(asked),
    }


def _planned_here(asked: Mapping[str, str]) -> dict[str, float]:
    """The same plan without a server, and how much of it the planner took."""
    from stagehold.chronicle.chronicle import open_ledger
    from stagehold.model.backfill import BackfillChoice
    from stagehold.plan.resume.planner import resume_plan
    from stagehold.run.backfill.backfill_planning import plan_backfill
    from stagehold.settings import load_settings
    from stagehold.spec.loading.loader import find_pipeline

    spent: list[float] = []

    def timed(*given: Any) -> Any:
        began = time.process_time()
        made = resume_plan(*given)
        spent.append(time.process_time() - began)
        return made

    settings = load_settings()
    with open_ledger(settings) as ledger, ledger.kept_open(), mock.patch(PLANNER, timed):
        began = time.process_time()
        plan_backfill(BackfillChoice(**asked), find_pipeline(LONG, settings), ledger, settings)
        return {"whole_plan_seconds": time.process_time() - began, "planner_seconds": sum(spent)}


def dates(days: int) -> list[str]:
    return [(FIRST_DAY + timedelta(number)).isoformat() for number in range(days)]


def record_days(name: str, days: int, like: str) -> None:
    """The first so many days of a pipeline, as the half-done run of one ``like`` it left its own interval."""
    from stagehold.ledger.ledger import Ledger
    from stagehold.model.states import RunEvent
    from stagehold.settings import load_settings

    with Ledger.open(load_settings().ledger_url) as ledger, ledger.kept_open(), ledger.together():
        known = [one for some in ledger.partitions.newest_of(like, "bench").values() for one in some]
        run = ledger.runs.get(f"{like}/bench")
        for day in dates(days):
            lease = ledger.leases.acquire(f"{name}/{day}/{LONG}", "bench", 60)
            cells = [replace(one.cell, pipeline=name, interval=day) for one in known]
            made = [replace(one, cell=cell, run_id=f"{name}/{day}") for one, cell in zip(known, cells, strict=True)]
            ledger.partitions.record(made, lease)
            ledger.leases.release(lease)
            if name != LONG:
                ledger.runs.start(replace(run, run_id=f"{name}/{day}", pipeline=name, interval=day))
                ledger.runs.apply(f"{name}/{day}", RunEvent.FAIL, RunEvent.ALL_ENDED)


def _airflow_runs(name: str, days: int) -> None:
    """Failed ones, as Airflow's list shows them; without tasks, which no list asks for."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import insert, select

    table = DagRun.__table__
    with create_session() as session:
        row = session.execute(select(table).where(DagRun.dag_id == FIRST, DagRun.run_id == "bench")).mappings().one()
        own = {**row, "dag_id": name, "logical_date": None, "conf": {}}
        del own["id"]
        session.execute(insert(table), [{**own, "run_id": day} for day in dates(days)])


def _resident_megabytes() -> int:
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmRSS"))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _report(few: dict[str, Any], many: dict[str, Any]) -> bool:
    """Print medians; whether every limit is kept."""
    print(f"{'':24}{few['pipelines']:>6} pipelines{many['pipelines']:>9} pipelines   times")
    kept = True
    for name in few["routes"]:
        less, more = (_median(one["routes"][name]) for one in (few, many))
        within = more <= less * TIMES_FOR_MANY + SLACK_SECONDS
        kept = kept and within
        print(f"{name:24}{less:>14.3f} s{more:>17.3f} s   {more / less:5.2f}{'' if within else '  over the limit'}")
    for one in (few, many):
        ours, own = (_median(one["lists"][path]) for path in (OURS, AIRFLOWS))
        within = ours <= own * TIMES_AIRFLOWS
        kept = kept and within
        first = one["lists"][OURS]["first"]
        print(
            f"overview of {one['pipelines']} pipelines {ours:.3f} s (first {first:.3f} s), Airflow's own list "
            f"{own:.3f} s: {ours / own:.2f} times{'' if within else '  over the limit'}"
        )
    run, plan = few["large_run"], few["backfill"]
    print(f"run of 100,024 partitions: gates {run['gates_seconds']:.2f} s, dry run {run['dry_run_seconds']:.2f} s")
    within = plan["whole_plan_seconds"] <= plan["planner_seconds"] * TIMES_THE_PLANNER
    print(
        f"backfill of {plan['intervals']} intervals and {plan['cells']:,} cells: first answer "
        f"{plan['first_answer_seconds']:.2f} s, longest {plan['longest_answer_seconds']:.2f} s, there after "
        f"{plan['there_seconds']:.1f} s; alone {plan['whole_plan_seconds']:.1f} s of processor, of which the planner "
        f"{plan['planner_seconds']:.1f} s{'' if within else '  over the limit'}; memory "
        f"{plan['resident_megabytes'][0]} to {plan['resident_megabytes'][1]} MB"
    )
    return kept and within


def _median(timed: dict[str, Any]) -> float:
    return statistics.median(timed["seconds"])


if __name__ == "__main__":
    sys.exit(main())
