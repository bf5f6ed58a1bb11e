"""Typer's parameters, of versions with and without Pydantic."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from stagehold.cli.common.conversion import spare_conversions


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
