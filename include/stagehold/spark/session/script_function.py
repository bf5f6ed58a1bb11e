"""A whole script as the stage function that runs it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

from stagehold.code.project import find_module
from stagehold.code.script_job import filled, script_tree
from stagehold.errors import StageContractBroken
from stagehold.lake.store.files import files_at
from stagehold.lake.store.location import script_uri
from stagehold.model.context import StageContext, StageFile, stage
from stagehold.spark.calls.side_files import copies
from stagehold.spark.connect import files_found_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from stagehold.spec.pipeline import Stage

LOG = "_delta_log"
SAY_THEIR_COLUMNS = ("parquet", "orc", "avro")  # formats that are read without knowing more


class ScriptEnded(RuntimeError):
    """A script ended by itself, and not well."""

    def __init__(self, status: object, arguments: Sequence[str]) -> None:
        told = " ".join(arguments) or "no arguments"
        super().__init__(f"the script ended with {status!r}; it was given {told}")


def script_function(declared: Stage, project: Path, output: str) -> Callable[..., DataFrame]:
    """A function that runs the script of a stage, as it is now, and gives what that wrote to the folder ``output``. It
    runs once, however often the function is called.

    :raises FileNotFoundError: there is no such file
    :raises SyntaxError: it is no Python
    """
    module = declared.job.partition(":")[0]
    path = find_module(module, project)
    if path is None:
        raise FileNotFoundError(module)
    code = compile(script_tree(path, module), str(path), "exec", dont_inherit=True)
    written: list[DataFrame] = []

    @stage
    def script(ctx: StageContext, **frames: DataFrame) -> DataFrame:
        if not written:
            inputs = {f"{script_uri(output)}_inputs/{name}": frame for name, frame in frames.items()}
            paths = {f"inputs.{name}": place for name, place in zip(frames, inputs, strict=True)}
            given = {**paths, "source": paths.get("inputs.source", ""), "output": script_uri(output)}
            spark = next(iter(frames.values())).sparkSession
            with _reading(spark, inputs), _finding(ctx.files.values()), _own_environment():
                _run(code, path, [filled(argument, ctx, given) for argument in declared.args])
            written.append(_written(spark, output, declared.name))
        return written[0]

    return script


@contextmanager
def _reading(spark: SparkSession, inputs: Mapping[str, DataFrame]) -> Iterator[None]:
    """Within the block, the session's readers find the inputs by their paths, and views by their names."""
    session: Any = spark
    for path, frame in inputs.items():
        frame.createOrReplaceTempView(PurePosixPath(path).name)
    session.stagehold_inputs = inputs
    try:
        yield
    finally:
        session.stagehold_inputs = None


@contextmanager
def _finding(files: Collection[StageFile]) -> Iterator[None]:
    """Within the block, `SparkFiles` finds the files of the stage by their names, as `spark-submit --files` sends them.
    It is left as it is, which finds nothing, for a stage without any.
    """
    with TemporaryDirectory(prefix="stagehold-") as folder:
        found = {str(Path(folder, Path(file.path).name)): file.path for file in files}
        for link, path in found.items():
            Path(link).symlink_to(path)
        copies.update(found)
        try:
            with files_found_in(folder) if found else nullcontext():
                yield
        finally:
            for link in found:
                del copies[link]


@contextmanager
def _own_environment() -> Iterator[None]:
    """What the block does to variables of the environment ends with it: the process goes on."""
    before = dict(os.environ)
    try:
        yield
    finally:
        for name in {*before, *os.environ}:
            if name not in before:
                del os.environ[name]
            elif os.environ.get(name) != before[name]:
                os.environ[name] = before[name]


def _run(code: CodeType, path: Path, arguments: Sequence[str]) -> None:
    """Run a script as the program of this process. Python sends functions of a program to Spark's workers whole.

    :raises ScriptEnded: it called `sys.exit` with what is no success
    """
    main, before = ModuleType("__main__"), (sys.modules["__main__"], sys.argv)
    main.__file__ = str(path)
    sys.modules["__main__"], sys.argv = main, [str(path), *arguments]
    try:
        exec(code, vars(main))  # noqa: S102 - the author's own code
    except SystemExit as ended:
        if ended.code not in (None, 0):
            raise ScriptEnded(ended.code, arguments).with_traceback(ended.__traceback__) from None
    finally:
        sys.modules["__main__"], sys.argv = before


def _written(spark: SparkSession, output: str, name: str) -> DataFrame:
    """:raises StageContractBroken: there is nothing, or nothing that can be read without knowing more"""
    files = [PurePosixPath(file) for file in files_at(output).sizes("")]
    if any(LOG in file.parts for file in files):
        return spark.read.format("delta").load(script_uri(output))
    rows = [file for file in files if not file.name.startswith(("_", "."))]
    for form in SAY_THEIR_COLUMNS:
        if any(file.suffix == f".{form}" for file in rows):
            return spark.read.format(form).load(script_uri(output))
    found = (
        f"{rows[0].name} to ${{output}}, which is neither Parquet, ORC, Avro nor Delta"
        if rows
        else "nothing to ${output}"
    )
    wrote = ", and no rows, whose columns nobody knows" if files and not rows else ""
    raise StageContractBroken(
        name, f"its script wrote {found}{wrote}; have it write its rows there, as Parquet, ORC, Avro or Delta"
    )
