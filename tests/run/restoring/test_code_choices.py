"""What becomes of data of other code in a run that begins with a savepoint, in every attempt of it and after it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.test_plan_restore import declare, rewrite
from tests.run.checkpoints.paper_run import INTERVAL, LEFT, PARTITIONS, PIPELINE, RIGHT, PaperRun
from tests.run.clearing.nights import Nights
from tests.run.restoring.test_snapshots import DAY, OTHER, checkpoint, computed, save
from typer.testing import CliRunner, Result

from stagehold.cli.main import app
from stagehold.model.choices import CodeChoice, CodeHandling
from stagehold.model.keys.compute_key import ComputeKey

pytestmark = pytest.mark.slow


@pytest.fixture
def nights(tmp_path):
    return Nights(tmp_path)


def kept(nights: Nights, stage: str) -> tuple[CodeChoice, ...]:
    """The choice to keep what the savepoint has of the stage."""
    (snapshot,) = (one for one in checkpoint(nights).stages if one.shape.name == stage)
    keys = [ComputeKey.parse(partition.compute_key) for partition in snapshot.partitions]
    codes = tuple(sorted({key.code for key in keys if key}))
    return (CodeChoice(snapshot.shape.id, CodeHandling.KEEP, codes, "ann", "a log line"),)


def test_data_of_other_code_counts_for_the_run_and_for_no_later_one(nights):
    nights.run(DAY)
    manifest = save(nights)
    nights.rewrite("edits", "return drafts, 1")
    nights.run(DAY, "back", snapshot=manifest, code_choices=kept(nights, "edits"))
    assert computed(nights, "back") == 0
    assert {record.reason for record in nights.records(DAY, "edits")} == {"from savepoint kept of run r.2026-11-20"}
    nights.run(DAY, "later")
    assert computed(nights, "later") == 2 * len(nights.records(DAY, "edits")), "edits, and prints that reads it"


def test_a_retry_goes_on_with_what_was_kept(nights):
    nights.run(DAY)
    manifest = save(nights)
    nights.rewrite("edits", "return drafts, 1")
    asked = {"snapshot": manifest, "code_choices": kept(nights, "edits")}
    nights.begin(OTHER, "drafts", "back", **asked).go_to("its end", most=2000)
    died = nights.begin(OTHER, "edits", "back", **asked)
    for _ in range(12):
        died.step()
    died.kill()
    nights.end_leases()
    nights.run(OTHER, "back", **asked)
    nights.run(OTHER, "back", **asked)
    assert computed(nights, "back", OTHER) == 0
    nights.check()


def test_an_edit_between_two_tries_is_noticed(nights):
    """What the first try computed with its own code was not meant."""
    attempt = nights.begin(DAY, "drafts")
    attempt.go_to("its end", most=2000)
    manifest = save(nights)
    asked = {"snapshot": manifest, "code_choices": kept(nights, "drafts")}
    nights.run(DAY, "back", **asked)
    before = computed(nights, "back")
    nights.rewrite("edits", "return drafts, 2")
    nights.run(DAY, "back", **asked)
    assert computed(nights, "back") == 2 * before
    nights.check()


@pytest.fixture
def paper(tmp_path):
    run = PaperRun.make(tmp_path)
    declare(run, left={}, right={})
    run.work(LEFT)
    run.work(RIGHT)
    made = command(run, "savepoint", "create", "--name", "kept")
    assert made.exit_code == 0, made.output
    rewrite(run, "left")
    return run


def command(run: PaperRun, *words: str) -> Result:
    return CliRunner().invoke(app, words, env=dict(run.settings.environment))


def restored(run: PaperRun, *words: str) -> Result:
    result = command(run, "run", PIPELINE, "--interval", INTERVAL, "--restore", "kept", "--json", *words)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["reused"] == 2 * PARTITIONS
    return result


def planned(run: PaperRun) -> int:
    found = command(run, "plan", PIPELINE, "--interval", INTERVAL, "--json")
    return int(json.loads(found.stdout)["run"])


def test_what_is_accepted_with_a_restore_is_on_record_and_counts_from_then_on(paper):
    said = restored(paper, "--on-code-change", "left=accept").stderr
    assert "left: code changed; accepted (as this restore says)" in said
    with paper.ledger() as ledger:
        (word,) = ledger.acceptances.of(PIPELINE)
    assert (word.stage, word.interval, word.reason) == ("left", None, "restored from savepoint kept of run r")
    assert word.accepted_by
    assert planned(paper) == 0
    restored(paper)
    with paper.ledger() as ledger:
        assert len(ledger.acceptances.of(PIPELINE)) == 1


def test_what_is_kept_is_on_record_with_the_request_and_a_resume_sees_it(paper):
    said = restored(paper, "--run-id", "back", "--on-code-change", "left=keep", "--reason", "a log line").stderr
    assert "left: code changed; kept (as this restore says)" in said
    with paper.ledger() as ledger:
        (asked,) = ledger.restores.of_run("back")
        assert ledger.acceptances.of(PIPELINE) == ()
    assert [(one.stage, one.handling, one.reason) for one in asked.code_choices] == [("left", "keep", "a log line")]
    again = json.loads(command(paper, "resume", "back", "--dry-run", "--json").stdout)
    assert again["run"] == 0
    assert "keeps for this run: a log line" in again["decisions"][0]["reason"]
    assert planned(paper) == PARTITIONS, "a later run of the interval computes it"


def test_a_run_that_is_asked_again_goes_on_with_the_same_request_unless_it_chooses_otherwise(paper):
    for _ in range(2):
        restored(paper, "--run-id", "back", "--on-code-change", "left=keep")
    with paper.ledger() as ledger:
        assert len(ledger.restores.of_run("back")) == 1
    restored(paper, "--run-id", "back", "--on-code-change", "left=accept")
    with paper.ledger() as ledger:
        assert [restore.code_choices[0].handling for restore in ledger.restores.of_run("back")] == ["accept", "keep"]


def test_code_that_cannot_be_compared_can_be_kept_and_not_accepted(paper):
    jobs = Path(paper.settings.project, "paper_jobs.py")
    jobs.write_text(jobs.read_text().replace("return 1", "return eval('1')"))
    asked = ("plan", PIPELINE, "--interval", INTERVAL, "--restore", "kept", "--on-code-change")
    assert "its present code cannot be compared" in command(paper, *asked, "left=accept").output
    assert command(paper, *asked, "left=keep").exit_code == 0
