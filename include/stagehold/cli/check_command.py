"""`stagehold check`: what the texts of pipelines, jobs, queries and suites show to be wrong. It needs no ledger, lake
or Spark, and imports nothing of the project, so that it runs before each commit. With `--spark`, what the Spark server
lacks that they would run on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stagehold.cli.common.output import print_document, print_table
from stagehold.cli.common.request import AsJson
from stagehold.errors import InvalidSpec, PackageMissing, UnknownName
from stagehold.extras import Extra, require
from stagehold.settings import Settings, checked_project_file, load_settings

if TYPE_CHECKING:
    from stagehold.spec.pipeline import Pipeline, Stage

PLACE_OF_CODE = re.compile(r"(?P<module>[\w./-]+) line (?P<line>\d+)")  # as the reasons of fingerprints begin
Files = Annotated[list[str] | None, typer.Argument(help="Files of pipelines. Default: all of the project's.")]


class CheckFormat(StrEnum):
    TEXT = "text"
    GITHUB = "github"  # comments at the lines of a pull request


OnSpark = Annotated[
    bool,
    typer.Option("--spark", help="Try the Spark server that the settings name, and say what pipelines miss there."),
]
Format = Annotated[CheckFormat, typer.Option("--format", help="How problems are printed.")]


class Weight(StrEnum):
    """Whether something stops a run, or is worth a look."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True)
class CheckedLine:
    """Something that is wrong, or worth a look, in a line of a file."""

    file: str
    line: int
    weight: Weight
    text: str

    @property
    def as_text(self) -> str:
        return f"{self.file}:{self.line}: {self.weight}: {self.text}"

    @property
    def as_github_command(self) -> str:
        escaped = self.text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
        return f"::{self.weight} file={self.file},line={self.line}::{escaped}"


def check(
    files: Files = None, output: Format = CheckFormat.TEXT, spark: OnSpark = False, as_json: AsJson = False
) -> None:
    """Check pipelines, their code, SQL and suites without running anything; or the Spark server for them."""
    from stagehold.code.unchanging_files import unchanging_files

    settings = load_settings()
    if spark:
        return _check_server(settings, as_json=as_json)
    with unchanging_files():
        checked = _chosen(files or (), settings)
        every = {*_of_project_file(settings), *(line for each in checked for line in _lines(each, settings))}
    found = sorted(every, key=lambda line: (line.file, line.line, line.text))
    failed = any(line.weight is Weight.ERROR for line in found)
    if as_json:
        print_document({"files": len(checked), "failed": failed, "problems": [asdict(line) for line in found]})
    else:
        for line in found:
            typer.echo(line.as_github_command if output is CheckFormat.GITHUB else line.as_text)
        typer.echo(_summary(len(checked), found), err=True)
    if failed:
        raise typer.Exit(1)
    return None


def _check_server(settings: Settings, *, as_json: bool) -> None:
    """A server that is not there yet is started for as long as this takes."""
    from stagehold.spark.server.server import spark_server
    from stagehold.spark.session.remote_server import without_token
    from stagehold.spark.session.server_check import server_facts

    where = without_token(settings.spark_remote) or settings.spark_master or "this machine"
    with spark_server(settings, "stagehold check"):
        facts = tuple(server_facts(settings))
    if as_json:
        print_document({"server": where, "facts": [asdict(fact) for fact in facts]})
    else:
        rows = ((fact.what, "yes" if fact.well else "no", fact.said) for fact in facts)
        print_table(f"Spark: {where}", ("what", "there", "said"), rows)
        for fact in facts:
            if fact.change:
                typer.echo(f"{fact.what}: {fact.change}")
    if not all(fact.well for fact in facts):
        raise typer.Exit(1)


def _summary(files: int, found: Sequence[CheckedLine]) -> str:
    counts = (f"{weight}s: {sum(line.weight is weight for line in found)}" for weight in Weight)
    return "; ".join((f"pipeline files checked: {files}", *counts))


