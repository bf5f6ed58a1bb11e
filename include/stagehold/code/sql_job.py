"""A job that is a file of SQL: `sql/clean.sql`, read as a module of Python whose one function runs its statements.

So whatever reads code of Python reads it, too: its key, its calls, what it reads beside its inputs, with the file's own
lines.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from stagehold.code.sql_text import markers, tokens
from stagehold.errors import InvalidInterval
from stagehold.model.context import StageContext

WITH_TIMES = "a date such as 2026-11-20, or a moment of the pipeline's schedule"
SUFFIX = ".sql"
FUNCTION = "query"
HERE = "./"  # the project's own folder
PARAMS = "params."
OF_THE_RUN = ("interval", "interval_start", "interval_end", "logical_date")  # fields of the context, and what they say


class SqlText(str):
    """A text in a tree of Python. Texts of the same words are the same code."""

    __slots__ = ()

    @property
    def words(self) -> str:
        return "; ".join(
            " ".join(each.text[token.start : token.end] for token in tokens(each.text)) for each in statements(self)
        )


@dataclass(frozen=True)
class WrittenStatement:
    """One of a file's statements, and the line on which it begins."""

    text: str
    line: int

    @property
    def in_its_line(self) -> str:
        """The statement as Spark has to be given it, so that lines in Spark's errors are lines of the file."""
        return "\n" * (self.line - 1) + self.text


def module_of(file: str) -> str:
    """A file of SQL as a module. It has a slash in its name, which no module of Python has: `jobs.sql` is one."""
    return file if "/" in file else f"{HERE}{file}"


def job_of(file: str) -> str:
    """What a stage's `sql` is as a job."""
    return f"{module_of(file)}:{FUNCTION}"


def shown_job(job: str) -> str:
    """A job as its author calls it: a query by its file."""
    module, _, _ = job.partition(":")
    return module.removeprefix(HERE) if is_sql(module) else job


def is_sql(module: str) -> bool:
    return module.endswith(SUFFIX) and "/" in module


def statements(text: str) -> tuple[WrittenStatement, ...]:
    """The statements between the semicolons, without those that only have comments."""
    return tuple(_statements(text))


def _statements(text: str) -> Iterator[WrittenStatement]:
    words = tokens(text)
    while words:
        own = tuple(takewhile(lambda token: token.text != ";" or token.kind != "mark", words))
        if own:
            start = own[0].start
            yield WrittenStatement(text[start : own[-1].end], text[:start].count("\n") + 1)
        words = words[len(own) + 1 :]


def names_of_markers(text: str) -> tuple[str, ...]:
    """What stands behind a colon, as `interval` and `params.limit`, and `?` for what has no name."""
    found = (names[0] for names, _, _ in markers(tokens(text)))
    return tuple(dict.fromkeys(name if isinstance(name, str) else "?" for name in found))


def bound_values(context: StageContext, text: str) -> dict[str, Any]:
    """What markers stand for.

    :raises InvalidInterval: the text asks for a time that the interval has not: NULL would be in no comparison
    """
    values = {name: getattr(context, name) for name in OF_THE_RUN}
    for name in names_of_markers(text):
        if name in OF_THE_RUN and values[name] is None:
            raise InvalidInterval(context.interval, f"has no :{name}, which the query asks for", WITH_TIMES)
    return {**values, **{f"{PARAMS}{name}": value for name, value in context.params.items()}}


def tree_of(text: str) -> ast.Module:
    """The module of Python that does what the file says. Its nodes stand on the first line, as the text does."""
    looks = [f"ctx.{name}" for name in OF_THE_RUN if name in names_of_markers(text)]
    source = "\n".join(
        (
            "from pyspark.sql import SparkSession",
            "from stagehold import stage",
            "@stage",
            f"def {FUNCTION}(ctx, **frames):",
            f"    return SparkSession.getActiveSession().sql('', {', '.join(looks)})",
        )
    )
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.value = SqlText(text)
        if isinstance(node, ast.stmt | ast.expr):
            node.lineno = node.end_lineno = 1
    function = tree.body[-1]
    assert isinstance(function, ast.FunctionDef)
    function.end_lineno = text.count("\n") + 1
    if comment := _comment(text.splitlines()):
        function.body.insert(0, ast.Expr(ast.Constant(comment), lineno=1, col_offset=0))
    return tree


def _comment(lines: Iterable[str]) -> str:
    """What the file says of itself before its first statement."""
    first = takewhile(lambda line: line.startswith("--"), (line.strip() for line in lines))
    return "\n".join(line.lstrip("-").strip() for line in first)
