"""Which backfills were begun, and how far the runs of each have come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from stagehold.ledger.ledger import Ledger
from stagehold.model.backfill import Backfill
from stagehold.model.records import Run, RunState

NOT_BEGUN = "not begun"


@dataclass(frozen=True)
class KnownBackfill:
    """``runs`` are those of its intervals that have begun, by interval, as they are recorded."""

    backfill: Backfill
    runs: Mapping[str, Run]

    @cached_property
    def states(self) -> Mapping[str, str]:
        """Of the run of each interval."""
        intervals = (one.interval for one in self.backfill.intervals)
        return {key: self.runs[key].state if key in self.runs else NOT_BEGUN for key in intervals}

    @property
    def counts(self) -> Mapping[str, int]:
        return Counter(self.states.values())

    @property
    def resume(self) -> str | None:
        """The command that goes on with it; None if it has finished, or if Airflow has its runs."""
        done = all(state == RunState.FINISHED for state in self.states.values())
        if done or any(run.launcher == "airflow" for run in self.runs.values()):
            return None
        return f"stagehold backfill {self.backfill.pipeline} --resume {self.backfill.backfill_id}"


def known_backfills(pipeline: str, ledger: Ledger, limit: int) -> tuple[KnownBackfill, ...]:
    """The newest first."""
    runs = ledger.restores.runs_of_backfills(pipeline)
    found = ledger.backfills.newest(pipeline, limit)
    return tuple(KnownBackfill(one, {run.interval: run for run in runs.get(one.backfill_id, ())}) for one in found)
