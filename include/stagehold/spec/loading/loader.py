"""Pipelines from YAML files, or from the same shape made in Python. Every default is filled in here, once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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
from stagehold.spec.loading.named_code import declared_failures, declared_notifiers
from stagehold.spec.loading.pipeline_checks import check
from stagehold.spec.loading.restart_checks import usual_restart
from stagehold.spec.loading.variables import Resolved, resolved
from stagehold.spec.outputs import Chosen
from stagehold.spec.pipeline import Input, Output, OutputForm, Pipeline, Stage, StageSettings, TypeReason
from stagehold.spec.settings.run_settings import ExecutionMode, RunSettings
from stagehold.spec.settings.source import Source
from stagehold.spec.suites import suite_files
from stagehold.spec.yaml import plain_document, read_document

IN_PYTHON = "<python>"


def load_pipeline(path: Path, *, project: Path, suites: Path) -> Pipeline:
    """Read and check one file; jobs are looked up under ``project`` and gates under ``suites``, nothing is imported.

    :raises InvalidSpec: listing every problem of the file with its line
    """
    said = read_project_file(project)
    return _pipeline(resolved(read_document(path), said.vars, {}), project=project, suites=suites)


def build_pipeline(declaration: Mapping[str, Any], *, project: Path, suites: Path) -> Pipeline:
    """Make a pipeline in Python: ``declaration`` has the shape of the file, and passes the same checks."""
    said = read_project_file(project)
    document = with_sources(plain_document(declaration, IN_PYTHON), project)
    return _pipeline(resolved(document, said.vars, {}), project=project, suites=suites)


def load_each_pipeline(settings: Settings) -> tuple[Pipeline | InvalidSpec, ...]:
    """Every file of the folder as a pipeline, or as what is wrong with it,
    so that a bad file leaves the others usable.
    """
    loaded = {path: _loaded(path, settings) for path in pipeline_files(settings)}
    owners: dict[str, Path] = {}
    for path, outcome in loaded.items():
        if isinstance(outcome, Pipeline) and (outcome.name not in owners or path.stem == outcome.name):
            owners[outcome.name] = path
    return tuple(
        outcome
        if isinstance(outcome, InvalidSpec) or owners[outcome.name] == path
        else _taken_name(path, outcome, owners[outcome.name])
        for path, outcome in loaded.items()
    )


def find_pipeline(name: str, settings: Settings) -> Pipeline:
    """The pipeline called ``name``; problems in other files do not matter. Of several files that declare it, the one
    that is called so is meant, or else the first.

    :raises UnknownName: no file declares that name
    """
    found = next((path for path in _files_for(name, settings) if _declares(path, name, settings)), None)
    if found is None:
        raise UnknownName("pipeline", name, sorted(map(_name_in, pipeline_files(settings))))
    return _load(found, settings)


def _files_for(name: str, settings: Settings) -> Iterator[Path]:
    """Most files are called as their pipeline, so that no other one has to be looked at."""
    folder = Path(settings.pipelines)
    usual = folder / f"{name}.yaml"
    if usual.parent == folder:
        yield usual
    yield from pipeline_files(settings)


def _declares(path: Path, name: str, settings: Settings) -> bool:
    kept = _kept(path, settings)
    return kept.name == name if kept else _may_name(path, name) and _name_in(path) == name


def _name_in(path: Path) -> str:
    return str(read_document(path).data.get("pipeline"))


def _may_name(path: Path, name: str) -> bool:
    """Whether the file may be that of the pipeline, found without parsing it: a name has no letter that YAML would have
    to write in another way.
    """
    try:
        return name.encode() in path.read_bytes()
    except OSError:
        return False


def pipeline_files(settings: Settings) -> tuple[Path, ...]:
    return tuple(sorted(Path(settings.pipelines).glob("*.yaml")))


def _taken_name(path: Path, pipeline: Pipeline, owner: Path) -> InvalidSpec:
    line = read_document(path).line(("pipeline",))
    taken = f"{pipeline.name!r}, which {owner} has"
    return InvalidSpec(str(path), [SpecProblem(line, "pipeline", taken, "a name that no other file has")])


def _loaded(path: Path, settings: Settings) -> Pipeline | InvalidSpec:
    try:
        return _load(path, settings)
    except InvalidSpec as error:
        return error


Identity = tuple[int, int, int] | None  # when it was changed, its size and its inode; None of a file that is gone
SETTLED_NANOSECONDS = 2_000_000_000  # within which a file system may give two changes the same time


@dataclass(frozen=True)
class _ReadPipeline:
    """A pipeline, and the files that it was read from: its own, and those whose code and suites it names."""

    pipeline: Pipeline
    files: Mapping[Path, Identity]
    variables: Resolved

    @property
    def is_current(self) -> bool:
        return self.variables.is_current and all(_identity(path) == known for path, known in self.files.items())

    @property
    def is_settled(self) -> bool:
        """Whether whoever changes one of the files from now on gives it another identity."""
        newest = max(known[0] if known else 0 for known in self.files.values())
        return newest < time.time_ns() - SETTLED_NANOSECONDS


_READ = Shelf[_ReadPipeline]("pipelines")


def _load(path: Path, settings: Settings) -> Pipeline:
    """A file that has problems is read each time, as what it lacks may come from anywhere.

    :raises InvalidSpec: listing every problem of the file with its line
    :raises InvalidSetting: STAGEHOLD_RESTART is no strategy
    """
    kept = _kept(path, settings)
    if kept:
        return kept
    project, suites, own = Path(settings.project), Path(settings.suites), _identity(path)
    whole = project_file(project)
    of_project, said = _identity(whole), read_project_file(project)
    written = with_sources(read_document(path), project)
    variables = resolved(written, said.vars, said.vars_of(settings.target))
    document = variables.document
    pipeline = _pipeline(variables, project=project, suites=suites)
    if "restart" not in document.data:
        usual = usual_restart(settings.restart, pipeline.checkpoint)
        pipeline = pipeline.model_copy(update={"restart": usual})
    named = {file: _identity(file) for file in _named_files(document.data, project, suites)}
    sources = {Path(part.file): _identity(Path(part.file)) for part in written.parts.values()}
    read = _ReadPipeline(pipeline, {path: own, whole: of_project, **named, **sources}, variables)
    if read.is_settled:
        _READ.put(_place(path, settings), read)
    return pipeline


def _kept(path: Path, settings: Settings) -> Pipeline | None:
    """What was read of it before, unless a file has changed since."""
    read = _READ.get(_place(path, settings))
    return read.pipeline if read and read.is_current else None


def _place(path: Path, settings: Settings) -> tuple[str, ...]:
    return str(path), settings.project, settings.suites, settings.restart, settings.target


def _identity(path: Path) -> Identity:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


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
    draft = Draft(form, document.file, document.data, frozenset(problem.path for problem in broken), project, suites)
    found = [*broken, *check(draft)]
    if not found:
        return _checked(draft, variables.values)
    placed: dict[str, dict[SpecProblem, None]] = {}
    for problem in found:
        said, path = document.said_by(problem.path)
        line, field = said.line(path), ".".join(path) or "file"
        placed.setdefault(said.file, {})[SpecProblem(line, field, problem.given, problem.allowed)] = None
    file, problems = min(placed.items(), key=lambda each: each[0] == document.file)  # that of a part comes first
    raise InvalidSpec(file, sorted(problems, key=lambda problem: problem.line))


def _checked(draft: Draft, variables: Mapping[str, Any]) -> Pipeline:
    """The pipeline that a draft without problems says."""
    form = draft.form
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
        variables=variables,
        **{name: getattr(form, name) for name in RunSettings.model_fields},
    )


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
    falls_back = why is TypeReason.MODE and mode is ExecutionMode.PIPELINED_WITH_BATCH_FALLBACK and not kind.stored
    return Output.model_validate({**written, "type": kind, "why": why, "falls_back": falls_back})
