"""What was released and is needed is said by every command that shows a plan, and it is what is computed then."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from tests.run.clearing.nights import PIPELINE, Nights
from typer.testing import CliRunner

from stagehold.cli.main import app
from stagehold.model.standing import PartitionState
from stagehold.run.intervals.pinning import pin_intervals
from stagehold.run.planning.restoring import healed_in

pytestmark = pytest.mark.slow

DAYS = [f"2026-11-{day}" for day in range(20, 25)]
RELEASED, PINNED = DAYS[0], DAYS[1]
SAID = f"restores from prints; drafts of {RELEASED} was released: 3 partitions, "
AND = f"edits of {RELEASED} was released: 3 partitions, "


@pytest.fixture
def nights(tmp_path):
    """Of the first night the outputs were released, those of the second one are kept by a pin alone."""
    nights = Nights(tmp_path)
    for day in DAYS[:2]:
        nights.run(day)
    pin_intervals(PIPELINE, [PINNED], "ann", "", nights.ledger)
    for day in DAYS[2:]:
        nights.run(day)
    nights.declare()
    return nights


@pytest.fixture
def stagehold(nights) -> Callable[..., str]:
    def command(*words: str) -> str:
        done = CliRunner().invoke(app, words, env=nights.settings.environment)
        assert done.exit_code == 0, done.output
        return done.stdout

    return command


def plan_of(day: str) -> tuple[str, ...]:
    return ("plan", PIPELINE, "--interval", day, "--restore-from-stage", "prints")


def backfill_of(first: str, last: str) -> tuple[str, ...]:
    return ("backfill", PIPELINE, "--from", first, "--to", last, "--restore-from-stage", "prints", "--dry-run")


def test_every_preview_says_it_and_none_of_what_is_pinned(nights, stagehold):
    for words in (plan_of(RELEASED), backfill_of(RELEASED, PINNED)):
        shown = stagehold(*words)
        assert SAID in shown
        assert AND in shown
        assert f"of {PINNED} was released" not in shown
    assert "was released" not in stagehold(*plan_of(PINNED))
    planned = json.loads(stagehold(*plan_of(RELEASED), "--json"))["released"]
    assert planned["text"].startswith(SAID)
    assert [(output["stage"], output["partitions"]) for output in planned["outputs"]] == [
        ("drafts", [0, 1, 2]),
        ("edits", [0, 1, 2]),
    ]
    assert "released" not in json.loads(stagehold(*plan_of(PINNED), "--json"))
    backfill = json.loads(stagehold(*backfill_of(RELEASED, PINNED), "--json"))
    assert backfill["released"].startswith(SAID)
    cells = {
        (interval["interval"], cell["stage"]): (cell["runs"], cell["released"])
        for interval in backfill["intervals"]
        for cell in interval["cells"]
    }
    assert cells[RELEASED, "edits"] == cells[RELEASED, "drafts"] == (3, 3)
    assert cells[PINNED, "edits"] == cells[PINNED, "drafts"] == (0, 0)
    assert cells[RELEASED, "prints"] == cells[PINNED, "prints"] == (3, 0)


def test_a_run_says_it_first_and_computes_just_that(nights):
    began, nights.said[:] = datetime.now(UTC), []
    nights.begin(RELEASED, "prints", "again", restore="prints").go_to("its end", most=2000)
    first = next(line for line in nights.said if "was released" in line or "partitions" in line)
    assert first.startswith(SAID)
    computed = {
        stage: {record.partition for record in nights.records(RELEASED, stage) if record.run_id == f"again.{RELEASED}"}
        for stage in ("drafts", "edits")
    }
    assert computed == {"drafts": {0, 1, 2}, "edits": {0, 1, 2}}
    told = healed_in(f"again.{RELEASED}", began, nights.ledger)
    assert [one.partition(":")[0] for one in told] == [f"{stage} of {RELEASED} was released" for stage in computed]
    assert all(one.endswith(", computed again") for one in told)
    assert healed_in(f"again.{RELEASED}", datetime.now(UTC) + timedelta(hours=1), nights.ledger) == ()


def test_who_restores_what_is_pinned_has_nothing_to_say_and_computes_nothing_else(nights):
    nights.run(PINNED, "again", restore="prints")
    assert healed_in(f"again.{PINNED}", datetime.min.replace(tzinfo=UTC), nights.ledger) == ()
    for stage in ("drafts", "edits"):
        assert {(record.state, record.run_id) for record in nights.records(PINNED, stage)} == {
            (PartitionState.CONSUMABLE, f"r.{PINNED}")
        }
