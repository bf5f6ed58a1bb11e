from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.ledger.samples import START, gate_result, record, run, waiver
from typer.testing import CliRunner

from stagehold.cli.main import app
from stagehold.ledger import Ledger
from stagehold.model.choices import Severity
from stagehold.model.records import WHOLE, StageVerdict
from stagehold.model.standing import PartitionState
from stagehold.plan.grounds.content_verdicts import content_of


@pytest.fixture
def ledger(tmp_path, ledger_file, monkeypatch):
    monkeypatch.setenv("STAGEHOLD_HOME", str(tmp_path))
    with Ledger.open(f"sqlite:///{ledger_file}") as opened:
        opened.runs.start(run())
        yield opened


@pytest.fixture
def judged(ledger):
    """Two of three partitions lack something; the first was judged twice."""
    lease = ledger.leases.acquire("lease", "me", 60)
    ledger.partitions.record([record(0), record(1, state=PartitionState.BLOCKED), record(2)], lease)
    ledger.gates.record([gate_result(0, passed=False)])
    again = [gate_result(0, passed=True), gate_result(1, passed=False), gate_result(2, passed=False)]
    rows = [
        replace(gate_result(number, passed=True), expectation="some rows", severity=Severity.WARNING)
        for number in range(3)
    ]
    ledger.gates.record([replace(one, attempt_id="attempt-2") for one in (*again, *rows)])


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["gates", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_each_expectation_is_shown_with_the_partitions_that_do_not_meet_it(judged):
    lines = [line.split() for line in invoke("run-1").splitlines()]
    when = START.strftime("%Y-%m-%d %H:%M:%S").split()
    assert ["joined", "joined", "critical", "1", "2", "(1-2)", *when, "no", "nulls", "3", "nulls"] in lines
    assert ["joined", "joined", "warning", "3", "0", *when, "some", "rows"] in lines
    assert "some rows" not in invoke("run-1", "--failed")


def test_programs_get_every_partition_that_failed(judged):
    told = json.loads(invoke("run-1", "--json"))
    assert (told["run"], told["pipeline"], told["interval"]) == ("run-1", "sales", "2024-01-01")
    nulls, rows = told["gates"]
    assert (nulls["expectation"], nulls["passed"]) == ("no nulls", 1)
    assert nulls["failed"] == [{"partition": 1, "observed": "3 nulls"}, {"partition": 2, "observed": "3 nulls"}]
    assert (rows["expectation"], rows["passed"], rows["failed"]) == ("some rows", 3, [])


def test_programs_get_what_great_expectations_said_of_each_partition(ledger):
    lease = ledger.leases.acquire("lease", "me", 60)
    blocked = [record(number, state=PartitionState.BLOCKED, refused=("no nulls",)) for number in (1, 2)]
    ledger.partitions.record([record(0), *blocked], lease)
    asked, seen = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "a"}}, {"unexpected_count": 3}
    ledger.gates.record(
        [
            gate_result(0, passed=True),
            *(
                replace(gate_result(number, passed=False), configuration=json.dumps(asked), result=json.dumps(seen))
                for number in (1, 2)
            ),
        ]
    )
    ledger.waivers.record([waiver(2)])
    (one,) = json.loads(invoke("run-1", "--json"))["gates"]
    assert one["severity"] == "critical"
    old, failed, waived = one["results"]
    assert (old["success"], old["expectation_config"], old["result"], old["waived"]) == (True, {}, {}, None)
    assert (failed["partition"], failed["success"], failed["severity"]) == (1, False, "critical")
    assert (failed["expectation_config"], failed["result"], failed["waived"]) == (asked, seen, None)
    assert waived["waived"] == {
        "by": "ann",
        "reason": "known since March",
        "when": START.isoformat(),
        "until": None,
    }
    assert "2 (1-2), 1 waived" in invoke("run-1")


def test_a_run_whose_stages_have_no_gate_says_so(ledger):
    assert invoke("run-1") == "sales for 2024-01-01: no gate has judged anything\n"


def test_nothing_that_failed_is_good_news(ledger):
    lease = ledger.leases.acquire("lease", "me", 60)
    ledger.partitions.record([record(0)], lease)
    ledger.gates.record([gate_result(0, passed=True)])
    assert invoke("run-1", "--failed") == "sales for 2024-01-01: every partition meets what its gate asks for\n"


def test_a_run_that_nobody_knows_is_an_error(ledger):
    result = CliRunner().invoke(app, ["gates", "run-7"])
    assert result.exit_code == 1
    assert "run-7" in result.stderr


@pytest.mark.slow  # imports Great Expectations, which takes seconds
def test_pages_are_written_into_the_lake_and_the_command_says_where(judged, tmp_path):
    index = tmp_path / "lake/_docs/sales/2024-01-01/index.html"
    assert f"Pages: {index}" in invoke("run-1", "--docs").splitlines()
    assert {path.name for path in index.parent.iterdir()} == {"index.html", "0.html", "1.html"}
    assert 'href="0.html">joined[1-2]<' in index.read_text()
    assert json.loads(invoke("run-1", "--failed", "--docs", "--json"))["docs"] == str(index)


def test_where_nothing_was_judged_no_pages_are_written(ledger, tmp_path):
    assert "no gate has judged anything" in invoke("run-1", "--docs")
    assert not (tmp_path / "lake/_docs").exists()


def test_what_is_said_of_all_partitions_together_stands_apart(ledger):
    records = [record(number, state=PartitionState.HELD, version=None) for number in range(2)]
    ledger.partitions.record(records, ledger.leases.acquire("lease", "me", 60))
    ledger.gates.record([gate_result(0, passed=True), gate_result(1, passed=True), gate_result(WHOLE, passed=False)])
    verdict = StageVerdict(records[0].cell, content_of(records), "gate", "attempt-1", START, ("no nulls",), "3 nulls")
    ledger.stage_verdicts.record(verdict)
    assert "1 (all together)" in invoke("run-1")
    told = {gate["scope"]: gate for gate in json.loads(invoke("run-1", "--json"))["gates"]}
    assert (told["partition"]["passed"], told["partition"]["failed"]) == (2, [])
    assert told["stage"]["failed"] == [{"partition": WHOLE, "observed": "3 nulls"}]
    status = CliRunner().invoke(app, ["status", "run-1", "--json"])
    (stage,) = json.loads(status.stdout)["stages"]
    assert (stage["held"], stage["consumable"]) == (2, 0)
    (failure,) = json.loads(status.stdout)["gate_failures"]
    assert (failure["scope"], failure["expectation"]) == ("stage", "no nulls")
