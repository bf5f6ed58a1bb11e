"""`stagehold leases`: who leads now, and how they get on."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stagehold.cli.common.output import moment, print_document, print_table
from stagehold.cli.common.request import AsJson
from stagehold.settings import load_settings

if TYPE_CHECKING:
    from stagehold.ledger.ledger import Ledger
    from stagehold.model.pulse import Pulse
    from stagehold.run.lease.held_leases import HeldLease

SECONDS_BETWEEN_LOOKS = 2.0
COLUMNS = ("for", "of run", "epoch", "holder", "since", "heartbeat", "ends", "at work on")

Pipeline = Annotated[str | None, typer.Argument(metavar="[PIPELINE]", help="Only its leases. Default: all.")]
Watch = Annotated[bool, typer.Option("--watch", help="Show them again every two seconds, until Ctrl-C.")]


def leases(pipeline: Pipeline = None, watch: Watch = False, as_json: AsJson = False) -> None:
    """Show every lease that somebody has: of regions, and of who takes checkpoints.

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
    from stagehold.run.lease.held_leases import held_leases

    found = held_leases(ledger, pipeline)
    if as_json:
        print_document({"pipeline": pipeline, "leases": [lease_document(held) for held in found]})
    elif found:
        print_table("Leases (times in UTC)", COLUMNS, map(lease_cells, found))
    else:
        of = f" of {pipeline}" if pipeline else ""
        typer.echo(f"Nobody has a lease{of} now. `stagehold status` lists the newest runs.")


def lease_document(held: HeldLease) -> dict[str, Any]:
    """A lease, for programs."""
    from dataclasses import asdict

    holder, lease, attempt = held.holder, held.lease, held.attempt
    return {
        "name": lease.name,
        "kind": held.kind,
        "pipeline": attempt.pipeline if attempt else None,
        "interval": attempt.interval if attempt else None,
        "region": attempt.subject if attempt and held.attempt_id else None,
        "run_id": held.run_id,
        "attempt_id": held.attempt_id,
        "holder": asdict(holder) if holder else {"owner": lease.holder},
        "epoch": lease.epoch,
        "taken_at": lease.taken_at,
        "renewed_at": lease.renewed_at,
        "expires_at": lease.expires_at,
        "seconds_left": round(held.seconds_left, 1),
        "pulse": pulse_document(lease.pulse) if lease.pulse else None,
    }


def pulse_document(pulse: Pulse) -> dict[str, Any]:
    from dataclasses import asdict

    return {**asdict(pulse), "slowest": pulse.slowest, "share_of_slowest": round(pulse.share_of_slowest, 3)}


def lease_cells(held: HeldLease) -> Sequence[str]:
    """A lease, for people."""
    lease, holder = held.lease, held.holder
    at_work = pulse_text(lease.pulse) if lease.pulse else ""
    process = f"process {holder.pid} on {holder.host}" if holder else lease.holder
    ends = f"ended {-held.seconds_left:.0f} s ago" if held.ended else f"in {held.seconds_left:.0f} s"
    beats = moment(lease.taken_at), moment(lease.renewed_at)
    return held.subject, held.run_id or "", str(lease.epoch), process, *beats, ends, at_work


def pulse_text(pulse: Pulse) -> str:
    """How an attempt gets on, a line for each fact."""
    from rich.filesize import decimal

    doing = f", {pulse.doing}" if pulse.doing else ""
    rates = f"{pulse.rows_a_second:,.0f} rows/s, {decimal(int(pulse.bytes_a_second))}/s"
    known = (("client", pulse.memory.client), ("server", pulse.memory.server))
    memory = [f"{name} {decimal(size)}" for name, size in known if size]
    parts = [f"{pulse.stage} wave {pulse.wave}{doing}: {pulse.done} of {pulse.partitions} partitions", rates]
    if pulse.slowest:
        parts.append(f"most time for {pulse.slowest} ({pulse.share_of_slowest:.0%})")
    return "\n".join([*parts, *([", ".join(memory)] if memory else [])])
