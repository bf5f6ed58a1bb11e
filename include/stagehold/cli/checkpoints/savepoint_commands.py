"""`stagehold savepoint`: what runs have reached, kept under names of the user's own."""

from __future__ import annotations

import getpass
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from stagehold.cli.common.output import moment, print_document, print_progress, print_table
from stagehold.cli.common.request import AsJson
from stagehold.settings import Settings, load_settings

if TYPE_CHECKING:
    from stagehold.lake.checkpoints.savepoints import Savepoint
    from stagehold.model.records import Run
    from stagehold.run.checkpoints.savepoint_copies import Moved
    from stagehold.run.equipment.workplace import Workplace

savepoint = typer.Typer(help="Savepoints: what a run has reached, kept under a name.", no_args_is_help=True)
COLUMNS = ("name", "pipeline", "interval", "made", "by", "of", "why")
Name = Annotated[str, typer.Argument(help="Name of the savepoint.")]
RunName = Annotated[str | None, typer.Argument(help="Id of the run. Default: the newest of all.")]
NewName = Annotated[str, typer.Option("--name", help="What it is called; letters, digits, `.`, `_` and `-`.")]
OtherName = Annotated[str | None, typer.Option("--name", help="Another name than the one it had.")]
Reason = Annotated[str, typer.Option("--reason", help="Why it is made.")]
By = Annotated[str | None, typer.Option("--by", help="Who makes it. Default: you.")]
Stop = Annotated[
    bool, typer.Option("--stop", help="End the run with it, behind the wave it is at; `stagehold resume` goes on.")
]
Publish = Annotated[bool, typer.Option("--publish", help="Do it.")]
Target = Annotated[str, typer.Argument(help="A folder, or an s3:// prefix.")]


@savepoint.command()
def create(
    name: NewName, run: RunName = None, reason: Reason = "", by: By = None, stop: Stop = False, as_json: AsJson = False
) -> None:
    """Make a savepoint of a run, whether it has ended or goes on."""
    from stagehold.model.checkpoint_records import SavepointRequest
    from stagehold.run.checkpoints.savepoint_creation import create_savepoint
    from stagehold.run.here.region import open_workplace
    from stagehold.spec.loading.loader import find_pipeline

    settings = load_settings()
    with open_workplace(settings, print_progress) as place:
        found = _run(run, place)
        asked = SavepointRequest(name, found.run_id, stop, by or getpass.getuser(), reason, datetime.now(UTC))
        made = create_savepoint(asked, find_pipeline(found.pipeline, settings), place)
    if as_json:
        print_document({"savepoint": asdict(made), "manifest": _manifest(made, settings)})
        return
    stopped = f"; the run is suspended, and `stagehold resume {made.run_id}` goes on" if stop else ""
    typer.echo(f"savepoint {made.name} is checkpoint {made.number} of run {made.run_id}{stopped}")


@savepoint.command("list")
def list_savepoints(as_json: AsJson = False) -> None:
    """Show the savepoints of the lake, the newest first."""
    from stagehold.lake.checkpoints.savepoints import Savepoints

    settings = load_settings()
    found = Savepoints(settings.lake_uri).all()
    if as_json:
        print_document(
            {"savepoints": [{**asdict(savepoint), "manifest": _manifest(savepoint, settings)} for savepoint in found]}
        )
    elif found:
        print_table("savepoints", COLUMNS, [_row(savepoint) for savepoint in found])
    else:
        typer.echo("There are none. `stagehold savepoint create --name NAME` makes one of the newest run.")


@savepoint.command()
def show(name: Name, as_json: AsJson = False) -> None:
    """Show what is in a savepoint, and whether its data is there."""
    from stagehold.cli.checkpoints.checkpoint_commands import stage_rows, stage_table
    from stagehold.lake.available import missing_files
    from stagehold.lake.checkpoints.savepoints import Savepoints

    settings = load_settings()
    savepoints = Savepoints(settings.lake_uri)
    found = savepoints.get(name)
    checkpoint = savepoints.stored(found).read_checkpoint(found.number)
    missing = {
        stage.shape.name: sorted(missing_files([record for record in stage.partitions if record.state.readable]))
        for stage in checkpoint.stages
    }
    if as_json:
        facts = {"savepoint": asdict(found), "manifest": _manifest(found, settings)}
        print_document({**facts, "stages": stage_rows(checkpoint), "missing": missing})
        return
    print_table(f"savepoint {name}", COLUMNS, [_row(found)])
    stage_table(checkpoint)
    for stage, partitions in missing.items():
        if partitions:
            typer.secho(f"data of {stage} is gone for partitions {', '.join(map(str, partitions))}", fg="red")
    typer.echo(f"manifest: {_manifest(found, settings)}")


