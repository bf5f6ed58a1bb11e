"""Pipelines from files of YAML and Python. Every default is filled in here, once."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stagehold.code.project import find_module
from stagehold.code.script_job import SUFFIX as OF_SCRIPTS
from stagehold.code.script_job import job_of_script
from stagehold.code.sql_job import SUFFIX, job_of, module_of
from stagehold.errors import InvalidSpec, SpecProblem, UnknownName
from stagehold.model.kept import Shelf
from stagehold.model.keys.key_groups import default_max_parallelism
from stagehold.project_file import project_file, read_project_file
from stagehold.settings import Settings
from stagehold.spec.draft import Draft, key_of
from stagehold.spec.form import StageForm, read_form
from stagehold.spec.loading.declared_sources import with_sources
from stagehold.spec.loading.extending import EXTENDS, extended
from stagehold.spec.loading.named_code import declared_failures, declared_notifiers
from stagehold.spec.loading.pipeline_checks import check
from stagehold.spec.loading.python_files import SUFFIX as SUFFIX_OF_PYTHON
from stagehold.spec.loading.python_files import PythonFile, declares_pipelines, run_python_file
from stagehold.spec.loading.restart_checks import usual_restart
from stagehold.spec.loading.variables import Resolved, resolved, variables_in
from stagehold.spec.outputs import Chosen
from stagehold.spec.pipeline import Input, Output, OutputForm, Pipeline, Stage, StageSettings
from stagehold.spec.settings.output_settings import TypeReason
from stagehold.spec.settings.run_settings import ExecutionMode, RunSettings
from stagehold.spec.settings.source import Source
from stagehold.spec.suites import is_of_python, suite_files
from stagehold.spec.yaml import Document, Problem, plain_document, read_document

IN_PYTHON = "<python>"


def load_pipeline(path: Path, *, project: Path, suites: Path) -> Pipeline:
    """Read and check one file; jobs are looked up under ``project`` and gates under ``suites``, nothing is imported.

    :raises InvalidSpec: listing every problem of the file with its line
    """
    said = read_project_file(project)
    return _pipeline(resolved(_whole(read_document(path), project), said.vars, {}), project=project, suites=suites)


def build_pipeline(declaration: Mapping[str, Any], *, project: Path, suites: Path) -> Pipeline:
    """Make a pipeline in Python: ``declaration`` has the shape of the file, and passes the same checks."""
    said = read_project_file(project)
    document = _whole(plain_document(declaration, IN_PYTHON), project)
    return _pipeline(resolved(document, said.vars, {}), project=project, suites=suites)


def load_each_pipeline(settings: Settings) -> tuple[Pipeline | InvalidSpec, ...]:
    """Every file of the folder as its pipelines, or as what is wrong with them,
    so that a bad file leaves the others usable.
    """
    loaded = [(path, outcome) for path in pipeline_files(settings) for outcome in _load(path, settings)]
    owners: dict[str, Path] = {}
    for path, outcome in loaded:
        if isinstance(outcome, Pipeline) and (outcome.name not in owners or path.stem == outcome.name):
            owners[outcome.name] = path
    return tuple(
        outcome
        if isinstance(outcome, InvalidSpec) or owners[outcome.name] == path
        else _taken_name(path, outcome, owners[outcome.name])
        for path, outcome in loaded
    )


def find_pipeline(name: str, settings: Settings) -> Pipeline:
    """The pipeline called ``name``; problems in other files do not matter. Of several files that declare it, the one
    that is called so is meant, or else the first.

    :raises UnknownName: no file declares that name
    :raises InvalidSpec: the file that does cannot be read as a pipeline
    """
    for path in _files_for(name, settings):
        place = next((place for place, known in enumerate(_names_in(path, name, settings)) if known == name), None)
        if place is not None:
            found = _load(path, settings)[place]
            if isinstance(found, InvalidSpec):
                raise found
            return found
    known = {each for path in pipeline_files(settings) for each in _names_in(path, None, settings)}
    raise UnknownName("pipeline", name, sorted(known))


def _files_for(name: str, settings: Settings) -> Iterator[Path]:
    """Most files are called as their pipeline, so that no other one has to be looked at."""
    folder = Path(settings.pipelines)
    for ending in (".yaml", SUFFIX_OF_PYTHON):
        usual = folder / f"{name}{ending}"
        if usual.parent == folder and (ending != SUFFIX_OF_PYTHON or declares_pipelines(usual)):
            yield usual
    yield from pipeline_files(settings)


def _names_in(path: Path, wanted: str | None, settings: Settings) -> Sequence[str]:
    """The names of a file's pipelines; of one without the name that is ``wanted`` they need not be known."""
    kept = _kept(path, settings)
    if kept:
        return [pipeline.name for pipeline in kept]
    if path.suffix != SUFFIX_OF_PYTHON and wanted is not None and not _may_name(path, wanted):
        return ()
    return [str(document.data.get("pipeline")) for document in _documents(path, settings).documents]


