"""`stagehold partitions`: every partition of an interval, as the ledger knows it now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stagehold.cli.common.output import print_document, print_table
from stagehold.cli.common.request import AsJson, PipelineName, recorded_interval
from stagehold.errors import UnknownName
from stagehold.settings import Settings, load_settings

if TYPE_CHECKING:
    from stagehold.ledger.ledger import Ledger
    from stagehold.model.records import PartitionRecord

    Recorded = Mapping[str, tuple[PartitionRecord, ...]]

COLUMNS = ("stage", "partition", "state", "rows", "size", "version", "epoch", "why")
Interval = Annotated[
    str | None, typer.Option("--interval", help="Which interval. Default: that of the pipeline's newest run.")
]
StageName = Annotated[str | None, typer.Option("--stage", help="Only this stage, by name or uid.")]


def partitions(
    pipeline: PipelineName, interval: Interval = None, stage: StageName = None, as_json: AsJson = False
) -> None:
    """Show every partition of an interval."""
    from stagehold.chronicle.chronicle import open_ledger

    settings = load_settings()
    asked = recorded_interval(interval, pipeline, settings) if interval else None
    with open_ledger(settings) as ledger:
        wanted = asked or _newest_interval(pipeline, ledger)
        recorded = ledger.partitions.newest_of(pipeline, wanted) if wanted else {}
    found = tuple(_with_skew(_chosen(pipeline, stage, recorded, settings)))
    if as_json:
        print_document(
            {
                "pipeline": pipeline,
                "interval": wanted,
                "partitions": [_document(record, skew) for record, skew in found],
            }
        )
    elif found:
        print_table(f"{pipeline} for {wanted}", COLUMNS, (_cells(record, skew) for record, skew in found))
    else:
        typer.echo(_nothing(pipeline, wanted, stage))


def _newest_interval(pipeline: str, ledger: Ledger) -> str | None:
    run = ledger.runs.newest(pipeline)
    return run.interval if run else None


def _chosen(pipeline: str, stage: str | None, recorded: Recorded, settings: Settings) -> tuple[PartitionRecord, ...]:
    """The asked stages' records. The pipeline's file is read only if the ledger does not know the names,
    to refuse misspelt ones.
    """
    if stage is None and not recorded:
        _declared_stages(pipeline, settings)
    if stage is None:
        return tuple(record for records in recorded.values() for record in records)
    if stage in recorded:
        return recorded[stage]
    declared = _declared_stages(pipeline, settings)
    if stage not in (*declared, *declared.values()):
        raise UnknownName(f"stage of {pipeline}", stage, tuple(declared))
    return recorded.get(declared.get(stage, stage), ())


def _with_skew(records: Sequence[PartitionRecord]) -> Iterator[tuple[PartitionRecord, str | None]]:
    """Each record with what makes it much larger than the others of its stage, if it is."""
    from stagehold.plan.waves.skew import skew_text, skewed

    for _, stage in groupby(records, key=lambda record: record.cell.stage):
        own = list(stage)
        found = skewed(own)
        yield from (
            (record, skew_text(found[record.partition]) if record.partition in found else None) for record in own
        )


def _declared_stages(pipeline: str, settings: Settings) -> dict[str, str]:
    """Stage ids by stage name."""
    from stagehold.spec.loading.loader import find_pipeline

    return {stage.name: stage.id for stage in find_pipeline(pipeline, settings).stages}


def _nothing(pipeline: str, interval: str | None, stage: str | None) -> str:
    if interval is None:
        return f"{pipeline} has not run yet. `stagehold run {pipeline}` runs it."
    what = f"stage {stage}" if stage else "it"
    return (
        f"{pipeline} has nothing recorded of {what} for {interval}. `stagehold run {pipeline} --interval "
        f"{interval}` makes it."
    )


def _document(record: PartitionRecord, skew: str | None) -> dict[str, Any]:
    facts = asdict(record)
    return {"stage": facts.pop("cell")["stage"], "bytes": record.bytes, "skew": skew, **facts}


def _cells(record: PartitionRecord, skew: str | None) -> tuple[str, ...]:
    from rich.filesize import decimal

    version = "" if record.version is None else str(record.version)
    numbers = (str(record.rows), decimal(record.bytes), version, str(record.epoch))
    place = (record.cell.stage, str(record.partition), record.state)
    return *place, *numbers, "; ".join(filter(None, (record.reason, skew and f"skewed: {skew}")))
