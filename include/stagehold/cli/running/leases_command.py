"""`stagehold leases`: who leads now, and how they get on."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from stagehold.cli.common.lease_texts import COLUMNS, lease_cells, lease_document
from stagehold.cli.common.output import print_document, print_table
from stagehold.cli.common.request import AsJson
from stagehold.settings import load_settings

if TYPE_CHECKING:
    from stagehold.ledger.ledger import Ledger

SECONDS_BETWEEN_LOOKS = 2.0

Pipeline = Annotated[str | None, typer.Argument(metavar="[PIPELINE]", help="Only its leases. Default: all.")]
Watch = Annotated[bool, typer.Option("--watch", help="Show them again every two seconds, until Ctrl-C.")]


def leases(pipeline: Pipeline = None, watch: Watch = False, as_json: AsJson = False) -> None:
    """Show every lease that somebody has: of regions, and of who takes checkpoints; and hosts that get no tasks now.

    With the process that has it, since when, its last heartbeat and what that said of the work, and when it ends.
    """
    from stagehold.chronicle.chronicle import open_ledger
    from stagehold.spec.loading.loader import find_pipeline

    settings = load_settings()
    if pipeline is not None:
        find_pipeline(pipeline, settings)
    with open_ledger(settings) as ledger:
        while True:
            if watch and not as_json and sys.stdout.isatty():
                typer.echo("\x1b[2J\x1b[H", nl=False)  # clears the screen
            _show(pipeline, ledger, as_json=as_json)
            if not watch:
                return
            time.sleep(SECONDS_BETWEEN_LOOKS)


def _show(pipeline: str | None, ledger: Ledger, *, as_json: bool) -> None:
    from stagehold.run.lease.held_leases import held_leases, hosts_left_out

    found, left_out = held_leases(ledger, pipeline), hosts_left_out(ledger)
    if as_json:
        leases = [lease_document(held) for held in found]
        return print_document({"pipeline": pipeline, "leases": leases, "left_out": list(map(asdict, left_out))})
    for host in left_out:
        typer.echo(str(host))
    if found:
        print_table("Leases (times in UTC)", COLUMNS, map(lease_cells, found))
    else:
        of = f" of {pipeline}" if pipeline else ""
        typer.echo(f"Nobody has a lease{of} now. `stagehold status` lists the newest runs.")
    return None
