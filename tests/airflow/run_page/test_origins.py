"""Which run a partition comes from, from cells made by hand."""

from __future__ import annotations

import pytest

from stagehold.airflow.run_page.run_grid import origins
from stagehold.airflow.run_page.run_responses import Origins, PartitionCell, Reused
from stagehold.model.standing import CellState
from stagehold.plan.resume.decisions import Action

OWN, NIGHT, DAY = "pipe/own", "pipe/night", "pipe/day"


def cell(run_id: str | None, seconds: float | None = 2.0, *, restored: bool = False, state=CellState.CONSUMABLE):
    return PartitionCell(
        partition=0, state=state, action=Action.REUSE, reason="", seconds=seconds, run_id=run_id, restored=restored
    )


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        pytest.param([], Origins(computed=0, restored=0, reused=(), others=0, saved_seconds=0.0), id="nothing yet"),
        pytest.param(
            [cell(OWN), cell(OWN)],
            Origins(computed=2, restored=0, reused=(), others=0, saved_seconds=0.0),
            id="all of it",
        ),
        pytest.param(
            [cell(None), cell(OWN, state=CellState.STALE)],
            Origins(computed=0, restored=0, reused=(), others=0, saved_seconds=0.0),
            id="nothing that counts",
        ),
        pytest.param(
            [cell(OWN), cell(NIGHT), cell(DAY), cell(NIGHT, None)],
            Origins(
                computed=1,
                restored=0,
                reused=(Reused(run_id=NIGHT, partitions=2), Reused(run_id=DAY, partitions=1)),
                others=0,
                saved_seconds=4.0,
            ),
            id="of other runs, the largest part first",
        ),
        pytest.param(
            [cell(NIGHT, restored=True), cell(OWN, restored=True)],
            Origins(computed=0, restored=2, reused=(), others=0, saved_seconds=4.0),
            id="restored, put in its place or not",
        ),
        pytest.param(
            [cell(DAY, state=CellState.RELEASED), cell(NIGHT, state=CellState.WAIVED)],
            Origins(
                computed=0,
                restored=0,
                reused=(Reused(run_id=DAY, partitions=1), Reused(run_id=NIGHT, partitions=1)),
                others=0,
                saved_seconds=4.0,
            ),
            id="released and waived ones count",
        ),
        pytest.param(
            [cell(f"pipe/{number}") for number in range(7)],
            Origins(
                computed=0,
                restored=0,
                reused=tuple(Reused(run_id=f"pipe/{number}", partitions=1) for number in range(5)),
                others=2,
                saved_seconds=14.0,
            ),
            id="of many runs the rest is counted",
        ),
    ],
)
def test_partitions_are_counted_by_the_run_that_computed_them(cells, expected):
    assert origins(cells, OWN) == expected
