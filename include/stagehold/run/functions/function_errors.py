"""Says what failed in a stage, and on which line of its author's code; the whole traces of Java and Python are kept
beside that.

Errors about the server, the session or Stagehold itself pass unchanged.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from stagehold.code.connect_lacks import CONTEXT, FILES, JVM, NOT_IN_CONNECT, SENT_FILES
from stagehold.code.project import functions, is_of_project, load_module
from stagehold.code.sql_job import is_sql, shown_job
from stagehold.errors import FunctionFailed, StageFailed, StrayKey
from stagehold.plan.restart.error_facts import TracedFrame, failures_in, raised_in_worker
from stagehold.run.functions.isolation import reporting_stray_keys
from stagehold.secrets import masked
from stagehold.spark.session.sessions import translate
from stagehold.spec.pipeline import Stage

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

CALL_SITE = re.compile(r"^(?P<file>.+):(?P<line>\d+)$")
CALLED_FROM = re.compile(r"^\S+ was called from\n(?P<file>.+):(?P<line>\d+)$", re.MULTILINE)
CAUSED_BY = re.compile(r"^Caused by: [\w.$]+: (?P<text>\[[A-Z0-9_.]+\] .*)$", re.MULTILINE)
NO_ROWS = (
    "a partition may have no rows, from which no types can be told: give createDataFrame a schema, such as that of the "
    "frame which the rows are from"
)
RAGGED = (
    "a union of frames with different numbers of columns. If the function has no union, its partitions have different "
    "columns, as a `pivot` without a list of values gives: have it select the same columns whatever the rows"
)
SAID_OTHERWISE = {"CANNOT_INFER_EMPTY_SCHEMA": NO_ROWS, "NUM_COLUMNS_MISMATCH": RAGGED}
IN_SQL = re.compile(r"\bline (?P<line>\d+),? pos \d+")
ROOT_OF_FILES = "getRootDirectory"  # of pyspark's SparkFiles, which asserts that there is a SparkContext
LONGEST = 400  # characters of one error in a text for people; the trace has all


@contextmanager
def reporting_code(stage: Stage, project: Path, partitions: Callable[[], Sequence[int]] = tuple) -> Iterator[None]:
    """Turn errors of the project's own code in the block into FunctionFailed. ``partitions`` is called only then.

    :raises StrayKey: the code asked Spark for an answer about rows of which one has another partition's key.
    """
    try:
        with reporting_stray_keys():
            yield
    except StrayKey:
        raise
    except Exception as error:
        if translate(error) is not None:
            raise
        raise _failed(stage, partitions(), project, error, FunctionFailed) from error


@contextmanager
def reporting_queries(stage: Stage, partitions: Sequence[int], project: Path) -> Iterator[None]:
    """Turn Spark's errors about the stage's queries in the block into StageFailed; those of Python workers into
    FunctionFailed.

    :raises StrayKey: the error that Spark was told to raise about a row with another partition's key.
    """
    from pyspark.errors import PySparkException

    try:
        with reporting_stray_keys():
            yield
    except PySparkException as error:
        if translate(error) is not None:
            raise
        kind = FunctionFailed if raised_in_worker(error) else StageFailed
        raise _failed(stage, partitions, project, error, kind) from error


def _failed(
    stage: Stage, partitions: Sequence[int], project: Path, error: Exception, kind: type[StageFailed]
) -> StageFailed:
    trace = masked("".join(traceback.format_exception(error)))
    return kind(
        stage=stage.name,
        partitions=partitions,
        problem=_problem(error),
        place=_place(stage, project, error),
        trace=trace,
    )


def _problem(error: Exception) -> str:
    """The error in one line, with the cause that Spark names last."""
    from pyspark.errors import PySparkException

    raised = raised_in_worker(error)
    if raised is not None:
        return _one_line(str(raised))
    if isinstance(error, AssertionError) and [*_driver_frames(error)][-1].function == ROOT_OF_FILES:
        return f"{SENT_FILES}: {FILES}"
    if not isinstance(error, PySparkException):
        return _one_line(f"{type(error).__name__}: {error}")
    if error.getCondition() in SAID_OTHERWISE:
        return SAID_OTHERWISE[str(error.getCondition())]
    if lacking := _lacking(error):
        return lacking
    if several := failures_in(error):
        return f"{_one_line(several[0].splitlines()[0])} ({len(several)} such failures at once)"
    first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    causes = CAUSED_BY.findall(_stack(error))
    return _one_line(f"{first} Caused by: {causes[-1]}" if causes else first)


def _lacking(error: PySparkException) -> str | None:
    """What to use instead of something that Spark Connect lacks, if pyspark's error only says not to use Spark
    Connect.
    """
    condition, named = error.getCondition(), error.getMessageParameters() or {}
    if condition == "JVM_ATTRIBUTE_NOT_SUPPORTED":
        name = named.get("attr_name", "")
        return f"{name}: {NOT_IN_CONNECT.get(name, JVM)}"
    if condition == "NOT_IMPLEMENTED" and named.get("feature") in NOT_IN_CONNECT:
        return f"{named['feature']}: {NOT_IN_CONNECT[named['feature']]}"
    return f"SparkContext: {CONTEXT}" if condition == "CONTEXT_UNAVAILABLE_FOR_REMOTE_CLIENT" else None


def _one_line(text: str) -> str:
    line = " ".join(masked(text).split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."


def _place(stage: Stage, project: Path, error: Exception) -> str:
    """The innermost line of the project's own code in the trace; else the place where the stage's function begins."""
    for frame in reversed((*_driver_frames(error), *_call_sites(error), *_worker_frames(error))):
        file = _in_project(frame.file, project)
        if file is not None:
            return f"{file}:{frame.line}" + (f", in {frame.function}" if frame.function else "")
    return _function_place(stage, project, error)


def _driver_frames(error: Exception) -> Iterator[TracedFrame]:
    for frame in traceback.extract_tb(error.__traceback__):
        yield TracedFrame(frame.filename, frame.lineno or 0, frame.name)


def _worker_frames(error: Exception) -> Sequence[TracedFrame]:
    raised = raised_in_worker(error)
    return raised.frames if raised else ()


def _call_sites(error: Exception) -> Iterator[TracedFrame]:
    """Where the column was made that Spark blames, if it knows."""
    from pyspark.errors import PySparkException, QueryContextType

    for context in error.getQueryContext() if isinstance(error, PySparkException) else ():
        site = CALL_SITE.match(context.callSite()) if context.contextType() is QueryContextType.DataFrame else None
        if site:
            yield TracedFrame(site["file"], int(site["line"]), "")
    for text in failures_in(error):
        for site in CALLED_FROM.finditer(text):
            yield TracedFrame(site["file"], int(site["line"]), "")


def _stack(error: PySparkException) -> str:
    getter = getattr(error, "getStackTrace", None)
    return str((getter() if getter else None) or error)


def _in_project(file: str, project: Path) -> str | None:
    """The file as its author knows it; None for a library's file. Code that was sent to a worker lies in an archive
    there.
    """
    path = Path(file.rpartition(".zip/")[2])
    path = path if path.is_absolute() else project / path
    is_own = is_of_project(str(path), str(project)) and path.is_file()
    return path.relative_to(project).as_posix() if is_own else None


def _function_place(stage: Stage, project: Path, error: Exception) -> str:
    """Where the stage's function begins; for a query, the line that Spark names."""
    module, _, name = stage.job.partition(":")
    found = load_module(module, project)
    if is_sql(module) and found:
        line, file = IN_SQL.search(str(error)), found.path.relative_to(project).as_posix()
        return f"{file}:{line['line']}" if line else shown_job(stage.job)
    function = functions(found).get(name) if found else None
    if found is None or function is None:
        return stage.job
    return f"{found.path.relative_to(project).as_posix()}:{function.lineno}, in {name}"
