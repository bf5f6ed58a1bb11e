"""Files of a finished run are changed behind everybody's back: `stagehold verify` finds it, and it is healed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from tests.run.workbench import INTERVAL, Workbench, ended

from stagehold.ledger.ledger import Ledger
from stagehold.model.standing import PartitionState
from stagehold.settings import Settings

pytestmark = pytest.mark.spark


def file_of(bench: Workbench, stage: str, partition: int) -> Path:
    (record,) = (record for record in bench.records(stage) if record.partition == partition)
    return Path(record.table, record.files[0].path)


def flip_a_byte(path: Path) -> None:
    """The last one of a data page that changes the stage's own rows, or makes them unreadable; the size stays."""
    before, good = rows(path), path.read_bytes()
    group = pq.read_metadata(path).row_group(0)
    chunks = [group.column(place) for place in range(group.num_columns)]
    own = [chunk for chunk in chunks if not chunk.path_in_schema.startswith("_")]
    pages = [range(one.data_page_offset, one.data_page_offset + one.total_compressed_size) for one in own]
    for offset in (offset for page in pages for offset in reversed(page)):
        bad = bytearray(good)
        bad[offset] ^= 0xFF
        path.write_bytes(bad)
        if rows(path) != before:
            return
    raise AssertionError(f"no byte of {path} counts")


def rows(path: Path) -> object:
    try:
        table = pq.read_table(path, partitioning=None)
        return table.select([name for name in table.column_names if not name.startswith("_")]).to_pylist()
    except (OSError, pa.ArrowException) as error:
        return str(error)


def verify(bench: Workbench, code: int, *words: str, settings: Settings | None = None) -> dict[str, Any]:
    done = ended(bench.command("verify", "toy", "--json", *words, settings=settings))
    assert done.code == code, done.err
    return json.loads(done.out)


def found(document: dict[str, Any]) -> dict[tuple[str, int], tuple[str, bool, bool]]:
    """State, marked and healed of each partition that is told of."""
    return {
        (partition["stage"], partition["partition"]): (partition["state"], partition["marked"], partition["healed"])
        for partition in document["partitions"]
    }


def damage(bench: Workbench) -> None:
    flip_a_byte(file_of(bench, "summary", 0))
    flip_a_byte(file_of(bench, "by_colour", 1))
    file_of(bench, "by_wave", 2).unlink()
    with file_of(bench, "numbers", 0).open("r+b") as file:
        file.truncate(40)


def states(bench: Workbench, stage: str) -> list[PartitionState]:
    return [record.state for record in bench.records(stage)]


def test_a_flipped_bit_is_found_and_marked_and_the_next_run_heals_it(finished):
    damage(finished)
    told = verify(finished, 1)
    assert found(told) == {
        ("summary", 0): ("damaged", True, False),
        ("by_colour", 1): ("damaged", True, False),
        ("by_wave", 2): ("missing", False, False),
        ("numbers", 0): ("missing", False, False),
    }
    assert [stage["stage"] for stage in told["stages"]] == ["summary", "numbers", "by_wave", "by_colour"]
    assert [stage["checked"] for stage in told["stages"]] == [1, 4, 4, 4]
    assert told["next"] == f"stagehold verify toy --interval {INTERVAL} --heal"
    assert states(finished, "summary") == [PartitionState.DAMAGED]
    assert states(finished, "by_colour").count(PartitionState.DAMAGED) == 1
    assert set(states(finished, "by_wave") + states(finished, "numbers")) == {PartitionState.CONSUMABLE}
    again = {
        (partition["stage"], partition["partition"]): partition["differs"]
        for partition in verify(finished, 1)["partitions"]
    }
    assert again["summary", 0].startswith("marked at ")
    assert again["numbers", 0].endswith("on record")
    assert finished.run().counts[1] > 0
    assert finished.published() == finished.expected()
    assert verify(finished, 0)["partitions"] == []


def test_what_is_found_is_healed_at_once_also_what_nothing_reads(finished):
    flip_a_byte(file_of(finished, "summary", 0))
    file_of(finished, "numbers", 2).unlink()
    told = verify(finished, 0, "--heal")
    assert found(told) == {("summary", 0): ("damaged", True, True), ("numbers", 2): ("missing", False, True)}
    assert (told["next"], told["not_healed"]) == (None, [])
    assert file_of(finished, "numbers", 2).exists()
    assert finished.epochs("by_wave") + finished.epochs("by_colour") == [1] * 8
    assert finished.published() == finished.expected()


def test_what_somebody_deleted_or_works_on_is_no_damage(finished):
    uri = finished.records("summary")[0].table
    DeltaTable(uri).delete("colour = 3")
    flip_a_byte(file_of(finished, "by_colour", 1))
    with Ledger.open(finished.settings.ledger_url) as ledger:
        lease = ledger.leases.take(f"toy/{INTERVAL}/by_colour", None, "somebody", 60, lambda _: False)
        told = verify(finished, 0, "--sample", "2", "--heal")
        ledger.leases.release(lease)
    skipped = {partition["stage"]: partition["differs"] for partition in told["partitions"]}
    assert {partition["state"] for partition in told["partitions"]} == {"skipped"}
    assert skipped["by_colour"] == "somebody works on by_colour"
    assert skipped["summary"].startswith("removed by commit ")
    assert [(stage["stage"], stage["checked"], stage["skipped"]) for stage in told["stages"]] == [
        ("summary", 0, 1),
        ("numbers", 2, 0),
        ("by_wave", 2, 0),
        ("by_colour", 0, 2),
    ]
    assert {*states(finished, "summary"), *states(finished, "by_colour")} == {PartitionState.CONSUMABLE}


def test_without_content_to_read_no_spark_is_needed(finished):
    for stage in ("numbers", "by_wave", "by_colour", "summary"):
        for record in finished.records(stage):
            for file in record.files:
                Path(record.table, file.path).unlink()
    settings = replace(finished.without_spark(), lease_wait_seconds=1)
    told = verify(finished, 1, settings=settings)
    assert {state for state, _, _ in found(told).values()} == {"missing"}
