"""How much of what is made up the suite tries: `make fuzz` tries TIMES as much, and other cases each time."""

from __future__ import annotations

import os

from hypothesis import settings

TIMES = int(os.environ.get("STAGEHOLD_FUZZ_TIMES", "1"))


def machine(examples: int, steps: int) -> settings:
    """Of a state machine: the same cases in each run of the suite."""
    return settings(
        max_examples=examples * TIMES,
        stateful_step_count=steps,
        deadline=None,
        derandomize=TIMES == 1,
        database=None,
    )


def some(upto: int, apart: int) -> range:
    """Steps at which somebody dies: each ``apart`` of them, and all for `make fuzz`."""
    return range(1, upto, apart if TIMES == 1 else 1)
