"""How leases are shown, and what their heartbeats said: in tables and in documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from stagehold.cli.common.output import moment

if TYPE_CHECKING:
    from stagehold.model.pulse import Pulse
    from stagehold.model.records import Run
    from stagehold.run.lease.held_leases import HeldLease
    from stagehold.run.lease.lost_attempts import Loss

COLUMNS = ("for", "of run", "epoch", "holder", "since", "heartbeat", "ends", "at work on")


def state_of_run(run: Run, lost: Loss | None) -> str:
    """The state of a run; the ledger has no end of a run that was killed."""
    from stagehold.model.states import LOST, RUN

    return f"{LOST}, {lost}, {moment(lost.at)}" if lost and not RUN.is_terminal(run.state) else run.state


def lease_document(held: HeldLease) -> dict[str, Any]:
    """A lease, for programs."""
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
