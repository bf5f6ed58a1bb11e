"""The SQL store of runs, attempts, leases, partitions, gate results and events."""

from __future__ import annotations

from stagehold.ledger.ledger import Ledger

__all__ = ["Ledger"]
