"""What a run is told to do beyond what a run does by itself: in which stages it works, and what it computes again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class WorkOrder:
    """``stages``, by name, are those that the run works in; the others are left as they are, unless something that runs
    needs what is not there. ``anew`` are those of them that are computed again once, although nothing changed. With
    ``only_recorded`` nothing is computed that is not on record, unless something that runs needs it; with
    ``as_recorded`` nothing is computed that is. ``backfill`` is the id of the backfill whose order it is, None if
    somebody asked for this run alone.
    """

    stages: tuple[str, ...]
    anew: tuple[str, ...] = ()
    only_recorded: bool = False
    as_recorded: bool = False
    backfill: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the run is to do nothing."""
        return not self.stages
