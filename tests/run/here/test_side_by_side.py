"""`stagehold run --parallel N`: attempts in processes of their own, and what becomes of a run when one of them dies."""

from __future__ import annotations

import os
import shutil
import signal
from datetime import datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.run.busy import until
from tests.run.workbench import INTERVAL, Ended, Workbench, ended
from tests.run.zygote import Command

from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Attempt, AttemptState, RunState
from stagehold.run.faults import FaultAction, Point
from stagehold.run.lease.held_leases import held_leases

pytestmark = pytest.mark.spark

SOURCE = '{kind: parquet, path: "${lake}/raw/numbers/*.parquet", splits: 4}'
WIDE = f"""\
pipeline: wide
wave: 100ms
execution_mode: batch_forced
params: {{broken: 0}}
stages:
  left: {{job: "wide_jobs:left", source: {SOURCE}, max_parallel_tasks: 2}}
  right: {{job: "wide_jobs:right", source: {SOURCE}}}
  doubled: {{job: "wide_jobs:doubled", inputs: {{left: forward}}, max_parallel_tasks: 2}}
  totals:
    job: wide_jobs:totals
    inputs: {{doubled: {{exchange: keyed, key: colour}}, right: {{exchange: keyed, key: colour}}}}
    key: colour
    partitions: 2
    output: {{type: blocking_persistent, table: marts.totals}}
"""
ALL = 4 + 4 + 4 + 2
RUN = ("run", "wide", "--interval", INTERVAL, "--run-id", "r1")


@pytest.fixture
def bench(tmp_path, spark_remote):
    bench = Workbench.make(tmp_path, spark_remote)
    shutil.copy(Path(__file__).with_name("wide_jobs.py"), bench.settings.project)
    declare(bench, "")
    return bench


def declare(bench: Workbench, line: str) -> None:
    (Path(bench.settings.pipelines) / "wide.yaml").write_text(f"{WIDE}{line}\n")


def run(bench: Workbench, parallel: int, *words: str) -> Ended:
    return ended(bench.command(*RUN, "--json", "--parallel", str(parallel), *words))


def published(bench: Workbench) -> list[tuple[int, int, int]]:
    (table,) = Path(bench.settings.lake_uri).glob("**/totals/_delta_log")
    rows = DeltaTable(str(table.parent)).to_pyarrow_table().to_pylist()
    return sorted((row["colour"], row["total"], row["numbers"]) for row in rows)


def attempts(bench: Workbench) -> dict[str, list[Attempt]]:
    found: dict[str, list[Attempt]] = {}
    with Ledger.open(bench.settings.ledger_url) as ledger:
        for attempt in ledger.attempts.of_run("r1"):
            found.setdefault(attempt.subject, []).append(attempt)
    return found


def states(bench: Workbench) -> dict[str, str]:
    return {subject: " ".join(each.state for each in tries) for subject, tries in attempts(bench).items()}


def processes(bench: Workbench) -> dict[str, int]:
    """The pid of who works on what now."""
    with Ledger.open(bench.settings.ledger_url) as ledger:
        return {
            held.subject: held.holder.pid for held in held_leases(ledger, "wide") if held.holder and held.attempt_id
        }


def run_state(bench: Workbench) -> RunState:
    with Ledger.open(bench.settings.ledger_url) as ledger:
        return ledger.runs.get("r1").state


def at_once(one: Attempt, other: Attempt) -> bool:
    assert one.ended_at
    assert other.ended_at
    return one.started_at < other.ended_at and other.started_at < one.ended_at


def both_hang(bench: Workbench) -> Command:
    """A run of which a share of `left` and `right` hang, and nothing else is at work."""
    for stage in ("left", "right"):
        bench.inject(Point.AFTER_WRITE, stage, 1, FaultAction.HANG)
    running = bench.command(*RUN, "--parallel", "3")
    until(lambda: not any((bench.settings.home_path / "faults").iterdir()), 90)
    until(lambda: sum(state == "finished" for state in states(bench).values()) == 2 and len(processes(bench)) == 2, 90)
    return running


