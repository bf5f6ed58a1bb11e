"""Who is at work for a run."""

from __future__ import annotations

from collections.abc import Iterable

from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Attempt
from stagehold.model.states import ATTEMPT
from stagehold.run.planning.task import lease_of


def at_work(attempts: Iterable[Attempt], ledger: Ledger) -> tuple[Attempt, ...]:
    """Those that have begun and not ended, and whose lease lives. One that waits has nothing to end, and one whose
    lease has ended is dead.
    """
    begun = (one for one in attempts if one.began and not ATTEMPT.is_terminal(one.state))
    return tuple(one for one in begun if ledger.leases.alive(lease_of(one)))
