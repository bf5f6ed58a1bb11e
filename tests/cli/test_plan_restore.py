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

pytestmark = pytest.mark.slow


def declare(run: PaperRun, *, match: str = "names", **stages: dict[str, Any]) -> None:
    splits = [f"${{lake}}/raw/{partition}.parquet" for partition in range(PARTITIONS)]
    source = {"kind": "parquet", "splits": splits}
    declared = {name: {"job": f"paper_jobs:{name}", "source": source, **changed} for name, changed in stages.items()}
    declaration = {"pipeline": PIPELINE, "verify": "never", "match": match, "stages": declared}
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
    assert "put `was: right` there" in refused.output
    declare(paper, left={}, moved={"job": "paper_jobs:right", "was": "right"})
    assert document(paper)["restore"]["restored"] == 2 * PARTITIONS


def test_a_renamed_stage_takes_what_its_place_gives_it_if_the_pipeline_says_so(paper):
    declare(paper, match="structure", left={}, moved={"job": "paper_jobs:right"})
    assert document(paper)["restore"]["restored"] == 2 * PARTITIONS
    assert "moved (was right)" in plan(paper).stdout
    declare(paper, match="structur", left={})
    assert "structur'; allowed: names, structure" in plan(paper).output


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


def rewrite(run: PaperRun, stage: str) -> None:
    """Give the stage's function another body."""
    jobs = Path(run.settings.project, "paper_jobs.py")
    jobs.write_text(jobs.read_text().replace(f"def {stage}(ctx, source): ...", f"def {stage}(ctx, source): return 1"))


def changes(found: dict[str, Any]) -> list[tuple[Any, ...]]:
    told = ("stage", "changed", "partitions", "on_code_change", "decided_by", "spares", "costs")
    return [tuple(change[name] for name in told) for change in found["restore"]["changes"]]


def test_changed_code_is_computed_unless_it_is_kept_and_the_plan_says_what_that_is_worth(paper):
    assert document(paper)["restore"]["changes"] == []
    rewrite(paper, "left")
    computed = document(paper)
    assert changes(computed) == [("left", ["code"], PARTITIONS, "recompute", "default", 0, PARTITIONS)]
    assert computed["run"] == PARTITIONS
    kept = document(paper, "--on-code-change", "left=keep", "--reason", "a log line")
    assert changes(kept) == [("left", ["code"], PARTITIONS, "keep", "option", PARTITIONS, 0)]
    assert kept["run"] == 0
    text = plan(paper, "--on-code-change", "keep").stdout
    assert f"spares {PARTITIONS} partitions" in text
    assert "--on-code-change left=recompute|accept" in text
    assert f"costs {PARTITIONS} partitions" in plan(paper).stdout


def test_what_the_stage_keeps_may_be_computed_all_the_same(paper):
    rewrite(paper, "left")
    declare(paper, left={"on_code_change": "keep"}, right={})
    assert changes(document(paper)) == [("left", ["code"], PARTITIONS, "keep", "stage", PARTITIONS, 0)]
    computed = document(paper, "--on-code-change", "recompute")
    assert changes(computed) == [("left", ["code"], PARTITIONS, "recompute", "option", 0, PARTITIONS)]
    assert computed["run"] == PARTITIONS


def test_only_changed_code_can_be_kept(paper):
    rewrite(paper, "left")
    published = {name: {"output": {"type": "blocking_persistent", "table": f"marts.{name}"}} for name in (LEFT, RIGHT)}
    declare(paper, **published)
    found = document(paper, "--on-code-change", "left=keep")
    assert changes(found) == [
        ("left", ["code", "settings"], PARTITIONS, "keep", "option", 0, 0),
        ("right", ["settings"], 0, None, None, 0, 0),
    ]
    text = plan(paper, "--on-code-change", "left=keep").stdout
    assert "computed anew all the same, since settings changed as well: only code can be kept" in text
    assert "computed anew, since only changed code can be kept" in text


def test_a_plan_accepts_nothing_and_shows_what_accepting_would_spare(paper):
    rewrite(paper, "left")
    found = document(paper, "--on-code-change", "left=accept")
    assert changes(found) == [("left", ["code"], PARTITIONS, "accept", "option", PARTITIONS, 0)]
    assert changes(document(paper))[0][3] == "recompute"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--on-code-change", "lft=keep"], "There is no stage of paper 'lft'. Known: left, right."),
        (["--on-code-change", "left=kept"], "STAGE=WORD, or a WORD for every other stage whose code changed"),
        (["--on-code-change", "=keep"], "a WORD is one of recompute, keep, accept"),
        (["--on-code-change", "left"], "a WORD is one of recompute, keep, accept"),
    ],
)
def test_what_cannot_be_chosen_is_refused_with_what_can(paper, words, said):
    refused = plan(paper, *words)
    assert refused.exit_code == 1
    assert said in refused.output


def test_a_choice_for_a_stage_that_did_not_change_is_told_to_decide_nothing(paper):
    found = plan(paper, "--json", "--on-code-change", "right=keep")
    assert found.exit_code == 0
    assert "has nothing of right that other code made, so that decides nothing" in found.stderr
    assert json.loads(found.stdout)["restore"]["changes"] == []


def test_a_stage_whose_output_is_not_stored_has_no_code_of_its_own(paper):
    jobs = Path(paper.settings.project, "paper_jobs.py")
    jobs.write_text(jobs.read_text().replace("def right(ctx, source)", "def right(ctx, left)"))
    declare(paper, left={"output": {"type": "pipelined"}}, right={"source": None, "inputs": {"left": "forward"}})
    refused = plan(paper, "--on-code-change", "left=keep")
    assert refused.exit_code == 1
    assert "allowed: right; left is not stored, so its code is a part of what its readers read" in refused.output


@pytest.mark.parametrize("words", [["--on-code-change", "keep"], ["--claim-mode", "claim"]])
def test_what_belongs_to_a_restore_is_refused_without_one(paper, words):
    given = ["plan", PIPELINE, "--interval", INTERVAL, *words]
    refused = CliRunner().invoke(app, given, env=dict(paper.settings.environment))
    assert refused.exit_code == 1
    assert "give --restore as well" in refused.output


def test_a_savepoint_of_another_lake_cannot_be_claimed(paper, tmp_path):
    environment, there = dict(paper.settings.environment), tmp_path / "there"
    CliRunner().invoke(app, ["savepoint", "export", "kept", str(there)], env=environment)
    given = ["plan", PIPELINE, "--interval", INTERVAL, "--restore", str(there), "--claim-mode", "claim"]
    refused = CliRunner().invoke(app, given, env=environment)
    assert refused.exit_code == 1
    assert "which lies in another lake" in refused.output
    assert document(paper, "--claim-mode", "claim")["restore"]["claim_mode"] == "claim"
