from __future__ import annotations

import resource
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from stagehold.cli.main import COMMANDS, app, load_command, spare_conversions


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def children_seconds() -> float:
    """Of the processor, since the clock on the wall also measures what else the machine does."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_help_lists_every_command_with_a_line_of_help():
    result = CliRunner().invoke(app, ["--help"], terminal_width=200)
    assert result.exit_code == 0
    for name in COMMANDS:
        first_line = load_command(name).help.splitlines()[0]
        assert any(line.split()[:1] == [name] and first_line in line for line in result.stdout.splitlines())


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_and_argument_of_a_command_has_help(command):
    found = load_command(command)
    for each in (found, *getattr(found, "commands", {}).values()):
        for parameter in each.params:
            assert parameter.help, f"{command} {each.name} {parameter.name}"


def seconds_of(*words: str) -> float:
    before = children_seconds()
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    return children_seconds() - before


def test_help_starts_quickly_and_imports_neither_spark_nor_airflow():
    code = """
import sys
from typer.testing import CliRunner
from stagehold.cli.main import app
assert CliRunner().invoke(app, ["--help"]).exit_code == 0
slow = {"pyspark", "airflow", "deltalake", "great_expectations", "pandas", "sqlalchemy", "rich"}
print(sorted(slow & set(sys.modules)))
"""
    assert python(code) == "[]\n"
    taken = [(seconds_of("-m", "stagehold", "--help"), seconds_of("-c", "import typer")) for _ in range(3)]
    assert min(ours / bare for ours, bare in taken) < 4  # in processor time, which a busy machine makes longer


def test_version_is_printed():
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout.startswith("stagehold")) == (0, True)


def test_an_error_raised_on_purpose_is_its_text_on_stderr_without_a_traceback(monkeypatch):
    monkeypatch.setenv("STAGEHOLD_LEDGER", "mysql://u:secret@h/d")
    result = CliRunner().invoke(app, ["status"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Setting STAGEHOLD_LEDGER is 'mysql://u:***@h/d'; allowed: ")
    assert "Traceback" not in result.stderr


def test_an_unreachable_ledger_fails_with_what_to_do(monkeypatch):
    monkeypatch.setenv("STAGEHOLD_LEDGER", "postgresql://u:secret@127.0.0.1:1/d")
    result = CliRunner().invoke(app, ["status"])
    assert result.exit_code == 1
    assert "Make the database reachable" in result.stderr
    assert "secret" not in result.stderr


class Parameter(SimpleNamespace):
    def process_value(self, _: Any, value: str) -> object:
        return "converted", value


def processed(value: str, **attributes: Any) -> object:
    parameter = Parameter(required=False, callback=None, **attributes)
    command = SimpleNamespace(get_params=lambda _: [parameter])
    spare_conversions(command)
    [found] = command.get_params(None)
    return found.process_value(None, value)


def test_a_text_that_stays_a_text_is_not_converted() -> None:
    assert processed("a", type_descriptor=SimpleNamespace(annotation=str)) == "a"


def test_what_is_no_text_yet_is_converted() -> None:
    assert processed("1", type_descriptor=SimpleNamespace(annotation=int)) == ("converted", "1")


def test_a_typer_without_pydantic_converts_as_it_does() -> None:
    assert processed("a") == ("converted", "a")
