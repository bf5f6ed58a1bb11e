"""`stagehold verify`: read recorded data again, and compare it with what is on record."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any
from uuid import uuid4

import typer

from stagehold.cli.common.output import print_document, print_progress, print_table
from stagehold.cli.common.request import AsJson
from stagehold.errors import InvalidArgument, InvalidSpec
from stagehold.settings import Settings, load_settings

if TYPE_CHECKING:
    from stagehold.plan.scrub import Draw, ScrubFinding, StageScrub
    from stagehold.spec.pipeline import Pipeline

COLUMNS = ("pipeline", "interval", "stage", "checked", "damaged", "missing", "skipped", "table")
PipelineName = Annotated[
    str | None, typer.Argument(metavar="[PIPELINE]", help="Only this pipeline. Default: all of the pipelines' folder.")
]
Interval = Annotated[
    str | None, typer.Option("--interval", help="Only this interval. Default: every one that is on record.")
]
SampleText = Annotated[
    str,
    typer.Option(
        "--sample",
        help="How much of each stage and interval, drawn at random, at least one partition: a share (5%) or a number.",
    ),
]
Heal = Annotated[
    bool, typer.Option("--heal", help="Compute what is damaged or missing again now, by a run of its interval.")
]


def verify(
    pipeline: PipelineName = None,
    interval: Interval = None,
    sample: SampleText = "100%",
    heal: Heal = False,
    as_json: AsJson = False,
) -> None:
    """Read recorded data again; what is damaged is put on record, so that the next run heals it.

    Ends with 1 if something is damaged or missing and was not healed.
    """
    from stagehold.chronicle.chronicle import open_ledger
    from stagehold.plan.scrub import next_command
    from stagehold.run.here.mending_runs import heal as heal_found
    from stagehold.run.upkeep.scrubbing import requests_asked, scrub, scrub_with_spark

    settings, draw = load_settings(), _sample(sample)
    pipelines, unread = _pipelines(pipeline, settings)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with open_ledger(settings) as ledger:
        place = scrub_with_spark(ledger, settings, print_progress)
        requests = requests_asked(pipelines, interval, ledger)
        results = scrub(requests, draw, place)
        failures: tuple[str, ...] = ()
        if heal and next_command(results):
            results, failures = heal_found(requests, results, place)
    if as_json:
        print_document(_document(results, failures))
    else:
        _show(results)
    for problem in (*failures, *(f"not verified: {error}" for error in unread)):
        typer.secho(problem, fg="red", err=True)
    if unread or next_command(results):
        raise typer.Exit(1)


def _sample(text: str) -> Draw:
    from stagehold.plan.scrub import SAMPLE_ALLOWED, Sample

    found = Sample.read(text, seed=uuid4().hex)
    if found is None:
        raise InvalidArgument("--sample", text, SAMPLE_ALLOWED)
    return found.draw


def _pipelines(name: str | None, settings: Settings) -> tuple[list[Pipeline], list[InvalidSpec]]:
    from stagehold.spec.loading.loader import find_pipeline, load_each_pipeline

    found = load_each_pipeline(settings) if name is None else (find_pipeline(name, settings),)
    unread = [loaded for loaded in found if isinstance(loaded, InvalidSpec)]
    return [loaded for loaded in found if not isinstance(loaded, InvalidSpec)], unread


def _show(results: Sequence[StageScrub]) -> None:
    from stagehold.cli.status import lost_ledger

    if not results:
        nothing = "Nothing is on record that could be verified; `stagehold run` computes something."
        typer.echo(lost_ledger(load_settings()) or nothing)
        return
    print_table("verified", COLUMNS, (_cells(result) for result in results))
    for result in results:
        for line in (*_found(result), *_skipped(result)):
            typer.echo(line)
    typer.echo(_last_line(results))


def _last_line(results: Sequence[StageScrub]) -> str:
    from stagehold.plan.scrub import Condition, next_command

    findings = [finding for result in results for finding in result.findings]
    unhealed, healed = sum(finding.open for finding in findings), sum(finding.healed for finding in findings)
    skipped = sum(finding.condition is Condition.SKIPPED for finding in findings)
    told = f"{sum(result.checked for result in results)} partitions checked"
    told += f", {skipped} skipped" if skipped else ""
    told += f", {healed} healed" if healed else ""
    if unhealed:
        return (
            f"{told}; {unhealed} damaged or missing. The next run or Resume of the interval heals what is marked or "
            f"needed; this computes all of it again now: {next_command(results)}"
        )
    return f"{told}; nothing is damaged or missing{' any more' if healed else ''}."


def _cells(result: StageScrub) -> tuple[str, ...]:
    from stagehold.plan.scrub import Condition

    cell = result.target.cell
    counts = (str(result.count(condition)) for condition in Condition)
    place = (cell.pipeline, cell.interval, result.target.stage.name, str(result.checked))
    return *place, *counts, result.target.stage.output.table or ""


def _found(result: StageScrub) -> Iterator[str]:
    """One line for each partition that is damaged or missing."""
    from stagehold.plan.scrub import Condition

    for finding in result.findings:
        if finding.condition is not Condition.SKIPPED:
            words = (
                finding.condition.value,
                *(("marked",) if finding.marked else ()),
                *(("healed",) if finding.healed else ()),
            )
            files = ", ".join(file.path for file in finding.record.files)
            which = (
                f", files {files}" if finding.condition is Condition.DAMAGED else ""
            )  # what is missing says which are
            yield (
                f"{_place(result)}[{finding.record.partition}] {', '.join(words)}: {finding.differs}; table "
                f"{finding.record.table}{which}"
            )


def _skipped(result: StageScrub) -> Iterator[str]:
    """One line for all partitions that were skipped for one reason."""
    from stagehold.model.partition_set import PartitionSet
    from stagehold.plan.scrub import Condition

    skipped: dict[str, list[int]] = {}
    for finding in result.findings:
        if finding.condition is Condition.SKIPPED:
            skipped.setdefault(finding.differs, []).append(finding.record.partition)
    for why, partitions in skipped.items():
        yield f"{_place(result)}[{PartitionSet(partitions)}] skipped: {why}"


def _place(result: StageScrub) -> str:
    cell = result.target.cell
    return f"{cell.pipeline} {cell.interval} {result.target.stage.name}"


def _document(results: Sequence[StageScrub], failures: Sequence[str]) -> dict[str, Any]:
    from stagehold.plan.scrub import next_command

    return {
        "stages": [_stage_document(result) for result in results],
        "partitions": [_partition_document(result, finding) for result in results for finding in result.findings],
        "not_healed": list(failures),
        "next": next_command(results),
    }


def _stage_document(result: StageScrub) -> dict[str, Any]:
    from stagehold.plan.scrub import Condition

    counts = {condition.value: result.count(condition) for condition in Condition}
    place = {"pipeline": result.target.cell.pipeline, "interval": result.target.cell.interval}
    return {**place, "stage": result.target.stage.name, "checked": result.checked, **counts, "busy": result.target.busy}


def _partition_document(result: StageScrub, finding: ScrubFinding) -> dict[str, Any]:
    return {
        "pipeline": result.target.cell.pipeline,
        "interval": result.target.cell.interval,
        "stage": result.target.stage.name,
        "partition": finding.record.partition,
        "state": finding.condition.value,
        "marked": finding.marked,
        "healed": finding.healed,
        "table": finding.record.table,
        "files": [file.path for file in finding.record.files],
        "differs": finding.differs,
    }
