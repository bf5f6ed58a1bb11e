"""Which run the data of a page comes from: computed by this one, restored, or reused of earlier ones. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from stagehold.airflow.run_page.cells import PartitionCell
from stagehold.model.standing import CellState

MOST_RUNS = 5  # that are named


@dataclass(frozen=True)
class Reused:
    """So many partitions are as another run computed them."""

    run_id: str
    partitions: int


@dataclass(frozen=True)
class Origins:
    """How many of the partitions that are done this run ``computed``, how many are ``restored`` from what it began
    with, and of which other runs the rest is, ``others`` of more runs than are named. All that this run did not compute
    took ``saved_seconds`` when it was computed.
    """

    computed: int
    restored: int
    reused: tuple[Reused, ...]
    others: int
    saved_seconds: float


def origins(cells: Iterable[PartitionCell], run_id: str) -> Origins:
    """:param run_id: of the run whose page it is, as the ledger has it."""
    done = [cell for cell in cells if cell.run_id and (cell.state.readable or cell.state is CellState.RELEASED)]
    spared = [cell for cell in done if cell.restored or cell.run_id != run_id]
    runs = Counter(cell.run_id for cell in spared if cell.run_id and not cell.restored).most_common()
    return Origins(
        computed=len(done) - len(spared),
        restored=sum(cell.restored for cell in spared),
        reused=tuple(Reused(*each) for each in runs[:MOST_RUNS]),
        others=sum(count for _, count in runs[MOST_RUNS:]),
        saved_seconds=sum(cell.seconds or 0.0 for cell in spared),
    )
