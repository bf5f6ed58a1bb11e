"""`stagehold sandbox`: which sandboxes there are, and throwing one away."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from stagehold.cli.common.output import moment, print_document, print_table
from stagehold.cli.common.request import AsJson
from stagehold.settings import load_settings

if TYPE_CHECKING:
    from stagehold.run.clearing.sandboxes import Sandbox

COLUMNS = ("sandbox", "size", "written (UTC)", "ledger", "lake")

sandbox = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Sandboxes: lakes and ledgers for trying something out, which read production and never write to it.",
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The sandbox, as `stagehold sandbox list` names it.")]


@sandbox.command("list")
def list_them(as_json: AsJson = False) -> None:
    """List sandboxes with their sizes. `stagehold run PIPELINE --sandbox NAME` makes one."""
    from stagehold.run.clearing.sandboxes import sandboxes

    found = sandboxes(load_settings())
    if as_json:
        print_document({"sandboxes": [asdict(one) for one in found]})
    elif found:
        print_table("Sandboxes", COLUMNS, map(_cells, found))
    else:
        typer.echo("There are no sandboxes. `stagehold run PIPELINE --sandbox NAME` makes one.")


@sandbox.command()
def remove(name: Name, as_json: AsJson = False) -> None:
    """Delete a sandbox's lake and ledger, unless somebody works in it. Nothing else is deleted."""
    from rich.filesize import decimal

    from stagehold.run.clearing.sandboxes import remove_sandbox

    gone = remove_sandbox(name, load_settings())
    if as_json:
        print_document({"removed": asdict(gone)})
    else:
        typer.echo(f"Removed sandbox {gone.name}: {decimal(gone.bytes)}, of {gone.lake} and {gone.ledger}.")


def _cells(one: Sandbox) -> tuple[str, ...]:
    from rich.filesize import decimal

    return one.name, decimal(one.bytes), moment(one.changed_at), one.ledger, one.lake
