"""`stagehold sandbox`, and what runs and plans in one begin with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.test_plan_restore import declare
from tests.run.checkpoints.paper_run import INTERVAL, LEFT, PARTITIONS, PIPELINE, RIGHT, PaperRun
from typer.testing import CliRunner, Result

from stagehold.cli.main import app

pytestmark = pytest.mark.slow


@pytest.fixture
def paper(tmp_path):
    run = PaperRun.make(tmp_path)
    declare(run, left={}, right={})
    return run


def invoke(run: PaperRun, *words: str) -> Result:
    return CliRunner().invoke(app, words, env={**run.settings.environment, "STAGEHOLD_SANDBOX": None})


def plan(run: PaperRun, *words: str) -> Result:
    return invoke(run, "plan", PIPELINE, "--interval", INTERVAL, "--sandbox", "fix", *words)


def save(run: PaperRun) -> None:
    made = invoke(run, "savepoint", "create", "--name", "kept")
    assert made.exit_code == 0, made.output


def production(run: PaperRun) -> dict[str, bytes]:
    home = run.settings.home_path
    found = [*Path(run.settings.lake_uri).rglob("*"), *home.glob("ledger.db")]
    return {str(path): path.read_bytes() for path in found if path.is_file()}


def test_a_new_sandbox_begins_with_the_latest_of_production(paper):
    paper.work(LEFT)
    save(paper)
    before = production(paper)
    found = plan(paper, "--json")
    assert "sandbox fix has nothing of paper for" in found.stderr
    assert "yet: it begins with" in found.stderr
    document = json.loads(found.stdout)
    assert (document["reuse"], document["run"], document["restore"]["of"]) == (
        PARTITIONS,
        PARTITIONS,
        "savepoint kept of run r",
    )
    assert production(paper) == before


def test_names_are_those_of_production(paper):
    paper.work(LEFT)
    save(paper)
    assert json.loads(plan(paper, "--json", "--restore", "kept").stdout)["reuse"] == PARTITIONS
    refused = plan(paper, "--restore", "other")
    assert refused.exit_code == 1
    assert "other" in refused.stderr


def test_the_ledger_of_production_is_not_asked(paper):
    paper.work(LEFT)
    save(paper)
    Path(paper.settings.home_path, "ledger.db").write_bytes(b"no database")
    assert json.loads(plan(paper, "--json").stdout)["reuse"] == PARTITIONS


def test_production_that_has_nothing_to_begin_with_is_told(paper):
    found = plan(paper, "--json")
    assert "production has nothing to begin with: all of it is computed" in found.stderr
    assert json.loads(found.stdout)["run"] == 2 * PARTITIONS


def test_a_home_without_a_lake_is_refused(paper, tmp_path):
    words = ["plan", PIPELINE, "--interval", INTERVAL, "--sandbox", "fix"]
    home = str(tmp_path / "elsewhere")
    refused = CliRunner().invoke(app, words, env={**paper.settings.environment, "STAGEHOLD_HOME": home})
    assert refused.exit_code == 1
    assert "so sandbox fix has nothing to read" in refused.stderr
    assert not Path(home).exists()


def test_other_commands_show_what_is_in_it(paper):
    paper.work(LEFT)
    paper.work(RIGHT)
    save(paper)
    plan(paper)
    assert "There are no runs yet" in invoke(paper, "status", "--sandbox", "fix").stdout
    assert invoke(paper, "gc", "--sandbox", "fix").exit_code == 0
    assert invoke(paper, "reconcile", "--sandbox", "fix").exit_code == 0
    assert invoke(paper, "savepoint", "list", "--sandbox", "fix").exit_code == 0


def test_they_are_listed_and_removed(paper):
    assert "There are no sandboxes" in invoke(paper, "sandbox", "list").stdout
    before = production(paper)
    plan(paper)
    assert "fix" in invoke(paper, "sandbox", "list").stdout
    (listed,) = json.loads(invoke(paper, "sandbox", "list", "--json").stdout)["sandboxes"]
    assert listed["name"] == "fix"
    assert "Removed sandbox fix" in invoke(paper, "sandbox", "remove", "fix").stdout
    assert json.loads(invoke(paper, "sandbox", "list", "--json").stdout) == {"sandboxes": []}
    assert "There is no sandbox 'fix'" in invoke(paper, "sandbox", "remove", "fix").stderr
    assert production(paper) == before