def _may_name(path: Path, name: str) -> bool:
    """Whether the file may be that of the pipeline, found without parsing it: a name has no letter that YAML would have
    to write in another way.
    """
    try:
        return name.encode() in path.read_bytes()
    except OSError:
        return False


def pipeline_files(settings: Settings) -> tuple[Path, ...]:
    """Files of YAML, and behind them those of Python that declare pipelines."""
    folder = Path(settings.pipelines)
    python = (path for path in sorted(folder.glob(f"*{SUFFIX_OF_PYTHON}")) if declares_pipelines(path))
    return (*sorted(folder.glob("*.yaml")), *python)


def _documents(path: Path, settings: Settings) -> PythonFile:
    if path.suffix == SUFFIX_OF_PYTHON:
        return run_python_file(path, Path(settings.project))
    return PythonFile((read_document(path),))


def _taken_name(path: Path, pipeline: Pipeline, owner: Path) -> InvalidSpec:
    line = read_document(path).line(("pipeline",)) if path.suffix != SUFFIX_OF_PYTHON else 1
    taken = f"{pipeline.name!r}, which {owner} has"
    return InvalidSpec(str(path), [SpecProblem(line, "pipeline", taken, "a name that no other file has")])


# When a file and what is known of it were changed, its size and its inode; None of a file that is gone.
Identity = tuple[int, int, int, int] | None
SETTLED_NANOSECONDS = 2_000_000_000  # within which a file system may give two changes the same time


@dataclass(frozen=True)
class _ReadFile:
    """The pipelines of a file, and the files that they were read from: its own, what it imports, and those whose code
    and suites they name.
    """

    pipelines: tuple[Pipeline, ...]
    files: Mapping[Path, Identity]
    variables: tuple[Resolved, ...]

    @property
    def is_current(self) -> bool:
        return all(each.is_current for each in self.variables) and all(
            _identity(path) == known for path, known in self.files.items()
        )

    @property
    def is_settled(self) -> bool:
        """Whether whoever changes one of the files from now on gives it another identity."""
        newest = max(known[0] if known else 0 for known in self.files.values())
        return newest < time.time_ns() - SETTLED_NANOSECONDS


_READ = Shelf[_ReadFile]("pipelines")


def _load(path: Path, settings: Settings) -> tuple[Pipeline | InvalidSpec, ...]:
    """The pipelines of a file. One that has problems is read each time, as what it lacks may come from anywhere.

    :raises InvalidSetting: STAGEHOLD_RESTART is no strategy
    """
    kept = _kept(path, settings)
    if kept:
        return kept
    project, suites, own = Path(settings.project), Path(settings.suites), _identity(path)
    whole = project_file(project)
    of_project, said = _identity(whole), read_project_file(project)
    read = _documents(path, settings)
    written = tuple(_whole(document, project) for document in read.documents)
    variables = tuple(resolved(document, said.vars, said.vars_of(settings.target)) for document in written)
    outcomes = tuple(_outcome(each, settings) for each in variables)
    pipelines = tuple(outcome for outcome in outcomes if isinstance(outcome, Pipeline))
    if len(pipelines) == len(outcomes):
        named = {file for each in variables for file in _named_files(each.document.data, project, suites)}
        sources = (Path(part.file) for document in written for part in document.parts.values())
        files = {path: own, whole: of_project, **{file: _identity(file) for file in (*read.imported, *named, *sources)}}
        found = _ReadFile(pipelines, files, variables)
        if found.is_settled:
            _READ.put(_place(path, settings), found)
    return outcomes


def _outcome(variables: Resolved, settings: Settings) -> Pipeline | InvalidSpec:
    try:
        pipeline = _pipeline(variables, project=Path(settings.project), suites=Path(settings.suites))
    except InvalidSpec as error:
        return error
    if "restart" in variables.document.data:
        return pipeline
    return pipeline.model_copy(update={"restart": usual_restart(settings.restart, pipeline.checkpoint)})


def _kept(path: Path, settings: Settings) -> tuple[Pipeline, ...] | None:
    """What was read of it before, unless a file has changed since."""
    read = _READ.get(_place(path, settings))
    return read.pipelines if read and read.is_current else None


def _place(path: Path, settings: Settings) -> tuple[str, ...]:
    return str(path), settings.project, settings.suites, settings.restart, settings.target


def _identity(path: Path) -> Identity:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def _named_files(data: Any, project: Path, suites: Path) -> Iterator[Path]:
    """Modules and SQL of the project, and files of suites, that the texts of a file name. Too many do no harm."""
    gates, texts = suite_files(suites, project), frozenset(_texts(data))
    yield from (gates[text] for text in texts & gates.keys())
    files = {module_of(text) for text in texts if text.endswith((SUFFIX, OF_SCRIPTS))}
    for module in {text.partition(":")[0] for text in texts if ":" in text} | files:
        found = find_module(module, project)
        if found is not None:
            yield found


