"""What the trigger and backfill forms ask of a restore. DAG files import this, so it imports next to nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stagehold.errors import InvalidParameter

RESTORE_FROM_STAGE = "restore_from_stage"
RESTORE = "restore"
ALLOW_NON_RESTORED = "allow_non_restored_state"
INTERVAL = "interval"
BACKFILL = "stagehold_backfill"  # in the configuration of a run alone: no form asks for it


@dataclass(frozen=True)
class AskedRestore:
    """What a run is to begin with: its interval's records before ``stage``, or the checkpoint or savepoint that
    ``reference`` names; or the ``backfill`` that says what it does. Two of the three are None.
    """

    stage: str | None = None
    reference: str | None = None
    allow_non_restored: bool = False
    backfill: str | None = None

    @staticmethod
    def of(params: Mapping[str, Any]) -> AskedRestore | None:
        """None for a run that is not restored.

        :raises InvalidParameter: both are given.
        """
        if backfill := params.get(BACKFILL):
            return AskedRestore(backfill=str(backfill))
        stage, reference = params.get(RESTORE_FROM_STAGE) or None, (params.get(RESTORE) or "").strip() or None
        if stage and reference:
            raise InvalidParameter(RESTORE, reference, f"one of {RESTORE} and {RESTORE_FROM_STAGE}")
        if not stage and not reference:
            return None
        return AskedRestore(stage, reference, bool(params.get(ALLOW_NON_RESTORED)))
