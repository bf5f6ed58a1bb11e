"""`stagehold sample`: real rows of a stage's inputs, as files for its tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stagehold.cli.common.output import print_document, print_progress, print_table
from stagehold.cli.common.request import (
    AsJson,
    Interval,
    Params,
    PipelineName,
    RunOptions,
    request_asked,
    stage_asked,
)
from stagehold.settings import Settings, load_settings

if TYPE_CHECKING:
    from stagehold.run.here.sampling import SampledInput

ROWS = 1000
StageName = Annotated[str, typer.Argument(help="The stage whose inputs are wanted.")]
Rows = Annotated[int, typer.Option("--rows", min=1, help="Most rows of each input.")]
To = Annotated[str, typer.Option("--to", help="Folder; the files are TO/STAGE/INPUT.parquet.")]
Mask = Annotated[
    list[str] | None,
    typer.Option(
        "--mask",
        metavar="COLUMN,...",
        help="Columns whose values are replaced, equal ones by equal ones, so that rows still join. Repeatable.",
    ),
]


def sample(
    pipeline: PipelineName,
    stage: StageName,
    interval: Interval = None,
    rows: Rows = ROWS,
    to: To = "tests/data",
    mask: Mask = None,
    param: Params = None,
    as_json: AsJson = False,
) -> None:
    """Write rows of a stage's inputs into files for its tests.

    They are the same each time. Of inputs with a key, all rows of a value of it are there or none, in all of them. What
    is not there of an input is computed on the way; lake and ledger stay as they are.
    """
    from stagehold.run.here.sampling import sample_inputs, write_sample

    settings = load_settings()
    request = request_asked(pipeline, "sample", RunOptions(interval=interval, param=param), settings)
    stage_asked(request.pipeline, stage)
    masked = [name.strip() for names in mask or () for name in names.split(",") if name.strip()]
    sampled = sample_inputs(request, stage, settings, print_progress, most=rows, mask=masked)
    files = write_sample(sampled, Path(to) / stage)
    found = [_document(each, files[each.name], settings) for each in sampled]
    if as_json:
        print_document({"stage": stage, "interval": request.interval, "inputs": found})
        return
    print_table(
        f"Inputs of {stage}, {request.interval}", ("input", "rows", "of", "together by", "file"), map(_row, found)
    )
    typer.echo(f"In a test: {_call(stage, request.interval, found)}")


def _document(each: SampledInput, file: Path, settings: Settings) -> dict[str, Any]:
    """The file as the project's tests call it."""
    whole, project = file.resolve(), Path(settings.project).resolve()
    place = whole.relative_to(project) if whole.is_relative_to(project) else whole
    return {"input": each.name, "rows": each.rows.num_rows, "of": each.of, "key": each.key, "file": place.as_posix()}


def _row(found: dict[str, Any]) -> Sequence[str]:
    return found["input"], str(found["rows"]), str(found["of"]), ", ".join(found["key"]), found["file"]


def _call(stage: str, interval: str, found: Sequence[dict[str, Any]]) -> str:
    files = ", ".join(f'"{each["input"]}": "{each["file"]}"' for each in found)
    return f'stages.run("{stage}", {{{files}}}, interval="{interval}")'
