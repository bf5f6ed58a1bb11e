"""Suites as Great Expectations 0.x wrote them, read as its 1.x would write them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from stagehold.spec.yaml import Document, Problem

OF_SUITE = {"expectation_suite_name": "name", "evaluation_parameters": "suite_parameters"}
OF_EXPECTATION = {"expectation_type": "type"}
NOT_READ = ("data_asset_type", "ge_cloud_id", "success_on_last_run")  # what followed from a validation, or from a cloud
HOW_MADE = ("auto", "profiler_config", "include_config")  # arguments by which a profiler chose the others
CAST = "no such argument since Great Expectations 1; cast the column in the stage's function"
ARGUMENTS_GONE = {
    "parse_strings_as_datetimes": f"{CAST}: `to_timestamp`",
    "output_strftime_format": f"{CAST}: `to_timestamp`",
    "allow_cross_type_comparisons": CAST,
}


def as_written_now(document: Document) -> Document:
    """The same suite in today's words, with the lines of the file; any other document as it is."""
    data, expectations = document.data, document.data.get("expectations")
    if not isinstance(expectations, list) or not _is_earlier(data, expectations):
        return document
    now = {**_renamed(data, OF_SUITE), "expectations": [_expectation_now(fields) for fields in expectations]}
    lines = {tuple(OF_EXPECTATION.get(part, part) for part in path): line for path, line in document.lines.items()}
    return replace(document, data=now, lines=lines, problems=(*document.problems, *_problems(expectations)))


def _is_earlier(data: Mapping[str, Any], expectations: list[Any]) -> bool:
    return "expectation_suite_name" in data or any("expectation_type" in _mapping(fields) for fields in expectations)


def _expectation_now(fields: Any) -> Any:
    if not isinstance(fields, Mapping):
        return fields
    given = _mapping(fields.get("kwargs"))
    kwargs = {name: value for name, value in given.items() if name not in HOW_MADE and name not in ARGUMENTS_GONE}
    return {**_renamed(fields, OF_EXPECTATION), **({"kwargs": kwargs} if given else {})}


def _renamed(fields: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in fields.items() if name not in NOT_READ}


def _problems(expectations: list[Any]) -> Iterator[Problem]:
    for number, fields in enumerate(expectations):
        for name, value in _mapping(_mapping(fields).get("kwargs")).items():
            if name in ARGUMENTS_GONE and value:
                yield Problem(("expectations", str(number), "kwargs", name), repr(value), ARGUMENTS_GONE[name])


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
