"""When periodic checkpoints of a run are due: at the same times whoever takes them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from random import Random

from stagehold.model.records import Run
from stagehold.model.states import Transition, newest_life


class Clock:
    """Milliseconds since 1970, as the machine had them when this was made; from then on they never go back."""

    def __init__(self) -> None:
        self._ahead = time.time_ns() - time.monotonic_ns()

    @property
    def now(self) -> int:
        return (time.monotonic_ns() + self._ahead) // 1_000_000


def life_began(run: Run, history: Sequence[Transition]) -> datetime:
    """When the run was last started anew. A ledger that was rebuilt knows only when it was first."""
    life = newest_life(history)
    return life[0].recorded_at if life and life[0].begins_life_of_run else run.started_at


def until_next(run_id: str, began: datetime, now: int, *, least: int, period: int) -> int:
    """Milliseconds to the next of the run's times: the first is a random delay after the run ``began``, from ``least``
    to ``period``, and the others follow ``period`` by ``period``.

    Whoever draws for the run draws the same. Hosts agree on its times as well as their clocks do.
    """
    delay = Random(run_id).randint(least, period)  # noqa: S311 - spreads load, hides nothing
    first = round(began.timestamp() * 1000) + delay
    return first - now if now < first else (first - now) % period
