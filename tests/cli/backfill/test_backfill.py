"""`stagehold backfill` shows what would run before it asks whether to begin."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from tests.run.backfill.paper_backfill import PIPELINE, STAGES, PaperBackfill
from typer.testing import CliRunner

from stagehold.cli.main import app

pytestmark = pytest.mark.slow

DATES = ("2026-11-01", "2026-11-02")
RUNNING = "There is already a running backfill for dag"


class RefusingAirflow(BaseHTTPRequestHandler):
    """Lets everybody in and starts nothing."""

    def do_POST(self) -> None:  # as the library calls it
        entering = self.path == "/auth/token"
        body = json.dumps({"access_token": "x"} if entering else {"detail": f"{RUNNING} {PIPELINE}"}).encode()
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(201 if entering else 409)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def refusing() -> Iterator[int]:
    """The port of such an Airflow."""
    with ThreadingHTTPServer(("127.0.0.1", 0), RefusingAirflow) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


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
    assert [cell["runs"] for interval in found["intervals"] for cell in interval["cells"]] == [0, 0, 0, 3, 3, 0]
    assert [cell["stage"] for cell in found["intervals"][0]["cells"]] == [*STAGES]


@pytest.mark.parametrize(
    ("words", "scheduled", "told"),
    [
        (["--local"], True, "allowed: given, or --token"),
        (["--yes", "--parallel", "2"], True, "--parallel is '2'; allowed: with --local"),
        (["--yes"], False, "has no schedule, so Airflow cannot run a range of its intervals. Add --local"),
        (
            ["--local", "--token", "other"],
            True,
            "is not what you were shown: now it is 2026-11-02 drafts[0-2]",
        ),
        (["--stages", "other", "--yes"], True, "drafts, edits, prints"),
        (["--restore-from-stage", "edits", "--only", "stale"], True, "--only is 'stale'"),
    ],
)
def test_what_cannot_begin_says_why_and_begins_nothing(command, words, scheduled, told):
    ended = command(*words, scheduled=scheduled)
    assert ended.exit_code == 1
    assert told in " ".join(ended.stderr.split())


def test_nothing_to_run_is_no_failure_and_begins_nothing(command):
    done = ("--to", DATES[0], "--yes", "--local")
    ended = command(*done)
    assert (ended.exit_code, "There is nothing to run." in ended.stdout) == (0, True)
    assert json.loads(command(*done, "--json").stdout) == {"backfill": None, "intervals": []}
    assert "No backfill was begun" in command("--list").stdout


def test_a_killed_one_has_said_its_id_before_anything_ran_and_is_listed_until_it_has_finished(command, monkeypatch):
    def killed(request, settings, progress, parallel):
        raise SystemExit(137)

    monkeypatch.setenv("STAGEHOLD_SPARK_REMOTE", "sc://localhost:1")
    monkeypatch.setattr("stagehold.run.here.local_run.run_locally", killed)
    ended = command("--local", "--yes")
    assert ended.exit_code == 137
    (listed,) = json.loads(command("--list", "--json").stdout)["backfills"]
    again = f"stagehold backfill {PIPELINE} --resume {listed['backfill']}"
    assert f"backfill {listed['backfill']} of {PIPELINE}: 1 to run" in ended.stderr
    assert f"`{again}`" in ended.stderr
    assert (listed["next"], listed["intervals"]) == (
        again,
        [{"interval": DATES[1], "state": "not begun", "run_id": None}],
    )
    shown = command("--list").stdout
    assert "1 not begun" in shown
    assert again in shown


@pytest.mark.parametrize("command_words", [["--yes"], ["--yes", "--json"]])
def test_a_refusal_by_airflow_is_one_sentence_with_the_next_command(command, refusing, monkeypatch, command_words):
    monkeypatch.setenv("STAGEHOLD_AIRFLOW_PORT", str(refusing))
    ended = command(*command_words)
    assert ended.exit_code == 1
    assert (ended.stdout == "") == (
        "--json" in command_words
    )  # what runs is for people, who see it beside the document
    assert "9 partitions run in 1 of 2 intervals" in ended.output
    assert " ".join(ended.stderr[ended.stderr.index("Airflow did") :].split()) == (
        f"Airflow did not start the backfill of {PIPELINE} (409 Conflict): {RUNNING} {PIPELINE}. "
        f"`stagehold backfill {PIPELINE} --from {DATES[0]} --to {DATES[1]} --dry-run` shows what would run now."
    )


def test_an_airflow_that_is_down_is_told_without_a_traceback(command, monkeypatch):
    monkeypatch.setenv("STAGEHOLD_AIRFLOW_PORT", "9")
    ended = command("--yes")
    assert ended.exit_code == 1
    assert "Airflow at http://127.0.0.1:9 gave no answer" in ended.stderr
    assert "`stagehold up` starts it." in ended.stderr
