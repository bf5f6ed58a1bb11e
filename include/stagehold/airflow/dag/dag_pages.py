"""What Airflow's Code tab shows of a pipeline: its file and its stage functions, instead of the DAG file, which has one
line for all pipelines.
"""

from __future__ import annotations

import ast
import logging
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from airflow.configuration import conf
from airflow.sdk import DAG

from stagehold.code.project import functions, load_module
from stagehold.code.sql_job import shown_job, text_in
from stagehold.plan.split.exchange_forms import forms_into
from stagehold.plan.split.partition_counts import with_counts
from stagehold.plan.split.regions import Region
from stagehold.settings import Settings
from stagehold.spec.pipeline import Pipeline, Stage

log = logging.getLogger(__name__)


class PipelineDag(DAG):
    """Airflow keeps the text of the file that a DAG names as its source, and runs the file that it was loaded from.
    These are two fields, so only the first is set.
    """

    code_page: Path | None = None

    def validate(self) -> None:
        """Airflow calls this when it has noted the file that it loaded."""
        super().validate()  # type: ignore[no-untyped-call]
        if self.code_page is not None:
            self.fileloc = str(self.code_page)


def write_code_page(pipeline: Pipeline, settings: Settings) -> Path | None:
    """Write the file to show. None if it cannot be written: no DAG may be lost because of that."""
    page = settings.home_path / "code" / f"{pipeline.name}.py"
    try:
        text = "\n".join(_sections(pipeline, Path(settings.project)))
        if not page.is_file() or page.read_text(encoding="utf-8") != text:
            _replace(page, text)
    except OSError:
        log.warning("The Code tab shows only the DAG file: %s cannot be written", page, exc_info=True)
        return None
    return page


def _replace(page: Path, text: str) -> None:
    """Replace the file in one step, since several processes parse DAGs."""
    page.parent.mkdir(parents=True, exist_ok=True)
    written = page.with_suffix(f".{os.getpid()}")
    written.write_text(text, encoding="utf-8")
    written.replace(page)


def _sections(pipeline: Pipeline, project: Path) -> Iterator[str]:
    yield f"# Pipeline {pipeline.name}: its file and its stage functions. Change those; this copy is only shown."
    if Path(pipeline.file).is_file():
        yield f"\n# {_shown(Path(pipeline.file), project)}\n"
        yield Path(pipeline.file).read_text(encoding="utf-8")
    for job in dict.fromkeys(stage.job for stage in pipeline.stages):
        if text_in(job.partition(":")[0]) is None:  # it is in the pipeline's file
            yield from _function(job, project)


def _function(job: str, project: Path) -> Iterator[str]:
    module_name, _, name = job.partition(":")
    module = load_module(module_name, project)
    if module is None or name not in (known := functions(module)):
        return
    node = known[name]
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    lines = module.path.read_text(encoding="utf-8").splitlines()[first - 1 : node.end_lineno]
    yield f"\n# {_shown(module.path, project)}, line {first}\n"
    yield "\n".join(lines) + "\n"


def _shown(path: Path, project: Path) -> str:
    return str(path.relative_to(project)) if path.is_relative_to(project) else path.name


def dag_documentation(pipeline: Pipeline) -> str:
    """The pipeline's description, its stages as a table, and where the code is."""
    said = [pipeline.airflow.description, ""] if pipeline.airflow.description else []
    file = f"Compiled from `{Path(pipeline.file).name}`. {_code_link(pipeline)}"
    return "\n".join([*said, file, "", *_stage_table(pipeline)])


def task_documentation(pipeline: Pipeline, region: Region, project: Path) -> str:
    """For each stage of a region, its function's docstring, what it reads, what it makes and what is judged."""
    undecided = _undecided(pipeline)
    return "\n\n".join(_stage_text(pipeline.stage(name), pipeline, project, undecided) for name in region.stages)


def _stage_text(stage: Stage, pipeline: Pipeline, project: Path, undecided: Collection[str]) -> str:
    lines = [f"**{stage.name}**", _docstring(stage.job, project), "\n".join(_facts(stage, pipeline, undecided))]
    return "\n\n".join(line for line in lines if line)


def _facts(stage: Stage, pipeline: Pipeline, undecided: Collection[str]) -> Iterator[str]:
    yield f"* job: `{shown_job(stage.job)}`. {_code_link(pipeline)}"
    yield f"* reads: {_reads(stage)}"
    yield from (f"    * {form}" for form in forms_into(stage, pipeline))
    yield f"* output: {stage.output.table or stage.output.type}, {_partitions(stage, undecided)} partitions"
    for name, column in stage.output.columns.items():
        yield f"    * `{name}` {column}{f': {column.description}' if column.description else ''}"
    if stage.key:
        yield f"* key: {', '.join(stage.key)}"
    if stage.gate:
        yield f"* gate: {stage.gate}"
    if stage.state:
        yield f"* keeps: {', '.join(stage.state)}"


def _code_link(pipeline: Pipeline) -> str:
    """The link to the Code tab; Airflow may be served under a path."""
    below = urlsplit(conf.get("api", "base_url", fallback="")).path.rstrip("/")
    return f"[Code]({below}/dags/{pipeline.name}/code)"


def _docstring(job: str, project: Path) -> str:
    module_name, _, name = job.partition(":")
    module = load_module(module_name, project)
    function = functions(module).get(name) if module else None
    return (ast.get_docstring(function) or "") if function else ""


def _stage_table(pipeline: Pipeline) -> Iterator[str]:
    yield "| Stage | Job | Partitions | Reads | Output | Gate |"
    yield "|---|---|---|---|---|---|"
    undecided = _undecided(pipeline)
    yield from (_stage_row(stage, undecided) for stage in pipeline.stages)


def _stage_row(stage: Stage, undecided: Collection[str]) -> str:
    output, partitions = stage.output.table or stage.output.type, _partitions(stage, undecided)
    job = shown_job(stage.job)
    return f"| {stage.name} | `{job}` | {partitions} | {_reads(stage)} | {output} | {stage.gate or ''} |"


def _reads(stage: Stage) -> str:
    edges = ", ".join(f"{edge.stage} ({edge.exchange})" for edge in stage.inputs)
    return edges or (stage.source.path or "" if stage.source else "")


def _undecided(pipeline: Pipeline) -> Collection[str]:
    return with_counts(pipeline, {}).undecided


def _partitions(stage: Stage, undecided: Collection[str]) -> str:
    return "auto" if stage.name in undecided else str(stage.partitions)
