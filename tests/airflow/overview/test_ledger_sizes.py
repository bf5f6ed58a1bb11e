"""What of a ledger's sums somebody may know."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from stagehold.airflow.overview.ledger_sizes import sizes_seen
from stagehold.airflow.overview.overview_responses import LedgerSize, PipelineSize

SALES, COSTS = PipelineSize(name="sales", partitions=3, bytes=300), PipelineSize(name="costs", partitions=4, bytes=400)
SUMS = (
    LedgerSize(back_end="sqlite", schema_version="0013", bytes=5000),
    frozenset({"sales", "costs", "gone"}),
    (COSTS, SALES),
)


@dataclass(frozen=True)
class Seen:
    """As much of a visible pipeline as counts here."""

    name: str
    runs: bool = True


ALL = (Seen("sales"), Seen("costs"), Seen("gone"))


@pytest.mark.parametrize(
    ("visible", "size", "lines"),
    [
        (ALL, 5000, (COSTS, SALES)),
        (ALL[:2], None, (COSTS, SALES)),  # the ledger has runs of a pipeline that the reader cannot see
        (ALL[:1], None, (SALES,)),
        ((Seen("sales", runs=False), Seen("costs")), None, (COSTS,)),
        ((), None, ()),
    ],
)
def test_nobody_learns_how_much_there_is_of_what_they_may_not_see(visible, size, lines):
    seen = sizes_seen([SUMS], visible)
    assert (seen.counted, seen.ledgers, seen.pipelines) == (
        True,
        (SUMS[0].model_copy(update={"bytes": size}),),
        lines,
    )


def test_sums_that_are_being_made_are_told_apart_from_none():
    assert not sizes_seen([SUMS, None], ALL).counted
    assert sizes_seen([], ALL).counted
