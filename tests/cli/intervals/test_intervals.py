"""`stagehold intervals` over a lake that attempts wrote to, without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import delete
from tests.run.clearing.nights import PIPELINE, STAGES, Nights
from typer.testing import CliRunner, Result

from stagehold.cli.main import app
from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.schema import partitions

pytestmark = pytest.mark.slow

DAY, NEXT = "2026-11-20", "2026-11-21"
Command = Callable[..., Result]


@pytest.fixture
def nights(tmp_path):
    nights = Nights(tmp_path)
    for day in (DAY, NEXT):
        nights.run(day)
    nights.declare()
    return nights


@pytest.fixture
def stagehold(nights) -> Command:
    return lambda *words: CliRunner().invoke(app, words, env=nights.settings.environment)


@pytest.fixture
def command(stagehold) -> Command:
    return lambda *words: stagehold("intervals", *words)


def document(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def test_list_shows_what_there_is_of_each(nights, command):
    listed = document(command("list", PIPELINE, "--json"))["intervals"]
    assert [(one["interval"], one["state"], one["run"]["run_id"]) for one in listed] == [
        (NEXT, "complete", f"r.{NEXT}"),
        (DAY, "complete", f"r.{DAY}"),
    ]
    shown = command("list", PIPELINE, "--limit", "1").stdout
    assert "drafts 3/3, edits 3/3, prints 3/3" in shown
    assert DAY not in shown


def test_list_tells_what_is_declared_and_has_no_record(nights, command):
    with Database(nights.settings.ledger_url).writing() as connection:
        of_it = (partitions.c.interval == NEXT, partitions.c.stage == nights.pipeline.stage("prints").id)
        connection.execute(delete(partitions).where(*of_it, partitions.c.partition == 2))
    listed = document(command("list", PIPELINE, "--json"))["intervals"]
    told = {one["interval"]: (one["state"], one["standing"]) for one in listed}
    assert told == {
        DAY: ("complete", "9 of 9 consumable"),
        NEXT: ("incomplete", "8 of 9 consumable, 1 missing"),
    }
    assert "drafts 3/3, edits 3/3, prints 2/3" in command("list", PIPELINE).stdout


def test_diff_shows_stages_side_by_side(nights, command):
    stages = document(command("diff", PIPELINE, DAY, NEXT, "--json"))["stages"]
    assert [(stage["stage"], stage["one"]["rows"], stage["equal"]) for stage in stages] == [
        (stage, 3, 3) for stage in STAGES
    ]
    shown = command("diff", PIPELINE, f"{DAY}T00:00:00Z", NEXT).stdout
    assert f"{PIPELINE}: {DAY} -> {NEXT}" in shown
    assert "3 of 3" in shown


def test_delete_shows_what_it_would_free_and_does_nothing_before_it_is_told_to(nights, command):
    shown = command("delete", PIPELINE, DAY)
    assert shown.exit_code == 0, shown.output
    assert "would be freed at most; nothing was changed. Add --yes to do it." in shown.stdout
    assert nights.published(DAY) == nights.expected
    done = document(command("delete", PIPELINE, DAY, "--yes", "--reason", "loaded twice", "--json"))
    assert (nights.published(DAY), nights.published(NEXT)) == ([], nights.expected)
    announced = sum(stage["bytes"] for stage in done["intervals"][0]["stages"])
    assert sum(one["bytes"] for one in done["freed"] if one["stage"]) == announced > 0
    states = {
        interval["interval"]: interval["state"]
        for interval in document(command("list", PIPELINE, "--json"))["intervals"]
    }
    assert states == {DAY: "empty", NEXT: "complete"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["delete", PIPELINE, DAY, "2026-12-24", "--yes"], "no interval on record '2026-12-24'"),
        (["diff", PIPELINE, DAY, "2026-12-24"], "no interval on record '2026-12-24'"),
        (["pin", PIPELINE, "2026-12-24"], f"no interval on record of {PIPELINE} '2026-12-24'"),
        (["unpin", PIPELINE, DAY], f"no pinned interval of {PIPELINE} '{DAY}'"),
        (["list", "papers"], "There is no pipeline 'papers'"),
        (["delete", PIPELINE, "2026-13-01"], "is no date"),
    ],
)
def test_what_is_not_there_is_an_error_and_nothing_goes(nights, command, words, told):
    refused = command(*words)
    assert refused.exit_code == 1
    assert told in refused.stderr
    assert nights.published(DAY) == nights.expected


def test_pin_keeps_an_interval_until_unpin_and_the_list_says_why(nights, command):
    pinned = document(command("pin", PIPELINE, DAY, f"{NEXT}T00:00:00Z", "--why", "the audit", "--by", "ann", "--json"))
    assert [(pin["interval"], pin["pinned"], pin["said_by"], pin["released_before"]) for pin in pinned["pins"]] == [
        (DAY, True, "ann", 0),
        (NEXT, True, "ann", 0),
    ]
    listed = document(command("list", PIPELINE, "--json"))["intervals"]
    assert {one["interval"]: one["pin"]["reason"] for one in listed} == {DAY: "the audit", NEXT: "the audit"}
    refused = command("delete", PIPELINE, DAY, "--yes")
    assert refused.exit_code == 1
    assert f"`stagehold intervals unpin {PIPELINE} {DAY}` lets it go." in refused.stderr
    shown = command("unpin", PIPELINE, NEXT, "--why", "done")
    assert "not pinned any more" in shown.stdout
    shown = command("list", PIPELINE).stdout
    assert f"{DAY} is pinned by ann at " in shown
    assert f"{NEXT} is pinned" not in shown
    assert nights.published(DAY) == nights.expected


def test_a_pin_that_comes_too_late_says_so(nights, command):
    for day in ("2026-11-22", "2026-11-23"):
        nights.run(day)
    shown = command("pin", PIPELINE, DAY)
    assert f"{DAY}: 6 partitions were released before; a run that needs them computes them." in shown.stdout


def test_collecting_garbage_says_what_a_pin_keeps(nights, command, stagehold):
    command("pin", PIPELINE, DAY, "--why", "the audit", "--by", "ann")
    for day in ("2026-11-22", "2026-11-23"):
        nights.run(day)
    shown = stagehold("gc", "--dry-run")
    assert shown.exit_code == 0, shown.output
    assert f"kept: {PIPELINE} {DAY}: 6 files, " in shown.stdout
    assert f"(UTC): the audit. `stagehold intervals unpin {PIPELINE} {DAY}` lets them go." in shown.stdout
