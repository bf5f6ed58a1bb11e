"""Who has which lease now, of the pipelines that somebody may see."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime

from stagehold.airflow.run_page.resuming import RESUME_OF, Presser
from stagehold.ledger.across.pipelines import Place
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Lease, Run
from stagehold.run.clearing.garbage_collector import MAINTENANCE
from stagehold.run.lease.lease_holder import described
from stagehold.run.planning.task import region_lease

MOST_LEASES = 200


@dataclass(frozen=True)
class LeaseLine:
    """The right to work on something; ``holder`` is in words."""

    name: str
    holder: str
    epoch: int
    expires_at: datetime


def leases_seen(pipelines: Collection[str], ledger: Ledger) -> tuple[Lease, ...]:
    """Those of these pipelines that have not ended, and that of who cleans up; a lease's name begins with what it is
    of.
    """
    beginnings = [beginning for name in pipelines for beginning in (f"{name}/", f"{RESUME_OF}{name}/")]
    return ledger.leases.alive_among([MAINTENANCE], beginnings, MOST_LEASES)


def lease_line(lease: Lease) -> LeaseLine:
    pressed = lease.name.startswith(RESUME_OF)
    holder = Presser.described(lease.holder) if pressed else described(lease.holder)
    return LeaseLine(lease.name, holder, lease.epoch, lease.expires_at)


def places_at_work(runs: Collection[Run], leases: Collection[Lease]) -> Iterator[Place]:
    """Those of these runs' intervals that somebody works on."""
    for place in {(run.pipeline, run.interval) for run in runs}:
        if any(lease.name.startswith(region_lease(*place, "")) for lease in leases):
            yield place
