"""Values of options and arguments that Typer need not convert."""

from __future__ import annotations

from typing import Any


def spare_conversions(command: Any) -> None:
    """Have only those values converted that need it: numbers, paths and words of a list that somebody gave.

    Typer 0.29 has Pydantic convert every value, also a text that stays a text and an option that was left out. To
    import Pydantic takes longer than `stagehold status` needs for its answer.

    :param command: of Typer, or a group of them.
    """
    for part in vars(command).get("commands", {}).values():
        spare_conversions(part)
    all_parameters = command.get_params

    def get_params(context: Any) -> list[Any]:
        found: list[Any] = all_parameters(context)  # with --help, which is made when it is asked for
        for parameter in found:
            _spare_conversion(parameter)
        return found

    command.get_params = get_params


def _spare_conversion(parameter: Any) -> None:
    if "process_value" in vars(parameter) or not _is_converted_by_pydantic(parameter):
        return
    convert = parameter.process_value

    def process_value(context: Any, value: Any) -> Any:
        if not _is_converted(parameter, value):
            return convert(context, value)
        return parameter.callback(context, parameter, value) if parameter.callback else value

    parameter.process_value = process_value


def _is_converted_by_pydantic(parameter: Any) -> bool:
    """Whether Typer has pydantic convert the value. A Typer before 0.29 does not. This function can go once
    pyproject.toml asks for 0.29.
    """
    return hasattr(parameter, "type_descriptor")


def _is_converted(parameter: Any, value: Any) -> bool:
    if value is None or value == ():
        return not parameter.required
    kind = parameter.type_descriptor.annotation
    if kind == list[str]:
        return isinstance(value, list | tuple) and all(isinstance(text, str) for text in value)
    return isinstance(kind, type) and isinstance(value, kind)
