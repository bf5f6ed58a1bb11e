"""A job that is SQL: a file, `sql/clean.sql`, or a text in a pipeline's file; read as a module of Python whose one
function runs its statements.

So whatever reads code of Python reads it, too: its key, its calls, what it reads beside its inputs, with the file's own
lines. The text of the stage `clean` in `include/pipelines/sales.yaml` is the module
`include/pipelines/sales.yaml/clean.sql`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import yaml

from stagehold.code.script_job import HERE, is_script
from stagehold.code.sql_text import markers, tokens
from stagehold.code.unchanging_files import text_in_file
from stagehold.errors import InvalidInterval
from stagehold.model.context import StageContext

WITH_TIMES = "a date such as 2026-11-20, or a moment of the pipeline's schedule"
SUFFIX = ".sql"
FUNCTION = "query"
OF_PIPELINES = ".yaml"
BLOCKS = ("|", ">")  # of YAML
OF_STAGES = ("stages", "templates")  # fields of a pipeline's file with queries
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


def is_text(sql: str) -> bool:
    """Whether the `sql` of a stage is a text and no file: it has several words, and does not end as a file does."""
    return len(sql.split()) > 1 and not (sql.strip().endswith(SUFFIX) and "\n" not in sql.strip())


def module_of(sql: str, stage: str = "", pipeline_file: str = "") -> str:
    """A file or text of SQL as a module. It has a slash in its name, which no module of Python has: `jobs.sql` is one.

    :param pipeline_file: the file with a text, below the project.
    """
    if is_text(sql):
        return f"{HERE if '/' not in pipeline_file else ''}{pipeline_file}/{stage}{SUFFIX}"
    return sql if "/" in sql else f"{HERE}{sql}"


def job_of(sql: str, stage: str = "", pipeline_file: str = "") -> str:
    """What a stage's `sql` is as a job."""
    return f"{module_of(sql, stage, pipeline_file)}:{FUNCTION}"


def shown_job(job: str) -> str:
    """A job as its author calls it: a query or a script by its file."""
    module, _, _ = job.partition(":")
    file, stage = text_in(module) or (module, None)
    if stage is not None:
        return f"the sql of {stage} in {file.removeprefix(HERE)}"
    return file.removeprefix(HERE) if is_sql(module) or is_script(module) else job


def is_sql(module: str) -> bool:
    return module.endswith(SUFFIX) and "/" in module


def text_in(module: str) -> tuple[str, str] | None:
    """The pipeline's file and the stage of a module that is a text in it; None for any other."""
    file, _, stage = module.removesuffix(SUFFIX).rpartition("/")
    return (file, stage) if is_sql(module) and file.endswith(OF_PIPELINES) else None


def written_sql(path: Path, module: str) -> str:
    """The SQL of a module, in the lines of the file at ``path``.

    :raises ValueError: the file has no text for the stage, or cannot be read
    """
    found = text_in(module)
    text = text_in_file(path)
    return _text_of_stage(text, found[1]) if found else text


@lru_cache(maxsize=256)
def _text_of_stage(text: str, stage: str) -> str:
    """A text behind `|` begins in the line below, any other in its own; one that YAML folds has lines of its own."""
    try:
        node: yaml.Node | None = yaml.compose(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise ValueError(f"no YAML: {error}") from error
    node = _sql_of(node, stage)
    if not isinstance(node, yaml.ScalarNode):
        raise ValueError(f"no `sql` of the stage {stage}")
    above = "\n" * (node.start_mark.line + (node.style in BLOCKS))
    return f"{above}{node.value}"


def _sql_of(root: yaml.Node | None, stage: str) -> yaml.Node | None:
    """The text of a stage, which may be that of the one that it extends; a file with circles has been refused."""
    for kind in OF_STAGES:
        own = _field(_field(root, kind), stage)
        base = _field(own, "extends")
        if own is not None:
            found = _field(own, "sql")
            return _sql_of(root, base.value) if found is None and base is not None else found
    return None


def _field(node: yaml.Node | None, name: str) -> yaml.Node | None:
    return next((value for key, value in _fields(node) if key.value == name), None)


def _fields(node: yaml.Node | None) -> Iterator[tuple[yaml.Node, yaml.Node]]:
    return iter(node.value) if isinstance(node, yaml.MappingNode) else iter(())


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
    """The module of Python that does what a text says, which begins in the first line of a file, as its nodes do."""
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
    if comment := _comment(text.strip().splitlines()):
        function.body.insert(0, ast.Expr(ast.Constant(comment), lineno=1, col_offset=0))
    return tree


def _comment(lines: Iterable[str]) -> str:
    """What the file says of itself before its first statement."""
    first = takewhile(lambda line: line.startswith("--"), (line.strip() for line in lines))
    return "\n".join(line.lstrip("-").strip() for line in first)
