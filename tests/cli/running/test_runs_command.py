"""What `stagehold runs` shows of runs that went to their end on a real ledger and a real lake."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.run.clearing.nights import PIPELINE, Nights
from typer.testing import CliRunner

from stagehold.cli.main import app

pytestmark = pytest.mark.slow

DAYS = [f"2026-11-{day}" for day in range(20, 25)]
FIRST, AGAIN = f"r.{DAYS[0]}", f"again.{DAYS[0]}"


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    """The outputs of the first night were released when the others had run, and it is computed again from a stage."""
    nights = Nights(tmp_path_factory.mktemp("nights"))
    for day in DAYS:
        nights.run(day)
    nights.run(DAYS[0], "again", restore="prints")
    nights.run(DAYS[-1], "idle")
    nights.declare()
    return nights


@pytest.fixture
def stagehold(nights) -> Callable[..., str]:
    def command(*words: str, code: int = 0) -> str:
        done = CliRunner().invoke(app, ["runs", *words], env=nights.settings.environment)
        assert done.exit_code == code, done.output
        return done.output

    return command


def test_each_run_says_of_each_stage_what_it_did(stagehold):
    told = json.loads(stagehold(PIPELINE, "--json"))
    assert (told["following"], told["looked_at"]) == (None, 7)
    squares = {one["run"]["run_id"]: {each["stage"]: each for each in one["squares"]} for one in told["runs"]}
    assert next(iter(squares)) == f"idle.{DAYS[-1]}"
    assert {stage: one["outcome"] for stage, one in squares[AGAIN].items()} == {
        "drafts": "healed",
        "edits": "healed",
        "prints": "ran",
    }
    assert squares[AGAIN]["drafts"]["counts"] == {"healed": 3, "ran": 3}
    assert squares[AGAIN]["prints"]["counts"] == {"ran": 3}
    assert {one["outcome"] for one in squares[FIRST].values()} == {"ran"}
    assert {one["outcome"] for one in squares[f"idle.{DAYS[-1]}"].values()} == {"reused"}
    idle = next(one for one in told["runs"] if one["run"]["run_id"] == f"idle.{DAYS[-1]}")
    assert idle["spared"] == pytest.approx(sum(one["spared"] for one in idle["squares"]))


def test_the_table_has_a_column_for_each_stage_and_filters_leave_the_rest_out(stagehold):
    shown = stagehold(PIPELINE, "--outcome", "healed")
    assert "3 healed, 3 ran" in shown
    assert (AGAIN in shown, FIRST in shown) == (True, False)
    assert "3 reused" in stagehold(PIPELINE, "--outcome", "reused", "--stage", "edits")
    assert "No run on record is like that." in stagehold(PIPELINE, "--outcome", "blocked")


def test_the_page_is_turned_with_what_the_foot_says(stagehold):
    first = stagehold(PIPELINE, "--limit", "2")
    last = json.loads(stagehold(PIPELINE, "--limit", "2", "--json"))["following"]
    assert f"--before '{last}'" in first
    rest = json.loads(stagehold(PIPELINE, "--before", last, "--json"))
    assert len(rest["runs"]) == 5
    assert rest["following"] is None


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--stage", "nowhere", "--outcome", "ran"), "nowhere"),
        (("--before", "nobody's"), "nobody's"),
    ],
)
def test_what_is_not_there_is_refused_by_name(stagehold, words, told):
    assert told in stagehold(PIPELINE, *words, code=1)
