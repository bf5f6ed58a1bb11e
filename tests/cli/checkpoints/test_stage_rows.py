"""What `checkpoints show` and `savepoint show` count of a stage."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

from tests.ledger.samples import record

from stagehold.cli.checkpoints.checkpoint_commands import stage_rows
from stagehold.model.standing import PartitionState


def test_held_partitions_are_counted_with_their_rows_and_bytes():
    records = [replace(record(number), state=state) for number, state in enumerate(PartitionState)]
    stage = SimpleNamespace(
        shape=SimpleNamespace(name="joined", id="joined"), parallelism=6, partitions=records, position=None
    )
    (row,) = stage_rows(SimpleNamespace(stages=(stage,)))
    counted = ("partitions", "consumable", "blocked", "held", "rows", "bytes")
    assert [row[name] for name in counted] == [6, 1, 1, 1, 3 * records[0].rows, 3 * records[0].bytes]
