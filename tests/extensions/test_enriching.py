"""Enrichers of installed packages add labels to a failure, which is shown with it."""

from __future__ import annotations

import json
import platform
import sys

import pytest
from tests.extensions.installed import install
from tests.run.checkpoints.paper_run import LEFT, PaperRun
from typer.testing import CliRunner

from stagehold.cli.main import app
from stagehold.extensions.enriching import ENRICHERS, FailedAttempt, labels_of
from stagehold.extensions.installed import installed
from stagehold.model.records import FailureClass

LABELS = """\
import time

def team(failed):
    return f"team of {failed.region}" if isinstance(failed.error, ZeroDivisionError) else None

def rule(failed):
    return failed.rule + "\\x00" + "x" * 500

def raises(failed):
    raise RuntimeError("an enricher of somebody else")

def nothing(failed):
    return None

def hangs(failed):
    time.sleep(60)
"""


@pytest.fixture
def enrichers(tmp_path, monkeypatch):
    """Installs a package that offers these enrichers."""

    def offer(*names: str) -> None:
        (tmp_path / "packages").mkdir()
        offered = {name: f"labels_of_teams:{name}" for name in names}
        install(tmp_path / "packages", "labels_of_teams", LABELS, {ENRICHERS: offered})

    installed.cache_clear()
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    yield offer
    installed.cache_clear()
    sys.modules.pop("labels_of_teams", None)


@pytest.fixture
def failing(tmp_path, enrichers):
    """A run of which an attempt has failed while these enrichers were installed."""

    def fail(*names: str) -> PaperRun:
        enrichers(*names)
        run = PaperRun.make(tmp_path, (LEFT,))
        with pytest.raises(ZeroDivisionError):
            run.work(LEFT, lambda stage, wave: 1 // 0)
        return run

    return fail


def test_labels_are_kept_with_the_failure_and_shown(failing, monkeypatch):
    run = failing("team", "rule", "nothing")
    (attempt,) = run.attempts
    assert attempt.labels["team"] == "team of left"
    assert attempt.labels["rule"].startswith(f"{attempt.failure_rule}\N{REPLACEMENT CHARACTER}x")
    assert (len(attempt.labels["rule"]), sorted(attempt.labels)) == (200, ["host", "rule", "team"])
    monkeypatch.setenv("STAGEHOLD_HOME", run.settings.home)
    shown = CliRunner().invoke(app, ["status", attempt.run_id], terminal_width=400).stdout
    assert "team: team of left" in shown.replace("\n", "")
    (told,) = json.loads(CliRunner().invoke(app, ["status", attempt.run_id, "--json"]).stdout)["attempts"]
    assert told["labels"] == dict(attempt.labels)


def test_an_enricher_that_raises_is_logged_and_the_others_count(failing, caplog):
    (attempt,) = failing("raises", "team").attempts
    assert attempt.labels == {"host": platform.node(), "team": "team of left"}
    assert "failure enricher raises failed" in caplog.text


def test_an_enricher_that_hangs_holds_nobody_up(enrichers, caplog):
    enrichers("team", "hangs")
    failed = FailedAttempt("r1", "paper", "day", "left", FailureClass.ENVIRONMENT, "system", ZeroDivisionError())
    assert labels_of(failed, patience=0.5) == {"team": "team of left"}
    assert "failure enrichers took more than 0.5 s" in caplog.text


def test_without_any_there_is_the_host_alone(failing):
    (attempt,) = failing().attempts
    assert attempt.labels == {"host": platform.node()}
