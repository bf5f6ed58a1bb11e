"""`splits: {assignment: dynamic}` by the command, on real Spark: who takes what, and what becomes of it under kills."""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter
from pathlib import Path

import duckdb
import pytest
from tests.run.busy import until
from tests.run.here.test_side_by_side import (
    ALL,
    RUN,
    WIDE,
    attempts,
    processes,
    published,
    run,
    run_state,
    states,
)
from tests.run.workbench import INTERVAL, Workbench, ended

from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Cell, RunState
from stagehold.run.faults import FaultAction, Point
from stagehold.run.journal.journal import TOOK

pytestmark = pytest.mark.spark

FILES = 8
LEFT = '{kind: parquet, path: "${lake}/raw/numbers/*.parquet", splits: {count: 8, assignment: dynamic}}'
HOMES = ("left[0-3]", "left[4-7]")


@pytest.fixture
def bench(tmp_path, spark_remote):
    bench = Workbench.make(tmp_path, spark_remote)
    shutil.copy(Path(__file__).with_name("wide_jobs.py"), bench.settings.project)
    for number in range(FILES):
        bench.write_source(number)
    before, _, after = WIDE.partition("left: ")
    stage, _, rest = after.partition("\n")
    asked = f'left: {{job: "wide_jobs:left", source: {LEFT}, max_parallel_tasks: 2}}'
    assert "max_parallel_tasks: 2" in stage
    (Path(bench.settings.pipelines) / "wide.yaml").write_text(f"{before}{asked}\n{rest}")
    return bench


def answer(bench: Workbench) -> list[tuple[int, int, int]]:
    """DuckDB's."""
    raw = f"{bench.settings.lake_uri}/raw/numbers/*.parquet"
    query = "SELECT number % 7, sum(2 * number), count(*) FROM read_parquet(?) GROUP BY 1 ORDER BY 1"
    return [(colour, int(total), count) for colour, total, count in duckdb.execute(query, [raw]).fetchall()]


def took(bench: Workbench) -> dict[str, list[str]]:
    with Ledger.open(bench.settings.ledger_url) as ledger:
        events = ledger.events.of_kind("r1", TOOK)
    return {home: [event.text.split()[1] for event in events if event.subject == home] for home in HOMES}


def splits(taken: list[str]) -> set[int]:
    ends = (tuple(map(int, text.split("-"))) for text in taken)
    return {split for first, last in ends for split in range(first, last + 1)}


def times_computed(bench: Workbench) -> Counter[int]:
    with Ledger.open(bench.settings.ledger_url) as ledger:
        return Counter(record.partition for record in ledger.partitions.history(Cell("wide", "left", INTERVAL)))


def once(bench: Workbench) -> bool:
    return times_computed(bench) == dict.fromkeys(range(FILES), 1)


def test_tasks_take_splits_in_turn_and_give_what_dealt_ones_give(bench):
    asked = run(bench, 3)
    assert asked.counts == (0, ALL + 8), asked.err
    assert published(bench) == answer(bench)
    assert once(bench)
    assert splits(took(bench)[HOMES[0]]) | splits(took(bench)[HOMES[1]]) == set(range(FILES))
    assert {states(bench)[home] for home in HOMES} == {"finished"}
    assert run_state(bench) is RunState.FINISHED
    again = run(bench, 3)
    assert again.counts == (ALL + 8, 0)


def test_one_task_alone_takes_each_share_at_once(bench):
    alone = run(bench, 1)
    assert alone.counts == (0, ALL + 8)
    assert {subject for subject in attempts(bench) if subject.startswith("left")} == {*HOMES}
    assert published(bench) == answer(bench)


def test_a_slow_share_holds_neither_the_other_nor_what_reads_that_and_is_given_back_when_it_dies(bench):
    bench.inject(Point.AFTER_WRITE, "left", 1, FaultAction.HANG)
    running = bench.command(*RUN, "--parallel", "2")
    until(lambda: any(state == "finished" for subject, state in states(bench).items() if subject[:3] == "dou"), 90)
    ((hanging, pid),) = [(subject, pid) for subject, pid in processes(bench).items() if subject.startswith("left")]
    (slow,) = [home for home in HOMES if hanging.removeprefix("left[").removesuffix("]") in took(bench)[home]]
    (fast,) = {*HOMES} - {slow}
    share, hung = splits([slow.removeprefix("left[").removesuffix("]")]), splits(took(bench)[slow])
    assert 1 <= len(hung) <= 2
    assert splits(took(bench)[fast]) & share == share - hung, "all of the slow share but what it hangs in"
    assert states(bench)[fast] == "finished"
    assert slow not in states(bench)
    os.kill(pid, signal.SIGKILL)
    assert ended(running).code == 0
    assert published(bench) == answer(bench)
    assert once(bench)
    first, *again = took(bench)[slow]
    assert splits(again) == splits([first]), "its retry takes what it had taken, and nothing else is left"


@pytest.mark.parametrize("point", [Point.AFTER_LEASE, Point.MID_WRITE, Point.BEFORE_PUBLISH, Point.AFTER_PUBLISH])
def test_wherever_a_task_is_killed_each_split_is_published_once(bench, point):
    wave = 0 if point is Point.AFTER_LEASE else 1
    bench.inject(point, "left", wave, FaultAction.KILL)
    killed = run(bench, 3)
    assert killed.code == 0, killed.err
    assert "was killed (signal 9)" in killed.err
    assert published(bench) == answer(bench)
    assert once(bench)
    assert run_state(bench) is RunState.FINISHED


def test_splits_that_a_failed_run_had_are_taken_by_its_resume(bench):
    bench.inject(Point.AFTER_WRITE, "left", 1, FaultAction.FAIL)
    failed = run(bench, 3)
    assert failed.code == 1
    assert run_state(bench) is RunState.FAILED
    resumed = ended(bench.command("resume", "r1", "--json", "--parallel", "3"))
    assert resumed.code == 0, resumed.err
    assert published(bench) == answer(bench)
    assert once(bench)


def test_a_suspended_run_takes_no_more_and_its_resume_goes_on(bench):
    bench.inject(Point.AFTER_PUBLISH, "left", 1, FaultAction.FREEZE)
    running = bench.command(*RUN, "--parallel", "2")
    until(lambda: any(_is_stopped(pid) for pid in processes(bench).values()), 90)
    assert ended(bench.command("suspend", "r1", "--no-wait")).code == 0
    for pid in processes(bench).values():
        os.kill(pid, signal.SIGCONT)
    suspended = ended(running)
    assert (suspended.code, run_state(bench)) == (1, RunState.SUSPENDED), suspended.err
    assert ended(bench.command("resume", "r1", "--parallel", "3")).code == 0
    assert published(bench) == answer(bench)
    assert once(bench)


def _is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
