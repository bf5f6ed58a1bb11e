"""`stagehold checkpoints list`: what a run was restored from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.test_plan_restore import declare
from tests.run.checkpoints.paper_run import INTERVAL, LEFT, PIPELINE, RIGHT, PaperRun
from typer.testing import CliRunner

from stagehold.cli.main import app

pytestmark = pytest.mark.slow


@pytest.fixture
def paper(tmp_path):
    run = PaperRun.make(tmp_path)
    declare(run, left={}, right={})
    run.work(LEFT)
    run.work(RIGHT)
    command(run, "savepoint", "create", "--name", "kept")
    return run


def command(run: PaperRun, *words: str) -> str:
    result = CliRunner().invoke(app, words, env=dict(run.settings.environment))
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_run_tells_what_it_was_restored_from_and_when(paper):
    assert "restored" not in command(paper, "checkpoints", "list", "--run", "r")
    command(paper, "run", PIPELINE, "--interval", INTERVAL, "--restore", "kept", "--run-id", "b")
    found = json.loads(command(paper, "checkpoints", "list", "--run", "b", "--json"))
    assert (found["counts"]["restored"], found["counts"]["completed"]) == (1, 1)
    restored = found["restored"]
    assert restored["claim_mode"] == "no_claim"
    assert restored["requested_at"] < restored["fulfilled_at"]
    assert Path(restored["manifest"]).name == "0000000002.json"
    text = command(paper, "checkpoints", "list", "--run", "b")
    assert f"restored 1; latest: {restored['manifest']}, asked for" in text
    assert "(no_claim)" in text


def test_a_claimed_savepoint_is_told_to_be_claimed_and_is_gone(paper):
    given = ("--restore", "kept", "--run-id", "b", "--claim-mode", "claim")
    command(paper, "run", PIPELINE, "--interval", INTERVAL, *given)
    assert (
        json.loads(command(paper, "checkpoints", "list", "--run", "b", "--json"))["restored"]["claim_mode"] == "claim"
    )
    assert json.loads(command(paper, "savepoint", "list", "--json"))["savepoints"] == []
    again = CliRunner().invoke(app, ["resume", "b", "--dry-run"], env=dict(paper.settings.environment))
    assert again.exit_code == 0, again.output
