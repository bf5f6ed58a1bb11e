"""What Airflow's pages say of a pipeline's DAG and of its tasks."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from pathlib import Path
from urllib.parse import urlsplit

from airflow.configuration import conf

from stagehold.code.project import functions, load_module
from stagehold.plan.split.partition_counts import with_counts
from stagehold.plan.split.regions import Region
from stagehold.spec.pipeline import Pipeline, Stage


def dag_documentation(pipeline: Pipeline) -> str:
    """Its description, its stages as a table, and where the code is."""
    said = [pipeline.airflow.description, ""] if pipeline.airflow.description else []
    file = f"Compiled from `{Path(pipeline.file).name}`. {_code_link(pipeline)}"
    return "\n".join([*said, file, "", *_stage_table(pipeline)])


def task_documentation(pipeline: Pipeline, region: Region, project: Path) -> str:
    """Of each stage of a region: what its function says of itself, what it reads, makes and has judged."""
    undecided = _undecided(pipeline)
    return "\n\n".join(_stage_text(pipeline.stage(name), pipeline, project, undecided) for name in region.stages)


def _stage_text(stage: Stage, pipeline: Pipeline, project: Path, undecided: Collection[str]) -> str:
    lines = [f"**{stage.name}**", _docstring(stage.job, project), "\n".join(_facts(stage, pipeline, undecided))]
    return "\n\n".join(line for line in lines if line)


def _facts(stage: Stage, pipeline: Pipeline, undecided: Collection[str]) -> Iterator[str]:
    yield f"* job: `{stage.job}`. {_code_link(pipeline)}"
    yield f"* reads: {_reads(stage)}"
    yield f"* output: {stage.output.table or stage.output.type}, {_partitions(stage, undecided)} partitions"
    if stage.key:
        yield f"* key: {', '.join(stage.key)}"
    if stage.gate:
        yield f"* gate: {stage.gate}"
    if stage.state:
        yield f"* keeps: {', '.join(stage.state)}"


def _code_link(pipeline: Pipeline) -> str:
    """Airflow may be served under a path."""
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
    return f"| {stage.name} | `{stage.job}` | {partitions} | {_reads(stage)} | {output} | {stage.gate or ''} |"


def _reads(stage: Stage) -> str:
    edges = ", ".join(f"{edge.stage} ({edge.exchange})" for edge in stage.inputs)
    return edges or (stage.source.path or "" if stage.source else "")


def _undecided(pipeline: Pipeline) -> Collection[str]:
    return with_counts(pipeline, {}).undecided


def _partitions(stage: Stage, undecided: Collection[str]) -> str:
    return "auto" if stage.name in undecided else str(stage.partitions)
