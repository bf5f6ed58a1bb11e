"""`stagehold plan --restore`: what a run that begins with a savepoint would take over, leave behind and compute."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.run.checkpoints.paper_run import INTERVAL, LEFT, PARTITIONS, PIPELINE, RIGHT, PaperRun
from typer.testing import CliRunner, Result

from stagehold.cli.main import app


def declare(run: PaperRun, **stages: dict[str, Any]) -> None:
    splits = [f"${{lake}}/raw/{partition}.parquet" for partition in range(PARTITIONS)]
    source = {"kind": "parquet", "splits": splits}
    declared = {name: {"job": f"paper_jobs:{name}", "source": source, **changed} for name, changed in stages.items()}
    declaration = {"pipeline": PIPELINE, "verify": "never", "stages": declared}
    Path(run.settings.pipelines, "paper.yaml").write_text(yaml.safe_dump(declaration))


@pytest.fixture
def paper(tmp_path):
    run = PaperRun.make(tmp_path)
    declare(run, left={}, right={})
    run.work(LEFT)
    run.work(RIGHT)
    made = CliRunner().invoke(app, ["savepoint", "create", "--name", "kept"], env=dict(run.settings.environment))
    assert made.exit_code == 0, made.output
    return run


def plan(run: PaperRun, *words: str) -> Result:
    given = ["plan", PIPELINE, "--interval", INTERVAL, "--restore", "kept", *words]
    return CliRunner().invoke(app, given, env=dict(run.settings.environment))


def document(run: PaperRun, *words: str) -> dict[str, Any]:
    result = plan(run, "--json", *words)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_all_of_an_unchanged_pipeline_is_taken_over(paper):
    found = document(paper)
    assert (found["reuse"], found["run"], found["restore"]["restored"]) == (2 * PARTITIONS, 0, 2 * PARTITIONS)
    text = plan(paper).stdout
    assert "begins with savepoint kept of run r" in text
    assert f"{PARTITIONS} of {PARTITIONS}" in text
    assert "took" in text


def test_a_renamed_stage_is_refused_with_the_line_to_add(paper):
    declare(paper, left={}, moved={"job": "paper_jobs:right"})
    refused = plan(paper)
    assert refused.exit_code == 1
    assert "right: the pipeline has no such stage, so nobody would take its data and state" in refused.output
    assert "moved looks like right renamed (same job function, reads the same, read by the same)" in refused.output
    assert "put `uid: right` there" in refused.output
    declare(paper, left={}, moved={"job": "paper_jobs:right", "uid": "right"})
    assert document(paper)["restore"]["restored"] == 2 * PARTITIONS


def test_a_removed_stage_is_refused_unless_it_may_be_left_behind(paper):
    declare(paper, left={})
    refused = plan(paper)
    assert refused.exit_code == 1
    assert "add --allow-non-restored-state" in refused.output
    allowed = document(paper, "--allow-non-restored-state")
    assert (allowed["restore"]["left_behind"], allowed["run"]) == (["right"], 0)
    assert "is left behind: the pipeline does not have it" in plan(paper, "--allow-non-restored-state").stdout


def test_an_added_stage_starts_empty(paper):
    declare(paper, left={}, right={}, third={"job": "paper_jobs:left"})
    found = document(paper)
    assert (found["restore"]["starts_empty"], found["run"], found["reuse"]) == (["third"], PARTITIONS, 2 * PARTITIONS)
    assert "starts empty: the checkpoint does not have it" in plan(paper).stdout


def test_a_stage_that_is_cut_differently_is_computed(paper):
    whole = {"kind": "parquet", "path": "${lake}/raw/*.parquet", "splits": 3}
    declare(paper, left={}, right={"source": whole})
    found = document(paper)
    assert (found["reuse"], found["run"]) == (PARTITIONS, 3)
    assert "it is cut into 3 now" in plan(paper).stdout


def test_both_kinds_of_restore_at_once_are_refused(paper):
    refused = plan(paper, "--restore-from-stage", LEFT)
    assert refused.exit_code == 1
    assert "one of --restore and --restore-from-stage" in refused.output
