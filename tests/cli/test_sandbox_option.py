"""`--sandbox`, which every command has that reads or writes a lake or a ledger."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner, Result

from stagehold.cli.main import app
from stagehold.cli.sandbox import offer_sandboxes
from stagehold.settings import load_settings

WITHOUT = {"init", "up", "down", "demo", "sandbox list", "sandbox promote", "sandbox remove"}
small = typer.Typer()


@small.command()
def show(name: str = "x") -> None:
    """Print what the settings are."""
    typer.echo(f"{name} {load_settings().sandbox or 'production'}")


offer_sandboxes(small)


@small.command()
def other() -> None:
    """So that there are several."""


@pytest.fixture(autouse=True)
def _no_sandbox(monkeypatch):
    monkeypatch.delenv("STAGEHOLD_SANDBOX", raising=False)


def invoke(*words: str, sandbox: str | None = None) -> Result:
    return CliRunner().invoke(small, words, env={"STAGEHOLD_SANDBOX": sandbox})


def test_settings_are_the_sandboxs_in_that_command_alone():
    assert invoke("show", "--name", "y", "--sandbox", "fix").stdout == "y fix\n"
    assert "STAGEHOLD_SANDBOX" not in os.environ
    assert invoke("show").stdout == "x production\n"
    assert invoke("other", "--sandbox", "fix").exit_code == 2


def test_the_variable_says_the_same_for_all_commands():
    assert invoke("show", sandbox="fix").stdout == "x fix\n"
    assert invoke("show", "--sandbox", "fix", sandbox="fix").stdout == "x fix\n"


def test_a_sandbox_has_no_sandboxes():
    refused = invoke("show", "--sandbox", "inner", sandbox="fix").exception
    assert "--sandbox is 'inner'; allowed: fix, which STAGEHOLD_SANDBOX names" in str(refused)


def test_a_bad_name_is_refused():
    refused = invoke("show", "--sandbox", "Fix!").exception
    assert "Setting STAGEHOLD_SANDBOX is 'Fix!'" in str(refused)


def commands(command: object, name: str = "") -> Iterator[tuple[str, object]]:
    for word, one in getattr(command, "commands", {}).items():
        yield from commands(one, f"{name} {word}".strip())
    if not hasattr(command, "commands"):
        yield name, command


def test_every_command_has_it_but_those_of_services_and_of_sandboxes_themselves():
    offered = {
        name: any(parameter.name == "sandbox" for parameter in command.params)
        for name, command in commands(get_command(app))
    }
    assert {name for name, has_it in offered.items() if not has_it} == WITHOUT


def test_airflow_is_not_started_in_a_sandbox(tmp_path):
    refused = CliRunner().invoke(app, ["up"], env={"STAGEHOLD_SANDBOX": "fix", "STAGEHOLD_HOME": str(tmp_path)})
    assert refused.exit_code == 1
    assert "STAGEHOLD_SANDBOX is 'fix'; allowed: nothing: Airflow runs production" in refused.stderr