@savepoint.command()
def dispose(name: Name, as_json: AsJson = False) -> None:
    """Throw a savepoint away. Data that only it needed goes with the next `stagehold gc`."""
    from stagehold.lake.checkpoints.savepoints import Savepoints
    from stagehold.run.checkpoints.discarding import dispose_of
    from stagehold.run.here.region import open_workplace

    settings = load_settings()
    with open_workplace(settings, print_progress) as place:
        found = Savepoints(settings.lake_uri).get(name)
        dispose_of(found, place)
    if as_json:
        print_document({"disposed": asdict(found)})
    else:
        typer.echo(f"savepoint {name} is gone")


@savepoint.command()
def restore(name: Name, publish: Publish = False, reason: Reason = "", by: By = None, as_json: AsJson = False) -> None:
    """Put what an interval has published back to how a savepoint has it, and compute nothing.

    Each table gets one commit on top of what it has, whatever code and sources are now; stages that keep state get that
    of then. Without --publish it only says what would be put back.
    """
    from stagehold.cli.common.output import explanation
    from stagehold.lake.checkpoints.savepoints import Savepoints
    from stagehold.run.here.mending_runs import roll_back, rollback_plan, rollback_request
    from stagehold.spec.loading.loader import find_pipeline

    settings = load_settings()
    found = Savepoints(settings.lake_uri).get(name)
    request = rollback_request(found, find_pipeline(found.pipeline, settings), settings)
    if not publish:
        plan = rollback_plan(found, request, settings)
        taken = sum(decision.restored for decision in plan.decisions)
        if as_json:
            print_document({"savepoint": asdict(found), "published": False, "restored": taken})
            return
        explanation(f"{found.pipeline} for {found.interval}", plan).print()
        typer.echo(f"{taken} partitions would be put back; nothing was changed. Add --publish to do it.")
        return
    who = by or getpass.getuser()
    outcome = roll_back(found, request, who, reason, settings, print_progress)
    if as_json:
        facts = {"savepoint": asdict(found), "published": True, "run_id": request.run_id}
        print_document({**facts, "restored": outcome.reused})
    else:
        typer.echo(
            f"{found.interval} is back to savepoint {name}: {outcome.reused} partitions, by run {request.run_id}"
        )


@savepoint.command()
def export(name: Name, target: Target, as_json: AsJson = False) -> None:
    """Copy a savepoint, manifest and data, to where another lake can import it. May be repeated after a crash."""
    from stagehold.run.checkpoints.savepoint_copies import export_savepoint

    moved = export_savepoint(name, target, load_settings(), print_progress)
    _tell(f"savepoint {name} is in {target}", moved, as_json=as_json)


@savepoint.command("import")
def import_(source: Target, name: OtherName = None, as_json: AsJson = False) -> None:
    """Copy an exported savepoint into this lake."""
    from stagehold.run.checkpoints.savepoint_copies import import_savepoint

    moved = import_savepoint(source, name, load_settings(), print_progress)
    _tell(f"savepoint {moved[0].name} is in this lake", moved, as_json=as_json)


def _tell(text: str, moved: Moved, *, as_json: bool) -> None:
    from rich.filesize import decimal

    savepoint, files, size = moved
    if as_json:
        print_document({"savepoint": asdict(savepoint), "files": files, "bytes": size})
    else:
        typer.echo(f"{text}: {files} files, {decimal(size)}")


def _run(run_id: str | None, place: Workplace) -> Run:
    from stagehold.cli.checkpoints.checkpoint_commands import run_asked

    return run_asked(run_id, place.ledger)


def _manifest(savepoint: Savepoint, settings: Settings) -> str:
    from stagehold.lake.checkpoints.savepoints import Savepoints

    return Savepoints(settings.lake_uri).stored(savepoint).address(savepoint.number)


def _row(savepoint: Savepoint) -> tuple[str, ...]:
    of = f"checkpoint {savepoint.number} of {savepoint.run_id}{' (imported)' if savepoint.root else ''}"
    return (
        savepoint.name,
        savepoint.pipeline,
        savepoint.interval,
        moment(savepoint.created_at),
        savepoint.created_by,
        of,
        savepoint.reason,
    )
