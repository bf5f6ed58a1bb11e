from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.ledger.samples import CELL, RUN_ENDS, START, attempt, event, gate_result, record, run
from typer.testing import CliRunner

from stagehold.cli.main import app
from stagehold.ledger import Ledger
from stagehold.ledger.attempts import Failure
from stagehold.ledger.leases import lease_of
from stagehold.model.records import TRACE, Cell, FailureClass, Restore, RunState
from stagehold.model.standing import PartitionState
from stagehold.model.states import LOST, UNTIL_RUNNING, AttemptEvent
from stagehold.run.lease.lost_attempts import NOT_RENEWED


@pytest.fixture
def ledger(tmp_path, ledger_file, monkeypatch):
    monkeypatch.setenv("STAGEHOLD_HOME", str(tmp_path))
    with Ledger.open(f"sqlite:///{ledger_file}") as opened:
        yield opened


@pytest.fixture
def failed_run(ledger):
    """Run 1 failed: of `joined` it made partition 1, run 0 made partition 0, and the gate blocked partition 2."""
    ledger.runs.start(run("run-0"))
    ledger.runs.start(run("run-1", minutes=1))
    ledger.attempts.create(attempt(1), *UNTIL_RUNNING)
    lease = ledger.leases.acquire("lease", "me", 60)
    blocked = record(2, state=PartitionState.BLOCKED, version=None, files=(), rows=0, reason="[3 nulls] in price")
    orders = record(0, cell=Cell("sales", "orders", CELL.interval), state=PartitionState.RELEASED)
    ledger.partitions.record([record(0, run_id="run-0"), record(1), blocked, orders], lease)
    ledger.gates.record([gate_result(2, passed=False), gate_result(1, passed=True)])
    ledger.events.append(event("took over from [red]nobody"))
    failure = Failure("GateBlocked: 3 nulls", FailureClass.NON_RECOVERABLE, "gate")
    ledger.attempts.apply(attempt(1).attempt_id, AttemptEvent.FAIL, failure=failure)
    ledger.runs.apply("run-1", *RUN_ENDS[RunState.FAILED])


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["status", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_whole_trace_of_a_failure_is_shown_when_asked_for(failed_run, ledger):
    ledger.events.append(replace(event("Traceback: [red]all of it"), kind=TRACE, subject=attempt(1).attempt_id))
    assert "all of it" not in invoke("run-1")
    assert f"Trace of attempt {attempt(1).attempt_id}:\nTraceback: [red]all of it" in invoke("run-1", "--trace")
    (shown,) = json.loads(invoke("run-1", "--json"))["attempts"]
    assert shown["trace"] == "Traceback: [red]all of it"


def test_without_runs_it_says_how_to_make_one(ledger):
    assert "`stagehold run PIPELINE`" in invoke()
    assert json.loads(invoke("--json")) == {
        "services": [],
        "failure": None,
        "elsewhere": [],
        "spark_users": [],
        "runs": [],
    }


def test_without_a_run_it_lists_the_newest_runs_first(failed_run):
    text = invoke()
    assert text.index("run-1") < text.index("run-0")
    assert [(run["run_id"], run["state"]) for run in json.loads(invoke("--json"))["runs"]] == [
        ("run-1", "failed"),
        ("run-0", "running"),
    ]


def test_a_run_whose_command_was_killed_is_told_as_lost_with_the_command_that_goes_on(ledger):
    killed = ledger.runs.start(run("run-1"))
    ledger.leases.acquire(lease_of(attempt(1)), "me", 0.0)
    ledger.attempts.create(attempt(1), *UNTIL_RUNNING)
    for text in (invoke(), invoke(killed.run_id)):
        assert f"{LOST}, noticed by {NOT_RENEWED}, " in " ".join(text.split())
        assert "`stagehold resume run-1` goes on with " in text
    (listed,) = json.loads(invoke("--json"))["runs"]
    shown = json.loads(invoke("run-1", "--json"))["run"]
    assert {one["lost"]["noticed"] for one in (listed, shown)} == {NOT_RENEWED}


def test_of_a_pipeline_whose_file_is_gone_it_says_what_is_on_record(failed_run):
    assert f"{CELL.interval}: 2 of 4 on record consumable, 1 blocked, 1 released\n" in invoke("run-1")
    assert json.loads(invoke("run-1", "--json"))["interval"] == {
        "state": None,
        "whole": False,
        "partitions": 4,
        "text": "2 of 4 on record consumable, 1 blocked, 1 released",
    }


def test_a_run_that_was_marked_as_a_success_is_not_whole(ledger):
    interval = CELL.interval
    ledger.runs.start(run("run-1", pipeline="shipping_priority", interval=interval))
    lease = ledger.leases.acquire("lease", "me", 60)
    cells = [Cell("shipping_priority", one, interval) for one in ("orders", "shipping_priority")]
    ledger.partitions.record([record(number, cell=cell) for cell in cells for number in range(12)], lease)
    ledger.runs.apply("run-1", *RUN_ENDS[RunState.FINISHED])
    assert f"{interval}: 24 of 81 consumable, 57 missing; it is not whole\n" in invoke("run-1")


def test_each_declared_stage_is_told_in_one_word_also_one_that_never_began(ledger):
    interval = CELL.interval
    ledger.runs.start(run("run-1", pipeline="shipping_priority", interval=interval))
    began = replace(attempt(1, region="orders"), pipeline="shipping_priority")
    ledger.attempts.create(began, *UNTIL_RUNNING, AttemptEvent.REPORTED_FINISHED)
    lease = ledger.leases.acquire("lease", "me", 60)
    cell = Cell("shipping_priority", "orders", interval)
    ledger.partitions.record([record(number, cell=cell) for number in range(12)], lease)
    states = {stage["stage"]: stage["state"] for stage in json.loads(invoke("run-1", "--json"))["stages"]}
    stages = ("customer", "orders", "lineitem", "orders_by_customer", "shipping_priority", "top_orders")
    assert states == dict.fromkeys(stages, "created") | {"orders": "running"}


def test_a_run_is_shown_with_its_stages_attempts_failures_and_events(failed_run):
    text = invoke("run-1")
    assert text.startswith("run-1: sales for 2024-01-01, failed, by cli, started 2024-01-02 03:05:05, ended ")
    for part in (
        "Stages",
        "Attempts",
        "non_recoverable failure, rule gate: GateBlocked: 3 nulls",
        "Failed gates",
        "3 nulls",
        "took over from [red]nobody",
    ):
        assert part in text
    assert text.endswith(
        "`stagehold plan sales --interval 2024-01-01` shows what a run would reuse now, and what it would run.\n"
    )


def test_a_runs_document_counts_what_is_readable_and_whose_it_is(failed_run):
    document = json.loads(invoke("run-1", "--json"))
    assert list(document) == [
        "run",
        "interval",
        "restores",
        "stages",
        "attempts",
        "history",
        "gate_failures",
        "events",
        "leases",
    ]
    assert document["run"]["started_at"] == "2024-01-02T03:05:05.678901+00:00"
    counts = ("stage", "consumable", "blocked", "held", "released", "made_by_run", "rows", "bytes")
    assert document["stages"] == [
        {**dict(zip(counts, ("joined", 2, 1, 0, 0, 1, 20, 2000), strict=True)), "state": None, "counters": {}},
        {**dict(zip(counts, ("orders", 0, 0, 0, 1, 0, 0, 0), strict=True)), "state": None, "counters": {}},
    ]
    assert [(attempt["region"], attempt["epoch"], attempt["state"]) for attempt in document["attempts"]] == [
        ("joined", 1, "failed")
    ]
    assert [
        (failure["stage"], failure["partition"], failure["expectation"]) for failure in document["gate_failures"]
    ] == [("joined", 2, "no nulls")]
    assert [event["text"] for event in document["events"]] == ["took over from [red]nobody"]


def test_a_run_shows_how_its_states_came_about(failed_run, ledger):
    lines = invoke("run-1").splitlines()
    told = lines[next(number for number, line in enumerate(lines) if "History of states" in line) :]
    shown = [" ".join(line.split()[2:]) for line in told if line.lstrip().startswith("20")]
    assert shown[:10] == [
        "run created",
        "run created running start",
        "joined, epoch 1 created",
        "joined, epoch 1 created scheduled schedule",
        "joined, epoch 1 scheduled deploying deploy",
        "joined, epoch 1 deploying initializing reported_initializing",
        "joined, epoch 1 initializing running reported_running",
        "joined, epoch 1 running failed fail",
        "run running failing fail",
        "run failing failed all_ended",
    ]
    history = json.loads(invoke("run-1", "--json"))["history"]
    assert [(one["attempt_id"], one["before"], one["after"], one["event"]) for one in history[:2]] == [
        (None, None, "created", None),
        (None, "created", "running", "start"),
    ]
    assert history[0]["recorded_at"] == ledger.transitions.of_run("run-1")[0].recorded_at.isoformat()


def test_a_run_shows_the_restores_that_were_asked_of_it(failed_run, ledger):
    for hour, identity in enumerate(("first", "second")):
        ledger.restores.ask(Restore("run-1", identity, "joined", START + timedelta(hours=hour)))
    ledger.restores.fulfil(ledger.restores.get("run-1", "first"))
    lines = [line.split() for line in invoke("run-1").splitlines() if "joined" in line][:2]
    assert lines[0] == ["joined", "2024-01-02", "04:04:05", "not", "yet"]
    assert lines[1][:3] == ["joined", "2024-01-02", "03:04:05"]
    assert "not yet" not in " ".join(lines[1])
    assert [restore["identity"] for restore in json.loads(invoke("run-1", "--json"))["restores"]] == ["second", "first"]


def test_a_run_that_did_nothing_yet_is_one_line_its_beginning_and_a_hint(ledger):
    ledger.runs.start(run())
    first, *history, hint = invoke("run-1").splitlines()
    assert (first[:6], hint[:16]) == ("run-1:", "`stagehold plan ")
    assert [line.split()[2:] for line in history if line.lstrip().startswith("20")] == [
        ["run", "created"],
        ["run", "created", "running", "start"],
    ]
    assert json.loads(invoke("run-1", "--json"))["stages"] == []


def test_an_unknown_run_fails_with_those_that_exist(failed_run):
    result = CliRunner().invoke(app, ["status", "run-9"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "There is no run 'run-9'. Known: run-1, run-0." in result.stderr