def _chosen(files: Sequence[str], settings: Settings) -> Sequence[Pipeline | InvalidSpec]:
    """:raises UnknownName: one of ``files`` is none of a pipeline"""
    from stagehold.spec.loading.loader import load_each_pipeline

    every: dict[Path, list[Pipeline | InvalidSpec]] = {}
    for each in load_each_pipeline(settings):
        every.setdefault(Path(each.file).resolve(), []).append(each)
    unknown = next((file for file in files if Path(file).resolve() not in every), None)
    if unknown is not None:
        raise UnknownName("file of a pipeline", unknown, sorted(map(_shown, every)))
    chosen = [Path(file).resolve() for file in files] or [*every]
    return [each for file in chosen for each in every[file]]


def _of_project_file(settings: Settings) -> Iterator[CheckedLine]:
    try:
        checked_project_file(settings.project)
    except InvalidSpec as error:
        yield from _refused(error)


def _lines(checked: Pipeline | InvalidSpec, settings: Settings) -> Iterator[CheckedLine]:
    if isinstance(checked, InvalidSpec):
        yield from _refused(checked)
        return
    for stage in checked.stages:
        yield from _of_suite(checked, stage, settings)
        yield from _of_code(stage, settings)
        yield from _of_reads(checked, stage, settings)


def _refused(error: InvalidSpec) -> Iterator[CheckedLine]:
    for problem in error.problems:
        text = f"{problem.field}: got {problem.given}; allowed: {problem.allowed}"
        yield CheckedLine(_shown(error.file), problem.line, Weight.ERROR, text)


def _of_suite(pipeline: Pipeline, stage: Stage, settings: Settings) -> Iterator[CheckedLine]:
    from stagehold.gates.suite import check_scope
    from stagehold.gates.suite_files import suite_of

    try:
        if stage.gate:
            suite = suite_of(pipeline, stage.gate, settings)
            check_scope(suite, stage, pipeline)
            require(Extra.GATES)
    except InvalidSpec as error:
        yield from _refused(error)
    except PackageMissing as error:
        text = f"gate {stage.gate}: its expectations are not looked up. {error}"
        yield CheckedLine(_shown(pipeline.file), 1, Weight.WARNING, text)


def _of_code(stage: Stage, settings: Settings) -> Iterator[CheckedLine]:
    from stagehold.code.code_problems import code_problems
    from stagehold.code.connect_lacks import SENT_FILES, asked_in_code
    from stagehold.code.project import find_module
    from stagehold.code.stage_code import code_fingerprint

    project = Path(settings.project)
    problems = code_problems(stage.entries, project)
    for problem in problems:
        file, line, text = problem.split(":", 2)
        yield CheckedLine(_shown(project / file), int(line), Weight.ERROR, text.strip())
    code = code_fingerprint(stage.entries, project)
    if code.value is None and not problems:
        text = f"stage {stage.name} is computed again each time, since its code cannot be compared: {code.reason}"
        place = PLACE_OF_CODE.match(code.reason or "")
        found = find_module(place["module"], project) if place else None
        where = (found, int(place["line"])) if found and place else (project / code.files[0], 1)
        yield CheckedLine(_shown(where[0]), where[1], Weight.WARNING, text)
    for file, number, text in asked_in_code(stage.entries, project):
        if stage.is_script and stage.files and text.startswith(SENT_FILES):
            continue  # it finds these
        yield CheckedLine(_shown(project / file), number, Weight.WARNING, text)


def _of_reads(pipeline: Pipeline, stage: Stage, settings: Settings) -> Iterator[CheckedLine]:
    from stagehold.code.side_reads import side_reads
    from stagehold.sources.declared_reads import side_read_text, undeclared
    from stagehold.sources.source_files import SourceRoots
    from stagehold.spec.settings.reads import Undeclared

    project, declared = Path(settings.project), pipeline.reads_of(stage)
    weight = Weight.ERROR if declared.undeclared is Undeclared.STRICT else Weight.WARNING
    for read in undeclared(side_reads(stage.entries, project, stage.frames), declared, SourceRoots.of(settings)):
        file, _, line = read.place.rpartition(":")
        yield CheckedLine(_shown(project / file), int(line), weight, side_read_text(stage.name, read))


def _shown(file: str | Path) -> str:
    """A file as whoever stands in this folder knows it, which is how GitHub knows the files of a project."""
    path = Path(file).resolve()
    return path.relative_to(Path.cwd()).as_posix() if path.is_relative_to(Path.cwd()) else str(path)
