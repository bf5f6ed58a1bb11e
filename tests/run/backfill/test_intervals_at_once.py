"""`stagehold backfill --local --parallel N`: intervals side by side, each in a process of its own."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.run.busy import until
from tests.run.here.test_side_by_side import ALL, WIDE, at_once
from tests.run.workbench import Ended, Workbench, ended
from tests.run.zygote import Command

from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Attempt
from stagehold.run.faults import FaultAction, Point, inject
from stagehold.run.lease.held_leases import held_leases

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

DAYS = ("2026-11-20", "2026-11-21", "2026-11-22")
RANGE = ("backfill", "wide", "--from", DAYS[0], "--to", DAYS[2], "--local", "--yes", "--json")


@pytest.fixture
def bench(tmp_path, spark_remote):
    bench = Workbench.make(tmp_path, spark_remote)
    shutil.copy(Path(__file__).parents[1] / "here" / "wide_jobs.py", bench.settings.project)
    declare(bench)
    return bench


def declare(bench: Workbench, line: str = "") -> None:
    (Path(bench.settings.pipelines) / "wide.yaml").write_text(f'{WIDE}schedule: "@daily"\n{line}\n')


def backfill(bench: Workbench, *words: str) -> Command:
    return bench.command(*RANGE, *words)


def results(done: Ended) -> dict[str, tuple[object, object]]:
    return {
        each["interval"]: (each["failure"], each["outcome"] and each["outcome"]["computed"])
        for each in done.result["intervals"]
    }


def published(bench: Workbench, day: str) -> list[tuple[int, int, int]]:
    (table,) = Path(bench.settings.lake_uri).glob("**/totals/_delta_log")
    rows = DeltaTable(str(table.parent)).to_pyarrow_table(filters=[("_interval", "=", day)]).to_pylist()
    return sorted((row["colour"], row["total"], row["numbers"]) for row in rows)


def attempts(bench: Workbench, backfill_id: object) -> dict[tuple[str, str], Attempt]:
    with Ledger.open(bench.settings.ledger_url) as ledger:
        tries = {day: ledger.attempts.of_run(f"wide/backfill-{backfill_id}__{day}") for day in DAYS}
    return {(day, attempt.subject): attempt for day, found in tries.items() for attempt in found}


def test_intervals_go_on_at_once_and_give_what_one_after_the_other_gives(bench):
    done = ended(backfill(bench, "--parallel", "2"))
    assert results(done) == dict.fromkeys(DAYS, (None, ALL)), done.err
    made = attempts(bench, done.result["backfill"])
    firsts = [made[day, "left[0-1]"] for day in DAYS[:2]]
    assert at_once(*firsts) or at_once(firsts[0], made[DAYS[1], "right"])
    assert {line.partition(" | ")[0] for line in done.err.splitlines() if " | " in line} == {*DAYS}
    assert [published(bench, day) for day in DAYS] == [bench.expected()] * 3
    again = ended(backfill(bench, "--parallel", "2"))
    assert again.result["intervals"] == []


def test_one_that_is_killed_stops_no_other_and_a_resume_does_the_rest(bench):
    inject(bench.settings.home_path, Point.AFTER_WRITE, "left", 1, FaultAction.HANG, interval=DAYS[1])
    going = backfill(bench, "--parallel", "3")
    faults = bench.settings.home_path / "faults"
    until(lambda: not any(faults.iterdir()), 120)
    with Ledger.open(bench.settings.ledger_url) as ledger:
        (pid,) = {
            held.holder.pid
            for held in held_leases(ledger, "wide")
            if held.holder and (held.run_id or "").endswith(DAYS[1])
        }
    os.kill(pid, signal.SIGKILL)
    done = ended(going)
    assert done.code == 1
    shown = ended(bench.command("backfill", "wide", "--list", "--json"))
    (known,) = shown.result["backfills"]
    states = {each["interval"]: each["state"] for each in known["intervals"]}
    assert {states[DAYS[0]], states[DAYS[2]]} == {"finished"}
    rest = ended(bench.command("backfill", "wide", "--resume", known["backfill"], "--parallel", "2", "--json"))
    assert rest.code == 0, rest.err
    assert [published(bench, day) for day in DAYS] == [bench.expected()] * 3


def test_intervals_that_follow_from_each_other_go_one_after_the_other_with_tasks_side_by_side(bench):
    path = Path(bench.settings.pipelines) / "wide.yaml"
    path.write_text(path.read_text().replace("splits: 4}", "splits: 4, incremental: true}"))
    done = ended(backfill(bench, "--parallel", "3"))
    assert done.code == 0, done.err
    assert "3 to run, one after the other" in done.err
    made = attempts(bench, done.result["backfill"])
    assert at_once(made[DAYS[0], "left[0-1]"], made[DAYS[0], "right"])
    assert made[DAYS[1], "right"].started_at >= made[DAYS[0], "totals"].ended_at
    assert published(bench, DAYS[0]) == bench.expected()
    assert published(bench, DAYS[1]) == []