def lives(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").exists() and " Z " not in Path(f"/proc/{pid}/stat").read_text()


def test_regions_and_shares_go_on_side_by_side_and_give_what_one_after_the_other_gives(bench, tmp_path, spark_remote):
    side_by_side = run(bench, 3)
    assert side_by_side.counts == (0, ALL)
    assert published(bench) == bench.expected()
    made = {subject: tries for subject, (tries,) in attempts(bench).items()}
    assert {*made} == {"left[0-1]", "left[2-3]", "right", "doubled[0-1]", "doubled[2-3]", "totals"}
    assert at_once(made["left[0-1]"], made["right"])
    assert made["doubled[0-1]"].started_at >= made["left[0-1]"].ended_at
    assert made["totals"].started_at >= max(made[each].ended_at for each in made if each != "totals")
    lines = [line for line in side_by_side.err.splitlines() if " | " in line]
    assert {line.partition(" | ")[0].strip() for line in lines} == {*made}
    assert len({line.index(" | ") for line in lines}) == 1
    assert run_state(bench) is RunState.FINISHED

    (tmp_path / "alone").mkdir()
    alone = Workbench.make(tmp_path / "alone", spark_remote)
    shutil.copy(Path(__file__).with_name("wide_jobs.py"), alone.settings.project)
    declare(alone, "")
    assert run(alone, 1).counts == (0, ALL)
    assert published(alone) == published(bench)
    for stage in ("left", "doubled", "right", "totals"):
        assert prints(alone, stage) == prints(bench, stage)


def prints(bench: Workbench, stage: str) -> list[tuple[int, str | None, int]]:
    with Ledger.open(bench.settings.ledger_url) as ledger:
        records = ledger.partitions.newest_of("wide", INTERVAL)[stage]
    return [(record.partition, record.fingerprint, record.rows) for record in records]


def test_a_share_starts_when_its_own_producer_is_done_and_not_all_of_them(bench):
    bench.inject(Point.AFTER_WRITE, "left", 1, FaultAction.HANG)  # whichever share comes first hangs
    running = bench.command(*RUN, "--parallel", "2")
    until(
        lambda: any(subject.startswith("doubled") and "finished" in state for subject, state in states(bench).items()),
        90,
    )
    (hanging,) = [subject for subject, pid in processes(bench).items() if subject.startswith("left")]
    assert states(bench)[hanging] == "running"
    os.kill(processes(bench)[hanging], signal.SIGKILL)
    assert ended(running).code == 0
    assert published(bench) == bench.expected()


def test_a_child_that_is_killed_is_replaced_and_the_others_go_on(bench):
    bench.inject(Point.AFTER_PUBLISH, "left", 1, FaultAction.KILL)
    killed = run(bench, 3)
    assert killed.code == 0, killed.err
    assert published(bench) == bench.expected()
    assert "was killed (signal 9). What is consumable is kept. Another process goes on in 1.0 s." in killed.err
    told = states(bench)
    assert sorted(told[f"left[{share}]"] for share in ("0-1", "2-3")) == ["failed finished", "finished"]
    assert told["right"] == "finished"
    lost = next(tries[0] for tries in attempts(bench).values() if tries[0].state is AttemptState.FAILED)
    assert lost.failure_rule == "worker_lost"


def test_a_process_that_dies_again_and_again_ends_the_run_by_the_restart_strategy(bench):
    declare(bench, "restart: {strategy: fixed-delay, attempts: 1, delay: 100ms}")
    dead = run(bench, 3, "--param", f"broken={int(signal.SIGKILL)}")
    assert dead.code == 1
    assert "The last attempt of right ended without a word" in dead.err
    assert states(bench)["right"].startswith("failed failed")
    assert run_state(bench) is RunState.FAILED
    told = states(bench)
    assert told["left[0-1]"] == told["left[2-3]"] == "finished"
    assert "totals" not in told


def test_after_a_failure_that_cannot_be_restarted_what_is_under_way_ends_and_a_resume_does_the_rest(bench):
    bench.inject(Point.AFTER_WRITE, "right", 1, FaultAction.FAIL)
    failed = run(bench, 3)
    assert (failed.code, failed.out) == (1, "")
    assert "A fault was switched on at after_write of right, wave 1" in failed.err
    told = states(bench)
    assert (told["right"], told["left[0-1]"], told["left[2-3]"]) == ("failed", "finished", "finished")
    assert "totals" not in told
    assert run_state(bench) is RunState.FAILED
    resumed = ended(bench.command("resume", "r1", "--json", "--parallel", "2"))
    assert resumed.result["reused"] >= 4
    assert published(bench) == bench.expected()
    assert run_state(bench) is RunState.FINISHED


def test_a_failure_that_may_be_restarted_is_and_the_others_are_not(bench):
    declare(bench, "restart: {strategy: fixed-delay, attempts: 1, delay: 100ms}")
    bench.inject(Point.AFTER_WRITE, "right", 1, FaultAction.RAISE)
    again = run(bench, 3)
    assert again.code == 0, again.err
    assert "right        | right runs again in 0.1 s" in again.err
    assert states(bench) | {"right": ""} == dict.fromkeys(states(bench), "finished") | {"right": ""}
    assert states(bench)["right"] == "failed finished"
    assert published(bench) == bench.expected()


def test_a_child_that_loses_its_lease_while_it_sleeps_changes_nothing_and_the_others_end(bench):
    bench.inject(Point.BEFORE_PUBLISH, "right", 1, FaultAction.FREEZE)
    running = bench.command(*RUN, "--parallel", "3")
    until(lambda: "right" in processes(bench) and stopped(processes(bench)["right"]), 90)
    pid = processes(bench)["right"]
    resumed = ended(bench.command("resume", "r1", "--json", "--parallel", "3"))
    assert resumed.code == 0, resumed.err
    assert published(bench) == bench.expected()
    os.kill(pid, signal.SIGCONT)
    fenced = ended(running)
    assert (fenced.code, "was fenced by epoch" in fenced.err) == (1, True), fenced.err
    assert published(bench) == bench.expected()
    assert run_state(bench) is RunState.FINISHED


def test_an_older_command_of_the_run_takes_nothing_from_a_newer_one_and_does_not_end_it(bench):
    for point in (Point.BEFORE_WRITE, Point.AFTER_WRITE):  # each of the two tasks that begin stops at one of them
        bench.inject(point, "left", 1, FaultAction.FREEZE)
    older = bench.command(*RUN, "--parallel", "2")
    until(lambda: sum(map(stopped, processes(bench).values())) == 2, 90)
    first, second = processes(bench).values()

    bench.inject(Point.AFTER_WRITE, "right", 1, FaultAction.HANG)
    newer = bench.command(*RUN, "--json", "--parallel", "3")
    until(lambda: sum(state.endswith("finished") for state in states(bench).values()) == 4, 90)
    hangs = processes(bench)["right"]
    os.kill(first, signal.SIGKILL)  # followed by another one, which finds all done, and then by one for `right`
    until(lambda: "who works on right" in older.err(), 90)
    assert lives(hangs)
    os.kill(second, signal.SIGCONT)
    until(lambda: "ends the run" in older.err(), 90)

    bench.inject(Point.AFTER_WRITE, "totals", 1, FaultAction.FREEZE)
    os.kill(hangs, signal.SIGKILL)
    assert (ended(older).code, "was fenced by epoch" in older.err()) == (1, True), older.err()
    until(lambda: any(subject == "totals" and stopped(pid) for subject, pid in processes(bench).items()), 90)
    assert run_state(bench) is RunState.RUNNING
    os.kill(processes(bench)["totals"], signal.SIGCONT)
    assert ended(newer).code == 0, newer.err()
    assert published(bench) == bench.expected()
    assert run_state(bench) is RunState.FINISHED


def stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


@pytest.mark.parametrize("how", ["signal", "command"])
def test_who_cancels_the_run_cancels_every_process(how, bench):
    running = both_hang(bench)
    pids = processes(bench)
    assert len({*pids.values(), running.pid}) == 3
    if how == "signal":
        running.send_signal(signal.SIGTERM)
    else:
        assert ended(bench.command("cancel", "r1")).code == 0
    cancelled = ended(running)
    assert (cancelled.code, "r1 was cancelled" in cancelled.err) == (130, True), cancelled.err
    assert not any(map(lives, pids.values()))
    assert run_state(bench) is RunState.CANCELED
    assert states(bench)["right"] == "canceled"
    assert run(bench, 3).code == 0
    assert published(bench) == bench.expected()


def test_a_run_that_is_suspended_begins_nothing_more(bench):
    bench.inject(Point.AFTER_PUBLISH, "right", 1, FaultAction.FREEZE)
    running = bench.command(*RUN, "--parallel", "2")
    until(lambda: "right" in processes(bench) and stopped(processes(bench)["right"]), 90)
    assert ended(bench.command("suspend", "r1", "--no-wait")).code == 0
    os.kill(processes(bench)["right"], signal.SIGCONT)
    suspended = ended(running)
    assert (suspended.code, "suspended" in suspended.err) == (1, True), suspended.err
    assert run_state(bench) is RunState.SUSPENDED
    assert "totals" not in states(bench)
    assert ended(bench.command("resume", "r1", "--parallel", "3")).code == 0
    assert published(bench) == bench.expected()


def test_children_end_with_a_parent_that_is_killed(bench):
    running = both_hang(bench)
    pids = processes(bench)
    running.send_signal(signal.SIGKILL)
    until(lambda: not any(map(lives, pids.values())), 10)
    assert ended(bench.command("resume", "r1", "--parallel", "3")).code == 0
    assert published(bench) == bench.expected()


def test_tasks_of_an_eager_pipeline_start_at_once_and_wait_for_their_inputs(bench):
    declare(bench, "schedule_mode: eager")
    eager = run(bench, 6)
    assert eager.counts == (0, ALL)
    made = {subject: tries for subject, (tries,) in attempts(bench).items()}
    assert {*waiting(bench)} == {*made}
    assert max(waiting(bench).values()) < min(attempt.ended_at for attempt in made.values())
    assert "totals waits for" in eager.err
    assert published(bench) == bench.expected()


def waiting(bench: Workbench) -> dict[str, datetime]:
    """When each subject was there, before it began."""
    with Ledger.open(bench.settings.ledger_url) as ledger:
        subjects = {attempt.attempt_id: attempt.subject for attempt in ledger.attempts.of_run("r1")}
        moves = ledger.transitions.of_run("r1")
    return {
        subjects[move.attempt_id]: move.recorded_at
        for move in moves
        if move.attempt_id and move.after == AttemptState.CREATED
    }


def test_timings_add_up_what_the_processes_spent_and_a_run_without_work_needs_none(bench):
    timed = run(bench, 3, "--timings")
    laps = timed.result["timings"]
    assert {"Spark sessions", "first wave", "end"} <= {*laps}
    nothing = ended(bench.command(*RUN, "--json", "--parallel", "3", settings=bench.without_spark()))
    assert nothing.counts == (ALL, 0)
    assert " | " not in nothing.err
