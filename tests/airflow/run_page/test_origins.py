"""Which run a partition comes from, from cells made by hand."""

from __future__ import annotations

import pytest

from stagehold.airflow.run_page.cells import PartitionCell
from stagehold.airflow.run_page.origins import Origins, Reused, origins
from stagehold.model.standing import CellState
from stagehold.plan.resume.decisions import Action

OWN, NIGHT, DAY = "pipe/own", "pipe/night", "pipe/day"


def cell(run_id: str | None, seconds: float | None = 2.0, *, restored: bool = False, state=CellState.CONSUMABLE):
    return PartitionCell(0, state, Action.REUSE, "", seconds=seconds, run_id=run_id, restored=restored)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        pytest.param([], Origins(0, 0, (), 0, 0.0), id="nothing yet"),
        pytest.param([cell(OWN), cell(OWN)], Origins(2, 0, (), 0, 0.0), id="all of it"),
        pytest.param(
            [cell(None), cell(OWN, state=CellState.STALE)], Origins(0, 0, (), 0, 0.0), id="nothing that counts"
        ),
        pytest.param(
            [cell(OWN), cell(NIGHT), cell(DAY), cell(NIGHT, None)],
            Origins(1, 0, (Reused(NIGHT, 2), Reused(DAY, 1)), 0, 4.0),
            id="of other runs, the largest part first",
        ),
        pytest.param(
            [cell(NIGHT, restored=True), cell(OWN, restored=True)],
            Origins(0, 2, (), 0, 4.0),
            id="restored, put in its place or not",
        ),
        pytest.param(
            [cell(DAY, state=CellState.RELEASED), cell(NIGHT, state=CellState.WAIVED)],
            Origins(0, 0, (Reused(DAY, 1), Reused(NIGHT, 1)), 0, 4.0),
            id="released and waived ones count",
        ),
        pytest.param(
            [cell(f"pipe/{number}") for number in range(7)],
            Origins(0, 0, tuple(Reused(f"pipe/{number}", 1) for number in range(5)), 2, 14.0),
            id="of many runs the rest is counted",
        ),
    ],
)
def test_partitions_are_counted_by_the_run_that_computed_them(cells, expected):
    assert origins(cells, OWN) == expected
