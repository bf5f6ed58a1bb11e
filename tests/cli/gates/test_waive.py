"""`stagehold waive` as somebody uses it who knows better than a gate."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.ledger.samples import record, run
from typer.testing import CliRunner

from stagehold.cli.gates.waive import partitions_named
from stagehold.cli.main import app
from stagehold.errors import InvalidArgument
from stagehold.ledger import Ledger
from stagehold.model.records import WHOLE, Cell, StageVerdict
from stagehold.model.standing import PartitionState
from stagehold.plan.grounds.content_verdicts import content_of
from stagehold.plan.resume.waiving import in_force

PIPELINE = "shipping_priority"
CELL = Cell(PIPELINE, "orders", "2024-01-01")
NULLS, RANGE = "expect_column_values_to_not_be_null(key)", "expect_column_values_to_be_between(price, min_value=0)"


@pytest.fixture
def ledger(tmp_path, ledger_file, monkeypatch):
    """A stage with two refused partitions among four, one of which fails two expectations."""
    monkeypatch.setenv("STAGEHOLD_HOME", str(tmp_path))
    with Ledger.open(f"sqlite:///{ledger_file}") as opened:
        opened.runs.start(replace(run(), pipeline=PIPELINE))
        lease = opened.leases.acquire("lease", "me", 60)
        refused = {1: (NULLS,), 2: (NULLS, RANGE)}
        opened.partitions.record(
            [
                record(
                    number,
                    cell=CELL,
                    refused=refused.get(number, ()),
                    state=PartitionState.BLOCKED if number in refused else PartitionState.CONSUMABLE,
                )
                for number in range(4)
            ],
            lease,
        )
        yield opened


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["waive", "--pipeline", PIPELINE, *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["waive", "--pipeline", PIPELINE, *arguments])
    assert result.exit_code == 1, result.output
    return " ".join(result.stderr.split())


def words(ledger: Ledger) -> list[tuple[int, str]]:
    return [
        (verdict.partition, verdict.expectation) for verdict in in_force(ledger.waivers.of(PIPELINE, "2024-01-01"), NOW)
    ]


NOW = datetime.now(UTC)


def test_a_waiver_says_who_why_until_when_and_of_which_data(ledger):
    shown = invoke(
        "orders", "--partition", "1", "--reason", "known since March", "--by", "ann", "--until", "2999-01-31"
    )
    (word,) = ledger.waivers.of(PIPELINE, "2024-01-01")
    assert (word.stage, word.partition, word.expectation) == ("orders", 1, NULLS)
    assert (word.waived_by, word.reason, word.fingerprint) == ("ann", "known since March", "fingerprint of 1")
    assert word.until == datetime(2999, 1, 31, tzinfo=UTC)
    assert "known since March" in shown
    assert "stagehold resume" in shown
    assert invoke("orders", "--list").count("ann") == 1


def test_several_partitions_are_waived_at_once(ledger):
    said = json.loads(invoke("orders", "--partition", "all", "--expectation", NULLS[:40], "--reason", "r", "--json"))
    assert [(waiver["partition"], waiver["expectation"]) for waiver in said["waivers"]] == [(1, NULLS), (2, NULLS)]


def test_it_has_to_be_clear_which_expectation_is_waived(ledger):
    text = refused("orders", "--partition", "2", "--reason", "r")
    assert "more than one expectation may be meant" in text
    assert f"orders[2] {NULLS} orders[2] {RANGE}" in text
    assert "fails unknown" in refused("orders", "--partition", "2", "--expectation", "unknown", "--reason", "r")
    invoke("orders", "--partition", "2", "--expectation", RANGE, "--reason", "r")
    assert words(ledger) == [(2, RANGE)]


def test_what_is_not_refused_is_not_waived_and_what_is_refused_is_named(ledger):
    text = refused("orders", "--partition", "0-1", "--reason", "r")
    assert "its gate does not refuse orders[0]" in text
    assert f"orders[1-2] {NULLS}" in text
    assert words(ledger) == []


def test_a_word_can_be_taken_back(ledger):
    invoke("orders", "--partition", "1", "--reason", "known")
    assert words(ledger) == [(1, NULLS)]
    invoke("orders", "--partition", "1", "--reason", "I was wrong", "--end")
    assert in_force(ledger.waivers.of(PIPELINE, "2024-01-01"), datetime.now(UTC) + timedelta(minutes=5)) == ()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["orders", "--partition", "1"], "--reason is ''"),
        (
            ["orders", "--partition", "one", "--reason", "r"],
            "--partition is 'one'; allowed: numbers and ranges such as",
        ),
        (["orders", "--reason", "r"], "--partition is ''"),
        (["nowhere", "--partition", "1", "--reason", "r"], "There is no stage of shipping_priority 'nowhere'"),
        (
            ["orders", "--partition", "1", "--reason", "r", "--until", "soon"],
            "--until is 'soon'; allowed: a date such as",
        ),
        (["orders", "--partition", "1", "--reason", "r", "--until", "2001-01-01"], "later than now"),
    ],
)
def test_a_problem_is_named_with_what_is_allowed(ledger, arguments, problem):
    assert problem in refused(*arguments)
    assert words(ledger) == []


def test_without_an_interval_the_newest_run_is_meant(ledger):
    assert invoke("--list") == "nothing was waived\n"
    assert invoke("--list", "--interval", "2024-02-01") == "nothing was waived\n"


def test_numbers_and_ranges_name_partitions():
    assert partitions_named("3, 5-7") == {3, 5, 6, 7}
    assert partitions_named("all") is None
    with pytest.raises(InvalidArgument):
        partitions_named("5-x")


def test_all_takes_in_what_the_gate_says_of_the_whole_stage(ledger):
    records = [
        replace(partition, refused=(), state=PartitionState.HELD) for partition in ledger.partitions.newest(CELL)
    ]
    ledger.partitions.record(records, ledger.leases.acquire("lease", "me", 60))
    ledger.stage_verdicts.record(StageVerdict(CELL, content_of(records), "gate", "a", NOW, ("unique(key)",), "got 2"))
    shown = invoke("orders", "--partition", "all", "--reason", "known")
    assert "all together" in shown
    (word,) = ledger.waivers.of(PIPELINE, "2024-01-01")
    assert (word.partition, word.expectation, word.fingerprint) == (WHOLE, "unique(key)", content_of(records))


def test_what_was_said_of_other_content_is_not_waived(ledger):
    records = [
        replace(partition, refused=(), state=PartitionState.HELD) for partition in ledger.partitions.newest(CELL)
    ]
    ledger.partitions.record(records, ledger.leases.acquire("lease", "me", 60))
    ledger.stage_verdicts.record(StageVerdict(CELL, content_of(records[:3]), "gate", "a", NOW, ("unique(key)",)))
    assert "its gate does not refuse orders" in refused("orders", "--partition", "all", "--reason", "known")
