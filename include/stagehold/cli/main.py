"""The `stagehold` command. Each command is a file of its own, which imports what is slow when it is called."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from stagehold.cli.accept import accept
from stagehold.cli.backfill.backfill import backfill
from stagehold.cli.checkpoints.history import checkpoints
from stagehold.cli.checkpoints.inspect import SpreadingCommand, inspect
from stagehold.cli.checkpoints.savepoint import savepoint
from stagehold.cli.demo import demo
from stagehold.cli.gates.refused import refused
from stagehold.cli.gates.verdicts import gates
from stagehold.cli.gates.waive import waive
from stagehold.cli.gc import gc
from stagehold.cli.intervals.intervals import intervals
from stagehold.cli.partitions import partitions
from stagehold.cli.project.init import init
from stagehold.cli.reconcile import reconcile
from stagehold.cli.running.plan import plan
from stagehold.cli.running.resume import resume
from stagehold.cli.running.run import run
from stagehold.cli.running.stop import cancel, suspend
from stagehold.cli.sandboxes.option import offer_sandboxes
from stagehold.cli.sandboxes.sandbox import sandbox
from stagehold.cli.services import down, up
from stagehold.cli.source import source
from stagehold.cli.status import status
from stagehold.cli.verify import verify
from stagehold.cli.what_if import what_if
from stagehold.errors import StageholdError
from stagehold.settings import load_settings


class Commands(TyperGroup):
    """Shows an error that was raised on purpose, or by a disk or folder, as its text, since that says what to do; only
    others get a traceback.
    """

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:
            told = _told(error)
            if told is None:
                raise
            typer.secho("\n".join([str(told), *getattr(told, "__notes__", ())]), fg="red", err=True)
            raise typer.Exit(1) from None


def _told(error: Exception) -> StageholdError | None:
    if isinstance(error, StageholdError):
        return error
    from stagehold.run.equipment.storage_failures import storage_failure

    return storage_failure(error, load_settings())


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # importing Rich takes longer than all of --help
    context_settings={"max_content_width": 140},
)


def _print_version(wanted: bool) -> None:
    from importlib.metadata import PackageNotFoundError, version

    if not wanted:
        return
    try:
        typer.echo(f"stagehold {version('stagehold')}")
    except PackageNotFoundError:
        typer.echo("stagehold, from a source tree that is not installed")
    raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
]


@app.callback()
def stagehold(version: Version = False) -> None:
    """Run batch pipelines of PySpark stages that go on from the last consumable partition."""


app.command()(init)
app.command()(up)
app.command()(down)
app.command()(run)
app.command()(plan)
app.command("what-if")(what_if)
app.command()(backfill)
app.command()(resume)
app.command()(suspend)
app.command()(cancel)
app.command()(accept)
app.add_typer(source, name="source")
app.command()(status)
app.command()(partitions)
app.add_typer(intervals, name="intervals")
app.command()(gates)
app.command()(refused)
app.command()(waive)
app.command()(verify)
app.add_typer(checkpoints, name="checkpoints")
app.add_typer(savepoint, name="savepoint")
app.command(cls=SpreadingCommand)(inspect)
app.command()(gc)
app.command()(reconcile)
app.command()(demo)
offer_sandboxes(app, but=("init", "up", "down", "demo"))
app.add_typer(sandbox, name="sandbox")
