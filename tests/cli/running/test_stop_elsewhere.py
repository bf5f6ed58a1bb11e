"""`stagehold cancel` of a run of an Airflow that somebody else runs."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from tests.foreign_programs import listening
from tests.ledger.samples import RUN_ENDS, run
from typer.testing import CliRunner, Result

from stagehold.cli.main import app
from stagehold.ledger import Ledger
from stagehold.model.records import RunState

RUN = "nightly/manual__1"


@pytest.fixture
def asked(tmp_path, ledger_file, monkeypatch) -> Iterator[list[str]]:
    """What an Airflow elsewhere was asked, which does all of it."""
    requests: list[str] = []

    def answer(connection: socket.socket) -> None:
        requests.append(connection.recv(10_000).split(b"\r\n")[0].decode())
        connection.sendall(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}")

    with listening(answer) as port:
        given = {"HOME": str(tmp_path), "LEDGER": f"sqlite:///{ledger_file}", "AIRFLOW_TOKEN": "t"}
        for name, text in {**given, "AIRFLOW_URL": f"http://127.0.0.1:{port}/base"}.items():
            monkeypatch.setenv(f"STAGEHOLD_{name}", text)
        yield requests


@pytest.fixture
def known(ledger_file) -> Callable[[RunState], None]:
    """Puts a run of Airflow on record, which has come to a state."""

    def put(state: RunState) -> None:
        with Ledger.open(f"sqlite:///{ledger_file}") as ledger:
            ledger.runs.start(replace(run(), run_id=RUN, pipeline="nightly", launcher="airflow"))
            ledger.runs.apply(RUN, *RUN_ENDS.get(state, ()))

    return put


def cancel() -> Result:
    return CliRunner().invoke(app, ["cancel", RUN, "--no-wait"])


def test_it_is_marked_as_failed_there_and_cancelled_here(asked, known, ledger_file):
    known(RunState.RUNNING)
    assert cancel().exit_code == 0
    assert asked == ["PATCH /base/api/v2/dags/nightly/dagRuns/manual__1 HTTP/1.1"]
    with Ledger.open(f"sqlite:///{ledger_file}") as ledger:
        assert ledger.runs.get(RUN).state is RunState.CANCELED


@pytest.mark.parametrize("state", [RunState.FINISHED, RunState.FAILED])
def test_one_that_is_over_is_refused_before_airflow_hears_of_it(asked, known, state):
    known(state)
    refused = cancel()
    assert (refused.exit_code, asked) == (1, [])
