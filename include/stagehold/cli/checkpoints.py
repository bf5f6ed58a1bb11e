"""`stagehold checkpoints`: which were taken of a run, and what is in one."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stagehold.cli.output import moment, print_document, print_table
from stagehold.cli.request import AsJson
from stagehold.settings import Settings, load_settings

if TYPE_CHECKING:
    from stagehold.checkpoints.checkpoint import Checkpoint
    from stagehold.ledger.ledger import Ledger
    from stagehold.model.checkpoint_records import CheckpointRecord
    from stagehold.model.records import Run

checkpoints = typer.Typer(help="Numbered checkpoints of a run: what it had reached.", no_args_is_help=True)
COLUMNS = ("number", "state", "trigger", "taken", "seconds", "written", "referenced", "of", "why")
RunName = Annotated[str | None, typer.Option("--run", help="Id of the run. Default: the newest of all.")]
Number = Annotated[int, typer.Argument(help="Number of the checkpoint.")]


@checkpoints.command("list")
def list_checkpoints(run: RunName = None, as_json: AsJson = False) -> None:
    """Show the checkpoints of a run, also those that failed or were replaced by newer ones."""
    from stagehold.lake.chronicle import open_ledger

    with open_ledger(load_settings()) as ledger:
        found = _run(run, ledger)
        records = ledger.checkpoints.of_run(found.run_id)
    if as_json:
        print_document({"run": asdict(found), "checkpoints": [asdict(one) for one in records]})
        return
    print_table(f"checkpoints of {found.run_id}", COLUMNS, [_row(one) for one in records])
    states = [_state(one) for one in records]
    typer.echo(", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states)) or "There are none.")


@checkpoints.command()
def show(number: Number, run: RunName = None, as_json: AsJson = False) -> None:
    """Show what is in a checkpoint, as it stands in the lake."""
    from stagehold.errors import UnknownName
    from stagehold.lake.chronicle import open_ledger

    settings = load_settings()
    with open_ledger(settings) as ledger:
        found = _run(run, ledger)
        records = {str(one.number): one for one in ledger.checkpoints.of_run(found.run_id)}
    if str(number) not in records:
        raise UnknownName(f"checkpoint of {found.run_id}", str(number), tuple(records))
    record = records[str(number)]
    checkpoint = _stored(record, settings) if _state(record) == "completed" else None  # else the lake has none
    if as_json:
        print_document({"checkpoint": asdict(record), "stages": _stages(checkpoint)})
        return
    print_table(f"checkpoint {number} of {found.run_id}", COLUMNS, [_row(record)])
    if checkpoint is None:
        return
    rows = [tuple(str(value) for value in stage.values()) for stage in _stages(checkpoint)]
    print_table("stages", ("stage", "id", "partitions", "consumable", "blocked", "rows", "bytes", "position"), rows)


def _run(run_id: str | None, ledger: Ledger) -> Run:
    from stagehold.cli.runs import show_recent_runs

    if run_id is not None:
        return ledger.runs.get(run_id)
    newest = ledger.runs.recent(limit=1)
    if not newest:
        show_recent_runs(ledger, load_settings())  # says that there are none, and why
        raise typer.Exit(1)
    return newest[0]


def _stored(record: CheckpointRecord, settings: Settings) -> Checkpoint:
    from stagehold.lake.checkpoints.manifest import CheckpointedRun
    from stagehold.lake.checkpoints.stored import StoredCheckpoints

    place = CheckpointedRun(record.pipeline, record.interval, record.run_id)
    return StoredCheckpoints(settings.lake_uri, place).read_checkpoint(record.number)


def _state(record: CheckpointRecord) -> str:
    return "replaced" if record.discarded_at else record.state.replace("_", " ")


def _row(record: CheckpointRecord) -> tuple[str, ...]:
    from rich.filesize import decimal

    seconds = f"{(record.ended_at - record.triggered_at).total_seconds():.1f}" if record.ended_at else ""
    return (
        str(record.number),
        _state(record),
        record.trigger.replace("_", " "),
        moment(record.triggered_at),
        seconds,
        decimal(record.bytes_written),
        decimal(record.bytes_referenced),
        f"{record.pipeline} {record.interval}",
        record.failure or "",
    )


def _stages(checkpoint: Checkpoint | None) -> list[dict[str, Any]]:
    from stagehold.model.records import PartitionState

    return [
        {
            "stage": stage.shape.name,
            "id": stage.shape.id,
            "partitions": stage.parallelism,
            "consumable": sum(one.state is PartitionState.CONSUMABLE for one in stage.partitions),
            "blocked": sum(one.state is PartitionState.BLOCKED for one in stage.partitions),
            "rows": sum(one.rows for one in stage.partitions),
            "bytes": sum(one.bytes for one in stage.partitions),
            "position": str(stage.position or ""),
        }
        for stage in (checkpoint.stages if checkpoint else ())
    ]