def _texts(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    for item in data.values() if isinstance(data, Mapping) else data if isinstance(data, list | tuple) else ():
        yield from _texts(item)


def _pipeline(variables: Resolved, *, project: Path, suites: Path) -> Pipeline:
    document = variables.document
    form, misshapen = read_form(document)
    known = {problem.path for problem in document.problems}
    broken = (*document.problems, *(problem for problem in misshapen if problem.path not in known))
    unread = frozenset(problem.path[:2] if problem.path[2:] == (EXTENDS,) else problem.path for problem in broken)
    draft = Draft(form, document.file, document.data, unread, project, suites)
    found = [*broken, *check(draft)]
    if not found:
        return _checked(draft, variables)
    placed: dict[str, dict[SpecProblem, None]] = {}
    for problem in found:
        if not _is_told(document, problem, found):
            file, located = _located(document, problem)
            placed.setdefault(file, {})[located] = None
    file, problems = min(placed.items(), key=lambda each: each[0] == document.file)  # that of a part comes first
    raise InvalidSpec(file, sorted(problems, key=lambda problem: problem.line))


def _is_told(document: Document, problem: Problem, found: Collection[Problem]) -> bool:
    """Whether what a stage has taken over is wrong where it was taken from, too."""
    origin = document.origin(problem.path)
    return origin != problem.path and replace(problem, path=origin) in found


def _located(document: Document, problem: Problem) -> tuple[str, SpecProblem]:
    """The file and line of a problem; of a field that was taken over, those where it is written, and who took it."""
    said, path = document.said_by(problem.path)
    if said is not document:
        return said.file, SpecProblem(said.line(path), ".".join(path) or "file", problem.given, problem.allowed)
    origin, allowed = document.origin(problem.path), problem.allowed
    if origin != problem.path:
        extends = document.line((*problem.path[:2], EXTENDS))
        allowed = f"{allowed} (written in {'.'.join(origin[:2])}, which {problem.path[1]} extends on line {extends})"
    field = ".".join(problem.path) or "file"
    return document.file, SpecProblem(document.line(origin), field, problem.given, allowed)


def _whole(document: Document, project: Path) -> Document:
    """The document with what its stages take over from others, and from sources that the project declares."""
    return with_sources(extended(document), project)


def _checked(draft: Draft, variables: Resolved) -> Pipeline:
    """The pipeline that a draft without problems says."""
    form, known = draft.form, variables.known
    of_suites = {name: known[name] for name in _variables_of_suites(draft) if known.get(name) is not None}
    return Pipeline(
        name=form.pipeline or "",
        file=draft.file,
        schedule=form.schedule.cron,
        starts=form.schedule,
        stages=tuple(_stage(name, draft) for name in draft.order),
        failures=declared_failures(form.failures),
        on_failure=declared_notifiers(form.on_failure),
        on_gate_warning=declared_notifiers(form.on_gate_warning),
        on_resume=declared_notifiers(form.on_resume),
        variables={**variables.values, **of_suites},
        known_variables=known,
        **{name: getattr(form, name) for name in RunSettings.model_fields},
    )


def _variables_of_suites(draft: Draft) -> Iterator[str]:
    gates = {stage.gate for stage in draft.stages.values() if stage.gate and not is_of_python(stage.gate)}
    files = suite_files(draft.suites, draft.project) if gates else {}
    for gate in sorted(gates):
        yield from sorted(variables_in(files[gate].read_text(encoding="utf-8")))


def _stage(name: str, draft: Draft) -> Stage:
    stage, root = draft.stages[name], draft.auto.get(name)
    partitions = 1 if root else draft.counts[name]
    return Stage.model_validate(
        {
            **{field: getattr(stage, field) for field in StageSettings.model_fields},
            "name": name,
            "job": _job(stage, name, draft),
            "source": None
            if stage.source is None
            else Source.model_validate(stage.source.model_dump(mode="json", exclude_unset=True)),
            "inputs": tuple(Input(stage=producer, **dict(edge)) for producer, edge in stage.inputs.items()),
            "partitions": partitions,
            "auto_partitions": root == name,
            "max_parallelism": stage.max_parallelism
            or (root and draft.stages[root].max_parallelism)
            or default_max_parallelism(partitions or 1),
            "max_parallelism_declared": stage.max_parallelism is not None,
            "key": key_of(stage),
            "output": _output(stage.output, draft.chosen[name], draft.form.execution_mode),
        }
    )


def _job(stage: StageForm, name: str, draft: Draft) -> str:
    if stage.script is not None:
        return job_of_script(stage.script)
    return stage.job or job_of(stage.sql or "", name, draft.file_of_project or "")


def _output(form: OutputForm, chosen: Chosen, mode: ExecutionMode) -> Output:
    kind, why = chosen
    written = {field: getattr(form, field) for field in OutputForm.model_fields}
    falls_back = why is TypeReason.MODE and mode.may_store and not kind.stored
    return Output.model_validate({**written, "type": kind, "why": why, "falls_back": falls_back})
