"""What happened, and who may work on what?"""

from __future__ import annotations

from stagehold.ledger.ledger import Ledger

__all__ = ["Ledger"]
