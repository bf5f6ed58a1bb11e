"""Pipelines and stages declared in Python: the fields of a pipeline's file as arguments, with the lines that they are
written on.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from inspect import currentframe
from itertools import islice
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any

import yaml

from stagehold.spec.yaml import Document, FieldPath

DECLARED: ContextVar[list[PipelineDeclaration] | None] = ContextVar("declared", default=None)


@dataclass(frozen=True)
class WrittenCall:
    """Where a call is written: its first and last line and column."""

    file: str
    place: tuple[int | None, int | None, int | None, int | None]

    @staticmethod
    def of(made: FrameType | None) -> WrittenCall:
        """The call of the function whose frame is ``made``."""
        frame = made.f_back if made else None
        assert frame is not None, "Python has frames, and a call has a caller"
        place = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
        return WrittenCall(frame.f_code.co_filename, place)

    @property
    def lines(self) -> Mapping[FieldPath, int]:
        """The line of each argument, and of what is in those that are written as mappings or lists."""
        call = next((node for node in _calls(self.file) if _place(node) == self.place), None)
        if call is None:
            return {(): self.place[0] or 1}
        named: dict[FieldPath, int] = {(): call.lineno}
        if call.args:
            named["pipeline",] = call.args[0].lineno
        for argument in call.keywords:
            if argument.arg is not None:
                named |= {(argument.arg,): argument.lineno, **dict(_lines(argument.value, (argument.arg,)))}
        return named


class StageDeclaration:
    """A stage: the fields that it has in a pipeline's file, by name. A job may be the function itself.

        Stage(job="jobs.sales:totals", inputs={"orders": {"exchange": "keyed", "key": "customer"}}, partitions=4)

    What is wrong with it is told when its pipeline is loaded.
    """

    def __init__(self, **fields: Any) -> None:
        self.fields = _plain(fields)
        self.written = WrittenCall.of(currentframe())

    def __repr__(self) -> str:
        return f"Stage({_arguments(self.fields)})"


class PipelineDeclaration:
    """A pipeline: its name, and the fields of a pipeline's file, by name. A Python file beside the pipeline files, in
    which pipelines are made, is read as these are.

        Pipeline("sales", schedule="@daily", stages={"orders": Stage(...), "totals": Stage(...)})
    """

    def __init__(self, pipeline: str, /, *, stages: Mapping[str, StageDeclaration], **fields: Any) -> None:
        self.name, self.fields, self.stages = pipeline, _plain(fields), dict(stages)
        self.written = WrittenCall.of(currentframe())
        declared = DECLARED.get()
        if declared is not None:
            declared.append(self)

    def __repr__(self) -> str:
        return f"Pipeline({self.name!r}, {_arguments({**self.fields, 'stages': self.stages})})"

    @property
    def declaration(self) -> dict[str, Any]:
        """What a pipeline's file would say."""
        stages = {name: getattr(stage, "fields", stage) for name, stage in self.stages.items()}
        return {"pipeline": self.name, **self.fields, "stages": stages}

    def to_yaml(self) -> str:
        """A pipeline's file that says the same."""
        return yaml.safe_dump(self.declaration, sort_keys=False, allow_unicode=True)

    def document(self, file: str) -> Document:
        """The declaration with the lines of ``file``. A stage that is written in another file has the line on which it
        is put into the pipeline.
        """
        lines: dict[FieldPath, int] = {(): 1}
        if self.written.file == file:
            lines |= self.written.lines
        for name, stage in self.stages.items():
            if isinstance(stage, StageDeclaration) and stage.written.file == file:
                lines |= {("stages", name, *path): line for path, line in stage.written.lines.items()}
        return Document(file, self.declaration, lines)


def _plain(value: Any) -> Any:
    """Values as YAML has them, so that both ways to write a pipeline say the same."""
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, FunctionType):
        return f"{value.__module__}:{value.__qualname__}"
    return value.value if isinstance(value, Enum) else value


def _arguments(fields: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in fields.items())


def _calls(file: str) -> tuple[ast.Call, ...]:
    try:
        content = Path(file).read_bytes()
    except OSError:  # made at a prompt
        return ()
    return _calls_in(file, content)


@lru_cache(maxsize=64)
def _calls_in(file: str, content: bytes) -> tuple[ast.Call, ...]:
    tree = ast.parse(content, file)
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _place(node: ast.Call) -> tuple[int | None, int | None, int | None, int | None]:
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


def _lines(node: ast.expr, path: FieldPath) -> Iterator[tuple[FieldPath, int]]:
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant):
                yield (*path, str(key.value)), key.lineno
                yield from _lines(value, (*path, str(key.value)))
    elif isinstance(node, ast.List | ast.Tuple):
        for number, value in enumerate(node.elts):
            yield (*path, str(number)), value.lineno
            yield from _lines(value, (*path, str(number)))
