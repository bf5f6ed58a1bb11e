"""What an attempt does whose share a faster one has taken over."""

from __future__ import annotations

import time
from collections.abc import Callable

from stagehold.errors import LeaseLost
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Lease
from stagehold.plan.decisions import ResumePlan

POLL_SECONDS = 1.0


def wait_for_faster(lease: Lease, ledger: Ledger, plan: Callable[[], ResumePlan], computes: Callable[[ResumePlan], bool]) -> ResumePlan:
    """Wait until the faster attempt has left nothing to compute; returns the plan that says so.

    :raises LeaseLost: it ended before that, so another try has to do the rest.
    """
    while True:
        others_at_work = ledger.leases.alive(lease.name)
        found = plan()
        if not computes(found):
            return found
        if not others_at_work:
            raise LeaseLost(lease.name, lease.epoch, "a faster attempt took the work over and ended before it was done")
        time.sleep(POLL_SECONDS)
