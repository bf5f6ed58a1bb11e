"""`stagehold refused`: look at the data that gates refuse, rows that fail first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from stagehold.cli.common.output import ShownTable, print_document, print_progress
from stagehold.cli.common.request import AsJson, PipelineName
from stagehold.cli.gates.waive import Interval, interval_of
from stagehold.errors import UnknownName
from stagehold.settings import Settings, load_settings

if TYPE_CHECKING:
    from stagehold.ledger.ledger import Ledger
    from stagehold.spec.pipeline import Pipeline
    from stagehold.viewer.refused_rows import RefusedStage

SHOWN = 20  # rows
COLUMNS = ("stage", "partition", "rows", "set aside", "state", "why")
FIELDS = ("stage", "partition", "rows", "set_aside", "state", "why")
StageName = Annotated[str | None, typer.Option("--stage", help="Show rows of this stage.")]
Partition = Annotated[int | None, typer.Option("--partition", help="Only this partition of the stage.")]
SetAside = Annotated[bool, typer.Option("--set-aside", help="Show the rows that were set aside, not blocked ones.")]
Sql = Annotated[str | None, typer.Option("--sql", help='A SELECT; views are "STAGE" and "STAGE"."set_aside".')]
Unmask = Annotated[bool, typer.Option("--unmask", help="Show the columns, too, that the suite's samples mask.")]
Limit = Annotated[
    int | None, typer.Option("--limit", min=0, help=f"Most rows to show. Default: {SHOWN}, all with --json.")
]


def refused(
    pipeline: PipelineName,
    interval: Interval = None,
    stage: StageName = None,
    partition: Partition = None,
    set_aside: SetAside = False,
    sql: Sql = None,
    unmask: Unmask = False,
    limit: Limit = None,
    as_json: AsJson = False,
) -> None:
    """Show what gates refuse of an interval: which partitions, and with --stage or --sql their rows."""
    from stagehold.cli.checkpoints.printing import print_rows
    from stagehold.viewer.refused_rows import blocked_rows, rows_of_refused, set_aside_rows

    settings = load_settings()
    wanted, every = refused_stages(pipeline, interval, settings)
    found = [_within(stage, partition) for stage in every]
    if not unmask and (sql is not None or stage is not None):
        found = masked_stages(found, pipeline, settings)
    most = SHOWN if limit is None and not as_json else limit
    if sql is not None:
        print_rows(rows_of_refused(found, sql, most, print_progress), "", as_json)
    elif stage is not None:
        own = stage_named(stage, found)
        rows = set_aside_rows(own, most, print_progress) if set_aside else blocked_rows(own, most, print_progress)
        print_rows(rows, f"{stage} for {wanted}", as_json)
    elif as_json:
        told = [dict(zip(FIELDS, row, strict=True)) for stage in found for row in _rows(stage)]
        print_document({"refused": told})
    else:
        refused_table(f"{pipeline} for {wanted}", found).print()


def refused_stages(pipeline: str, interval: str | None, settings: Settings) -> tuple[str, list[RefusedStage]]:
    """The interval that is meant, by default that of the newest run, and what gates refuse of it."""
    from stagehold.chronicle.chronicle import open_ledger

    with open_ledger(settings) as ledger:
        wanted = interval_of(interval, pipeline, ledger, settings)
        return wanted, [*_refused(pipeline, wanted, ledger)]


def _refused(pipeline: str, interval: str, ledger: Ledger) -> Iterator[RefusedStage]:
    from stagehold.model.records import WHOLE
    from stagehold.viewer.refused_rows import RefusedStage

    for name, records in ledger.partitions.newest_of(pipeline, interval).items():
        refused_records = tuple(
            record for record in records if record.refused or record.set_aside or not record.state.counts_as_done
        )
        judged = (
            ledger.gates.newest(records[0].cell, {WHOLE, *(record.partition for record in refused_records)})
            if refused_records
            else ()
        )
        found = RefusedStage(name, refused_records, tuple(result for result in judged if not result.passed))
        if found.blocked or found.with_rows_aside:
            yield found


def masked_stages(stages: Sequence[RefusedStage], pipeline: str, settings: Settings) -> list[RefusedStage]:
    """The same, without the values of columns that their suites mask, and with a line that says so."""
    from stagehold.spec.loading.loader import find_pipeline

    declared = find_pipeline(pipeline, settings)
    masked = [replace(stage, masked=_masks(stage, declared, settings)) for stage in stages]
    for stage in masked:
        if stage.masked:
            print_progress(f"{stage.name}: {', '.join(stage.masked)} masked by its suite; --unmask shows all")
    return masked


def _masks(stage: RefusedStage, pipeline: Pipeline, settings: Settings) -> tuple[str, ...]:
    """What the stage's gate masks now; where it has none any more, what those do that refused its data."""
    from stagehold.gates.suite_files import suite_of

    own = [declared.gate for declared in pipeline.stages if stage.name in (declared.name, declared.id)]
    gates = [gate for gate in own if gate] or list(dict.fromkeys(result.suite for result in stage.failures))
    suites = (suite_of(pipeline, gate, settings) for gate in gates)
    return tuple(dict.fromkeys(name for suite in suites for name in suite.samples.mask))


def _within(stage: RefusedStage, partition: int | None) -> RefusedStage:
    if partition is None:
        return stage
    return replace(stage, records=tuple(record for record in stage.records if record.partition == partition))


def stage_named(name: str, stages: Sequence[RefusedStage]) -> RefusedStage:
    by_name = {stage.name: stage for stage in stages}
    if name not in by_name:
        raise UnknownName("stage of which a gate refuses anything", name, tuple(by_name))
    return by_name[name]


def refused_table(title: str, stages: Sequence[RefusedStage]) -> ShownTable:
    rows = [[*map(str, row)] for stage in stages for row in _rows(stage)]
    more = "--stage shows rows, --sql asks them; `stagehold waive` lets a partition be read as it is"
    return ShownTable(f"Refused in {title}", COLUMNS, rows, (more if rows else f"{title}: gates refuse nothing",))


def _rows(stage: RefusedStage) -> Iterator[tuple[str | int, ...]]:
    for record in stage.records:
        if record in stage.blocked or record in stage.with_rows_aside:
            aside = record.set_aside.rows if record.set_aside else 0
            why = record.reason or stage.why_held(record) or "rows that its gate does not expect were set aside"
            yield stage.name, record.partition, record.rows, aside, record.state, why
