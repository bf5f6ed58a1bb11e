"""`stagehold backfill` shows what would run before it asks whether to begin."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.run.backfill.paper_backfill import PIPELINE, STAGES, PaperBackfill
from typer.testing import CliRunner

from stagehold.cli.main import app

pytestmark = pytest.mark.slow

DATES = ("2026-11-01", "2026-11-02")


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Of two dates one has run."""
    world = PaperBackfill(tmp_path)
    world.nights.run(DATES[0])
    world.nights.declare()
    world.nights.ledger.close()
    settings = world.nights.settings
    file = Path(settings.pipelines, f"{PIPELINE}.yaml")
    declared = {**json.loads(file.read_text()), "schedule": "0 2 * * *", "early_cutoff": False}
    file.write_text(json.dumps(declared))
    for name, value in settings.environment.items():
        monkeypatch.setenv(name, value)

    def run(*words: str, scheduled: bool = True):
        if not scheduled:
            file.write_text(json.dumps({**declared, "schedule": None}))
        return CliRunner().invoke(app, ["backfill", PIPELINE, "--from", DATES[0], "--to", DATES[1], *words])

    return run


def test_the_grid_shows_each_date_and_why_its_cells_run(command):
    shown = command("--dry-run")
    assert shown.exit_code == 0, shown.output
    lines = [line.split() for line in shown.stdout.splitlines()]
    assert [DATES[0], "good", "good", "good"] in lines
    assert [DATES[1], *["missing,", "runs", "3", "of", "3"] * 3] in lines
    assert [DATES[1], "drafts", "0-2", "never", "computed", "for", "this", "interval"] in lines
    assert "9 partitions run in 1 of 2 intervals, 9 are reused; about" in shown.stdout
    assert "token " in shown.stdout


def test_as_json_it_is_the_document_of_the_web_api(command):
    found = json.loads(command("--dry-run", "--json", "--stages", "drafts,edits", "--only", "missing").stdout)
    assert (found["first"], found["last"], found["only"]) == (*DATES, "missing")
    assert found["stages"] == ["drafts", "edits"]
    assert [cell["runs"] for one in found["intervals"] for cell in one["cells"]] == [0, 0, 0, 3, 3, 0]
    assert [cell["stage"] for cell in found["intervals"][0]["cells"]] == [*STAGES]


@pytest.mark.parametrize(
    ("words", "scheduled", "told"),
    [
        (["--local"], True, "allowed: given, or --token"),
        (["--yes"], False, "has no schedule, so Airflow cannot run a range of its intervals. Add --local"),
        (
            ["--local", "--token", "other"],
            True,
            "is not what you were shown: now it is 2026-11-02 drafts[0-2]",
        ),
        (["--stages", "other", "--yes"], True, "drafts, edits, prints"),
        (["--to", DATES[0], "--yes"], True, "There is nothing to run."),
        (["--restore-from-stage", "edits", "--only", "stale"], True, "--only is 'stale'"),
    ],
)
def test_what_cannot_begin_says_why_and_begins_nothing(command, words, scheduled, told):
    ended = command(*words, scheduled=scheduled)
    assert ended.exit_code == 1
    assert told in " ".join(ended.stderr.split())
