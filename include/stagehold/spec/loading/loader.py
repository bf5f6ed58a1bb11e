"""Pipelines from YAML files, or from the same shape made in Python. Every default is filled in here, once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stagehold.code.sql_job import job_of
from stagehold.errors import InvalidSpec, SpecProblem, UnknownName
from stagehold.model.keys.key_groups import default_max_parallelism
from stagehold.settings import Settings
from stagehold.spec.draft import Draft, key_of
from stagehold.spec.form import read_form
from stagehold.spec.loading.named_code import declared_failures, declared_notifiers
from stagehold.spec.loading.pipeline_checks import check
from stagehold.spec.pipeline import Input, Output, OutputForm, OutputType, Pipeline, Stage, StageSettings
from stagehold.spec.settings.run_settings import ExecutionMode, RunSettings
from stagehold.spec.settings.source import Source
from stagehold.spec.yaml import Document, plain_document, read_document

IN_PYTHON = "<python>"


def load_pipeline(path: Path, *, project: Path, suites: Path) -> Pipeline:
    """Read and check one file; jobs are looked up under ``project`` and gates under ``suites``, nothing is imported.

    :raises InvalidSpec: listing every problem of the file with its line
    """
    return _pipeline(read_document(path), project=project, suites=suites)


def build_pipeline(declaration: Mapping[str, Any], *, project: Path, suites: Path) -> Pipeline:
    """Make a pipeline in Python: ``declaration`` has the shape of the file, and passes the same checks."""
    return _pipeline(plain_document(declaration, IN_PYTHON), project=project, suites=suites)


def load_each_pipeline(settings: Settings) -> tuple[Pipeline | InvalidSpec, ...]:
    """Every file of the folder as a pipeline, or as what is wrong with it,
    so that a bad file leaves the others usable.
    """
    pipelines: dict[str, Pipeline] = {}
    results: list[Pipeline | InvalidSpec] = []
    for path in pipeline_files(settings):
        try:
            pipeline = _load(path, settings)
            _refuse_taken_name(path, pipeline, pipelines)
        except InvalidSpec as error:
            results.append(error)
            continue
        pipelines[pipeline.name] = pipeline
        results.append(pipeline)
    return tuple(results)


def find_pipeline(name: str, settings: Settings) -> Pipeline:
    """The pipeline called ``name``; problems in other files do not matter.

    :raises UnknownName: no file declares that name
    """
    files = pipeline_files(settings)
    found = next((path for path in files if _may_name(path, name) and _name_in(path) == name), None)
    if found is None:
        raise UnknownName("pipeline", name, sorted(map(_name_in, files)))
    return _load(found, settings)


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


def _refuse_taken_name(path: Path, pipeline: Pipeline, earlier: Mapping[str, Pipeline]) -> None:
    if pipeline.name in earlier:
        taken = f"{pipeline.name!r}, which {earlier[pipeline.name].file} has"
        line = read_document(path).line(("pipeline",))
        raise InvalidSpec(str(path), [SpecProblem(line, "pipeline", taken, "a name that no other file has")])


def _load(path: Path, settings: Settings) -> Pipeline:
    return load_pipeline(path, project=Path(settings.project), suites=Path(settings.suites))


def _pipeline(document: Document, *, project: Path, suites: Path) -> Pipeline:
    form, misshapen = read_form(document)
    broken = (*document.problems, *misshapen)
    draft = Draft(form, document.data, frozenset(problem.path for problem in broken), project, suites)
    found = [*broken, *check(draft)]
    if not found:
        return _resolved(draft, document.file)
    placed = {
        SpecProblem(document.line(problem.path), ".".join(problem.path) or "file", problem.given, problem.allowed): None
        for problem in found
    }
    raise InvalidSpec(document.file, sorted(placed, key=lambda problem: problem.line))


def _resolved(draft: Draft, file: str) -> Pipeline:
    """The pipeline that a draft without problems says."""
    form = draft.form
    return Pipeline(
        name=form.pipeline or "",
        file=file,
        stages=tuple(_stage(name, draft) for name in draft.order),
        failures=declared_failures(form.failures),
        on_failure=declared_notifiers(form.on_failure),
        on_gate_warning=declared_notifiers(form.on_gate_warning),
        on_resume=declared_notifiers(form.on_resume),
        **{name: getattr(form, name) for name in RunSettings.model_fields},
    )


def _stage(name: str, draft: Draft) -> Stage:
    stage, root = draft.stages[name], draft.auto.get(name)
    partitions = 1 if root else draft.counts[name]
    return Stage.model_validate(
        {
            **{field: getattr(stage, field) for field in StageSettings.model_fields},
            "name": name,
            "job": stage.job or job_of(stage.sql or ""),
            "source": None
            if stage.source is None
            else Source.model_validate(stage.source.model_dump(mode="json", exclude_unset=True)),
            "inputs": tuple(
                Input(stage=producer, exchange=edge.exchange, key=edge.key) for producer, edge in stage.inputs.items()
            ),
            "partitions": partitions,
            "auto_partitions": root == name,
            "max_parallelism": stage.max_parallelism
            or (root and draft.stages[root].max_parallelism)
            or default_max_parallelism(partitions or 1),
            "max_parallelism_declared": stage.max_parallelism is not None,
            "key": key_of(stage),
            "output": _output(stage.output, draft.types[name], draft.form.execution_mode),
        }
    )


def _output(form: OutputForm, kind: OutputType, mode: ExecutionMode) -> Output:
    written = {field: getattr(form, field) for field in OutputForm.model_fields}
    chosen = "type" not in form.model_fields_set and mode is ExecutionMode.PIPELINED_WITH_BATCH_FALLBACK
    return Output.model_validate({**written, "type": kind, "falls_back": chosen and not kind.stored})
