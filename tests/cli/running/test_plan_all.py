"""`stagehold plan --all` on a branch of a clone, against a ledger of a week; nothing of it needs Spark."""

from __future__ import annotations

import json
import subprocess
from datetime import date, timedelta
from pathlib import Path

import pytest
from click.testing import Result
from tests.run.clearing.nights import PARTITIONS, STAGES, Nights
from typer.testing import CliRunner

from stagehold.cli.main import app

pytestmark = pytest.mark.slow
WEEK = [str(date(2026, 11, 16) + timedelta(days=number)) for number in range(7)]
HELPED = "from stagehold import stage\nfrom helpers import tidy, unused\n\n"
HELPERS = "def tidy(frame): return frame\ndef unused(): return 1\n"


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=ann", "-c", "user.email=ann@example.com")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def week(tmp_path_factory) -> Nights:
    """The project of production, in a repository, and seven nights of it."""
    nights = Nights(tmp_path_factory.mktemp("production"))
    project = Path(nights.settings.project)
    jobs = project / "paper_jobs.py"
    jobs.write_text(jobs.read_text().replace("from stagehold import stage\n\n", HELPED))
    (project / "helpers.py").write_text(HELPERS)
    nights.rewrite("edits", "return tidy(drafts)")
    for day in WEEK:
        nights.run(day, run=f"run-{day}")
    nights.declare()
    nights.ledger.close()
    git(project, "init", "-b", "main")
    git(project, "add", ".")
    git(project, "commit", "-m", "As it runs")
    return nights


@pytest.fixture
def clone(week, tmp_path, monkeypatch) -> Path:
    """What a pull request works in. It knows the lake, and has no ledger of its own."""
    folder = tmp_path / "clone"
    git(tmp_path, "clone", str(week.settings.project), str(folder))
    git(folder, "checkout", "-b", "branch")
    places = {"PROJECT": folder, "PIPELINES": folder, "SUITES": folder / "suites", "HOME": tmp_path / "home"}
    for name, place in {**places, "LAKE": week.settings.lake_uri}.items():
        monkeypatch.setenv(f"STAGEHOLD_{name}", str(place))
    return folder


def asked(week: Nights, *options: str, code: int = 0) -> Result:
    against = ("--against", str(week.settings.home_path / "ledger.db"))
    result = CliRunner().invoke(app, ["plan", "--all", *against, *options])
    assert result.exit_code == code, result.output
    return result


def edit(file: Path, old: str, new: str) -> None:
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


def cells(week: Nights, *options: str) -> dict[str, dict[str, int]]:
    """How many partitions are computed again, by interval and stage."""
    document = json.loads(asked(week, "--json", *options).stdout)
    found: dict[str, dict[str, int]] = {}
    for cell in document["cells"]:
        found.setdefault(cell["interval"], {})[cell["stage"]] = len(cell["partitions"])
    return found


def test_what_changes_nothing_computes_nothing(week, clone):
    edit(clone / "helpers.py", "return 1", "return 2")
    edit(clone / "paper_jobs.py", "from helpers", "# a comment\nfrom helpers")
    assert cells(week, "--base", "main") == {}
    assert "0 partitions of 0 of 7 intervals" in asked(week, "--base", "main", "--budget", "1s").stdout


def test_a_helper_that_changed_is_named_with_all_that_follows_from_it(week, clone):
    edit(clone / "helpers.py", "tidy(frame): return frame", "tidy(frame): return frame.distinct()")
    found = cells(week, "--base", "main")
    assert sorted(found) == WEEK
    assert all({"edits": PARTITIONS, "prints": PARTITIONS}.items() <= found[day].items() for day in WEEK)
    document = json.loads(asked(week, "--json", "--base", "main").stdout)
    assert {part for cell in document["cells"] if cell["stage"] == "edits" for part in cell["code"]} == {
        "helpers.py: tidy"
    }
    assert document["seconds"] == pytest.approx(sum(cell["seconds"] for cell in document["cells"]), abs=0.1)
    assert document["seconds"] > 0
    assert document["bytes"] > 0


def test_a_budget_is_the_exit_code(week, clone):
    edit(clone / "helpers.py", "tidy(frame): return frame", "tidy(frame): return frame.distinct()")
    assert "within the budget of 8 h 0 min" in asked(week, "--base", "main", "--budget", "8h").stdout
    assert "above the budget of 0.0 s" in asked(week, "--base", "main", "--budget", "1ms", code=2).stdout
    assert "a duration, such as" in asked(week, "--budget", "soon", code=1).output


def test_a_comment_for_a_pull_request_has_a_row_for_each_stage_and_reason(week, clone):
    edit(clone / "helpers.py", "tidy(frame): return frame", "tidy(frame): return frame.distinct()")
    lines = asked(week, "--base", "main", "--format", "markdown").stdout.splitlines()
    assert lines[0].startswith("### Stagehold: ")
    (row,) = [line for line in lines if line.startswith("| paper | edits |")]
    assert f"| {WEEK[0]} to {WEEK[-1]} (7) | {7 * PARTITIONS} of {7 * PARTITIONS} |" in row
    assert "the code of paper_jobs:edits changed (helpers.py: tidy)" in row


def test_a_suite_that_changed_has_its_gate_judge_again_and_computes_nothing(week, clone):
    edit(clone / "suites" / "sound.yaml", "min_value: 0", "min_value: -1")
    document = json.loads(asked(week, "--json", "--base", "main").stdout)
    assert {cell["stage"] for cell in document["cells"] if cell["judged"]} <= {"drafts"}
    assert [cell for cell in document["cells"] if cell["partitions"]] == []


def test_what_was_stale_before_the_change_is_not_its_fault(week, clone):
    git(clone, "checkout", "main")
    edit(clone / "helpers.py", "tidy(frame): return frame", "tidy(frame): return frame.distinct()")
    git(clone, "commit", "-am", "Not run yet")
    edit(clone / "paper_jobs.py", "def prints(ctx, edits): ...", "def prints(ctx, edits): return edits")
    assert {stage for found in cells(week).values() for stage in found} >= {"edits", "prints"}
    assert cells(week, "--base", "HEAD") == {}  # it was to be computed again anyway


def test_a_pipeline_that_cannot_be_read_and_a_commit_that_is_not_there_are_told(week, clone):
    (clone / "broken.yaml").write_text("pipeline: broken\n")
    assert "broken.yaml" in asked(week, "--base", "main").stdout
    assert "a commit, branch or tag" in asked(week, "--base", "nowhere", code=1).output
    assert "a commit, branch or tag" in asked(week, "--base", "--output=x", code=1).output


def test_options_of_all_need_it(week, clone):
    for words in (["plan"], ["plan", "paper", "--all"], ["plan", "paper", "--budget", "2h"]):
        assert CliRunner().invoke(app, words).exit_code == 1, words


def test_stages_are_those_of_the_project(week, clone):
    edit(clone / "paper_jobs.py", "def drafts(ctx, source): ...", "def drafts(ctx, source): return source")
    assert {stage for found in cells(week, "--base", "main").values() for stage in found} == {*STAGES}
