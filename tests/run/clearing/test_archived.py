"""What gc lets the ledger forget of a run is in the lake, and `stagehold status` shows it as before."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.ledger.samples import event
from tests.run.checkpoints.paper_run import LEFT, RUN, PaperRun
from typer.testing import CliRunner

from stagehold.cli.main import app
from stagehold.errors import UnknownName
from stagehold.ledger import Ledger
from stagehold.model.records import TRACE
from stagehold.run.clearing.garbage_collector import Collector
from stagehold.run.clearing.interval_garbage import AgeLimits
from stagehold.run.upkeep.run_archive import FOLDER, RunArchive, archive_runs, report_of

pytestmark = pytest.mark.slow

LATER = timedelta(days=60)


@pytest.fixture
def run(tmp_path, monkeypatch) -> PaperRun:
    """It failed in its third wave, with a trace, and was resumed."""
    made = PaperRun.make(tmp_path, (LEFT,))
    monkeypatch.setenv("STAGEHOLD_HOME", made.settings.home)
    with pytest.raises(ZeroDivisionError):
        made.work(LEFT, lambda _, wave: 1 // (3 - wave))
    with made.ledger() as ledger:
        (failed,) = made.attempts
        ledger.events.append(replace(event("Traceback: all of it"), run_id=RUN, kind=TRACE, subject=failed.attempt_id))
    made.work()
    return made


def collect(run: PaperRun, *, dry_run: bool = False) -> int:
    """gc as of long after."""
    with run.ledger() as ledger:
        collector = Collector(run.workplace(ledger), AgeLimits(datetime.now(UTC) + LATER), dry_run)
        return len(collector.collect([run.pipeline]).archived)


def shown(*words: str) -> str:
    return CliRunner().invoke(app, ["status", RUN, "--trace", *words]).stdout


def test_a_run_is_shown_as_before_when_the_ledger_has_forgotten_its_history(run):
    before = (shown(), json.loads(shown("--json")))
    assert (collect(run, dry_run=True), RunArchive(run.settings.lake_uri).of_run(RUN)) == (1, ())
    assert collect(run) == 1
    with run.ledger() as ledger:
        assert (ledger.events.of_run(RUN), ledger.events.traces(RUN), ledger.transitions.of_run(RUN)) == ((), {}, ())
    assert (shown(), json.loads(shown("--json"))) == before
    assert "Traceback: all of it" in before[0]
    assert collect(run) == 0


def test_what_is_archived_and_not_yet_forgotten_is_shown_once(run):
    """As after a death between the two."""
    before = shown("--json")
    with run.ledger() as ledger:
        archive_runs([RUN], ledger, run.settings.lake_uri)
    assert shown("--json") == before


def test_each_life_that_was_forgotten_is_kept(run):
    collect(run)
    with run.ledger() as ledger:
        first = report_of(RUN, ledger, run.settings.lake_uri)
        ledger.runs.begin_life(RUN)
    run.work()
    assert collect(run) == 1
    with run.ledger() as ledger:
        both = report_of(RUN, ledger, run.settings.lake_uri)
    assert both.history[: len(first.history)] == first.history
    assert len(both.history) > len(first.history)
    assert len(RunArchive(run.settings.lake_uri).of_run(RUN)) == 2


def test_a_run_that_the_ledger_does_not_know_is_as_it_was_archived(run, tmp_path):
    with run.ledger() as ledger:
        known = report_of(RUN, ledger, run.settings.lake_uri)
    collect(run)
    with Ledger.open(f"sqlite:///{tmp_path / 'other.db'}") as empty:
        archived = report_of(RUN, empty, run.settings.lake_uri)
        assert (archived.run, archived.history, archived.traces) == (known.run, known.history, known.traces)
        with pytest.raises(UnknownName):
            report_of("never", empty, run.settings.lake_uri)


def test_a_torn_file_is_told_and_left_out(run, caplog):
    collect(run)
    (file,) = (run.settings.home_path / "lake" / FOLDER).rglob("*.json")
    file.write_bytes(file.read_bytes()[:100])
    assert RunArchive(run.settings.lake_uri).of_run(RUN) == ()
    assert "is not what was written" in caplog.text
