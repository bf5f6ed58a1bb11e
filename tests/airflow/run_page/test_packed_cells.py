"""Cells that were packed are the cells, whatever range of them is asked for, and take little memory."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from stagehold.airflow.run_page.packed_cells import OF_A_PART, PackedCells
from stagehold.airflow.run_page.run_responses import PartitionCell
from stagehold.model.kept import bytes_of
from stagehold.model.standing import CellState
from stagehold.plan.resume.decisions import Action


def cell(partition: int) -> PartitionCell:
    return PartitionCell(
        partition=partition,
        state=CellState.CONSUMABLE,
        action=Action.REUSE,
        reason="nothing changed",
        rows=partition,
        bytes=partition * 100,
        seconds=0.5,
        run_id="sales/run",
        recorded_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


CELLS = tuple(map(cell, range(2 * OF_A_PART + 500)))


@pytest.mark.parametrize(
    ("first", "last"),
    [
        (0, 0),
        (0, 1_999),
        (OF_A_PART - 1, OF_A_PART),
        (OF_A_PART, OF_A_PART),
        (1_500, 2_499),
        (2_400, 4_000),
        (2_500, 2_600),
        (9_000, 9_001),
    ],
)
def test_unpacked_cells_are_the_same(first, last):
    assert PackedCells(CELLS).between(first, last) == CELLS[first : last + 1]


def test_a_stage_without_cells_can_be_packed():
    assert PackedCells(()).between(0, 10) == ()


def test_packed_cells_take_a_twentieth_of_the_memory():
    assert bytes_of(PackedCells(CELLS)) < bytes_of(CELLS) / 20
