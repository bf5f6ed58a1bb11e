"""`stagehold checkpoints`: which were taken of a run, and what is in one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stagehold.cli.common.output import moment, print_document, print_table
from stagehold.cli.common.request import AsJson
from stagehold.settings import Settings, load_settings

if TYPE_CHECKING:
    from stagehold.checkpoints.checkpoint import Checkpoint, StageSnapshot
    from stagehold.ledger.ledger import Ledger
    from stagehold.model.checkpoint_records import Acknowledgement, CheckpointRecord
    from stagehold.model.records import Restore, Run

checkpoints = typer.Typer(help="Numbered checkpoints of a run: what it had reached.", no_args_is_help=True)
UNTOLD = "not told to all that have a part in it"
COLUMNS = ("number", "state", "trigger", "taken", "seconds", "acknowledged", "written", "referenced", "of", "why")
RunName = Annotated[str | None, typer.Option("--run", help="Id of the run. Default: the newest of all.")]
Number = Annotated[int, typer.Argument(help="Number of the checkpoint.")]


@checkpoints.command("list")
def list_checkpoints(run: RunName = None, as_json: AsJson = False) -> None:
    """Show the checkpoints of a run, also those that failed or were replaced by newer ones."""
    from stagehold.chronicle.chronicle import open_ledger

    with open_ledger(load_settings()) as ledger:
        found = run_asked(run, ledger)
        records = ledger.checkpoints.of_run(found.run_id)
        parts = _by_number(ledger.acknowledgements.of_run(found.run_id))
        restores = [restore for restore in ledger.restores.of_run(found.run_id) if restore.snapshot]
    if as_json:
        document = [_document(record, parts[record.number]) for record in records]
        counts = {**_counts(records), "restored": len(restores)}
        latest = _restored_document(restores[0]) if restores else None
        print_document({"run": asdict(found), "counts": counts, "restored": latest, "checkpoints": document})
        return
    print_table(f"checkpoints of {found.run_id}", COLUMNS, [_row(record, parts[record.number]) for record in records])
    told = ", ".join(f"{state.replace('_', ' ')} {count}" for state, count in _counts(records).items())
    typer.echo(told if records else "There are none.")
    if restores:
        typer.echo(f"restored {len(restores)}; latest: {_restored(restores[0])}")


def _restored_document(restore: Restore) -> dict[str, Any]:
    return {
        "manifest": restore.snapshot,
        "requested_at": restore.requested_at,
        "fulfilled_at": restore.fulfilled_at,
        "claim_mode": restore.claim_mode,
    }


def _restored(restore: Restore) -> str:
    """What the run began with last. Its address is what `--restore` and `inspect` take, as long as it is there."""
    taken = f"taken over by {moment(restore.fulfilled_at)}" if restore.fulfilled_at else "not all of it is taken over"
    return f"{restore.snapshot}, asked for {moment(restore.requested_at)}, {taken} ({restore.claim_mode})"


@checkpoints.command()
def show(number: Number, run: RunName = None, as_json: AsJson = False) -> None:
    """Show who acknowledged a checkpoint and when, and what is in it, as it stands in the lake."""
    from stagehold.chronicle.chronicle import open_ledger
    from stagehold.errors import UnknownName

    settings = load_settings()
    with open_ledger(settings) as ledger:
        found = run_asked(run, ledger)
        records = {str(record.number): record for record in ledger.checkpoints.of_run(found.run_id)}
        parts = _by_number(ledger.acknowledgements.of_run(found.run_id))[number]
    if str(number) not in records:
        raise UnknownName(f"checkpoint of {found.run_id}", str(number), tuple(records))
    record = records[str(number)]
    checkpoint = _stored(record, settings) if _state(record) == "completed" else None  # else the lake has none
    if as_json:
        print_document({"checkpoint": _document(record, parts), "stages": stage_rows(checkpoint)})
        return
    print_table(f"checkpoint {number} of {found.run_id}", COLUMNS, [_row(record, parts)])
    if parts:
        print_table("acknowledgements", ("region", "attempt", "asked", "answered", "answer"), list(map(_part, parts)))
    if checkpoint is None:
        return
    stage_table(checkpoint)


def stage_table(checkpoint: Checkpoint) -> None:
    rows = [tuple(str(value) for value in stage.values()) for stage in stage_rows(checkpoint)]
    print_table(
        "stages", ("stage", "id", "partitions", "consumable", "blocked", "held", "rows", "bytes", "position"), rows
    )


def run_asked(run_id: str | None, ledger: Ledger) -> Run:
    """The run of that id, or the newest of all."""
    from stagehold.cli.status import recent_runs

    if run_id is not None:
        return ledger.runs.get(run_id)
    newest = ledger.runs.recent(limit=1)
    if not newest:
        recent_runs(ledger, load_settings()).print()  # says that there are none, and why
        raise typer.Exit(1)
    return newest[0]


def _stored(record: CheckpointRecord, settings: Settings) -> Checkpoint:
    from stagehold.lake.checkpoints.manifest import CheckpointedRun
    from stagehold.lake.checkpoints.stored_checkpoints import StoredCheckpoints

    place = CheckpointedRun(record.pipeline, record.interval, record.run_id)
    return StoredCheckpoints(settings.lake_uri, place).read_checkpoint(record.number)


def _state(record: CheckpointRecord) -> str:
    return "replaced" if record.discarded_at else record.state.replace("_", " ")


def _counts(records: Sequence[CheckpointRecord]) -> dict[str, int]:
    """Checkpoints by state, as Flink counts them: one that was replaced was completed."""
    from stagehold.model.checkpoint_records import CheckpointState

    order = (CheckpointState.COMPLETED, CheckpointState.FAILED, CheckpointState.IN_PROGRESS)
    return {str(state): sum(record.state is state for record in records) for state in order}


def _by_number(parts: Iterable[Acknowledgement]) -> Mapping[int, list[Acknowledgement]]:
    found: defaultdict[int, list[Acknowledgement]] = defaultdict(list)
    for acknowledgement in parts:
        found[acknowledgement.number].append(acknowledgement)
    return found


def _seconds(record: CheckpointRecord) -> float | None:
    return (record.ended_at - record.triggered_at).total_seconds() if record.ended_at else None


def _document(record: CheckpointRecord, parts: Sequence[Acknowledgement]) -> dict[str, Any]:
    return {
        **asdict(record),
        "seconds": _seconds(record),
        "acknowledgements": [asdict(acknowledgement) for acknowledgement in parts],
    }


def _part(acknowledgement: Acknowledgement) -> tuple[str, ...]:
    answered = moment(acknowledgement.answered_at) if acknowledgement.answered_at else ""
    why = acknowledgement.reason.replace("_", " ") if acknowledgement.reason else str(acknowledgement.answer or "")
    return acknowledgement.subject, acknowledgement.attempt_id, moment(acknowledgement.asked_at), answered, why


def _acknowledged(parts: Sequence[Acknowledgement]) -> str:
    from stagehold.model.checkpoint_records import Answer

    return (
        f"{sum(acknowledgement.answer is Answer.ACKNOWLEDGED for acknowledgement in parts)}/{len(parts)}"
        if parts
        else ""
    )


def _row(record: CheckpointRecord, parts: Sequence[Acknowledgement]) -> tuple[str, ...]:
    from rich.filesize import decimal

    seconds = _seconds(record)
    return (
        str(record.number),
        _state(record),
        record.trigger.replace("_", " ") + (f": savepoint {record.savepoint}" if record.savepoint else ""),
        moment(record.triggered_at),
        "" if seconds is None else f"{seconds:.1f}",
        _acknowledged(parts),
        decimal(record.bytes_written),
        decimal(record.bytes_referenced),
        f"{record.pipeline} {record.interval}",
        _why(record),
    )


def _why(record: CheckpointRecord) -> str:
    failed = f"{record.failure or ''}{' (failed the run)' if record.fails_run else ''}"
    return ", ".join(filter(None, (failed, UNTOLD if record.untold else "")))


def stage_rows(checkpoint: Checkpoint | None) -> list[dict[str, Any]]:
    """What each stage has there, as a document says it."""
    return [_stage_row(stage) for stage in (checkpoint.stages if checkpoint else ())]


def _stage_row(stage: StageSnapshot) -> dict[str, Any]:
    """Rows and bytes are of all data that is there, whether or not anybody may read it."""
    from stagehold.model.standing import PartitionState

    counts = Counter(record.state for record in stage.partitions)
    present = [record for record in stage.partitions if record.state.has_data]
    return {
        "stage": stage.shape.name,
        "id": stage.shape.id,
        "partitions": stage.parallelism,
        "consumable": counts[PartitionState.CONSUMABLE],
        "blocked": counts[PartitionState.BLOCKED],
        "held": counts[PartitionState.HELD],
        "rows": sum(record.rows for record in present),
        "bytes": sum(record.bytes for record in present),
        "position": str(stage.position or ""),
    }
