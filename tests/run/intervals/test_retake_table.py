"""An interval takes of a Delta table what is there now, after a compaction and a vacuum took what it had taken."""

from __future__ import annotations

import json
import random
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.ledger.samples import record
from typer.testing import CliRunner

from stagehold.cli.main import app
from stagehold.errors import SourceLost
from stagehold.ledger import Ledger
from stagehold.model.records import Cell
from stagehold.model.standing import PartitionState
from stagehold.run.planning.planning import IntervalView, RunRequest
from stagehold.settings import load_settings
from stagehold.sources.attempt_sources import Listing
from stagehold.spec.loading.loader import find_pipeline

SPEC = """\
pipeline: sales
stages:
  orders:
    job: shop:orders
    source: {kind: delta, path: "${lake}/raw", splits: 1, incremental: true}
    output: {type: blocking_persistent, table: marts.orders}
"""
CODE = "from stagehold import stage\n@stage\ndef orders(ctx, source): return source\n"
DAY = "2024-01-0{}"


class Shop:
    def __init__(self, folder: Path, ledger: Ledger) -> None:
        self.uri, self.ledger, self.rows = str(folder / "home/lake/raw"), ledger, 0
        self.pipeline = find_pipeline("sales", load_settings())
        self.cell = Cell("sales", self.pipeline.stage("orders").id, "")

    def add(self) -> int:
        write_deltalake(self.uri, pa.table({"n": pa.array([self.rows], pa.int64())}), mode="append")
        self.rows += 1
        return self.rows - 1

    def compact(self) -> None:
        DeltaTable(self.uri).optimize.compact()
        self.vacuum()

    def vacuum(self) -> None:
        DeltaTable(self.uri).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)

    def take(self, day: int) -> list[int]:
        """What an attempt of the day reads."""
        request = RunRequest(self.pipeline, f"run {day}", DAY.format(day), {})
        sources, stage = IntervalView(request, self.ledger, load_settings()).sources, self.pipeline.stage("orders")
        sources.settle(stage, Listing.OF_RUN)
        (split,) = sources.of(stage).splits
        sources.of(stage).refuse_spoiled("orders", split.files)
        return sorted(chain.from_iterable(pq.ParquetFile(file.path).read()["n"].to_pylist() for file in split.read))

    def publish(self, day: int) -> None:
        self._record(day, PartitionState.CONSUMABLE)

    def delete(self, day: int) -> None:
        """As `stagehold intervals delete` leaves it."""
        self._record(day, PartitionState.RELEASED)

    def _record(self, day: int, state: PartitionState) -> None:
        lease = self.ledger.leases.acquire(f"{day} {state} {random.random()}", "me", 60)
        cell = Cell("sales", self.cell.stage, DAY.format(day))
        self.ledger.partitions.record([record(0, cell=cell, state=state, version=1)], lease)


@pytest.fixture
def shop(tmp_path, monkeypatch):
    for name, value in {"HOME": "home", "PIPELINES": "pipelines", "PROJECT": "project"}.items():
        monkeypatch.setenv(f"STAGEHOLD_{name}", str(tmp_path / value))
    for name, text in {"pipelines/sales.yaml": SPEC, "project/shop.py": CODE}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    with Ledger.open(load_settings().ledger_url) as ledger:
        yield Shop(tmp_path, ledger)


def retake(day: int, *options: str, code: int = 0):
    words = ["source", "retake", "orders", "--pipeline", "sales", "--interval", DAY.format(day), *options]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == code, result.output
    return result


def test_what_nobody_else_took_is_taken_along_and_no_later_interval_takes_it_again(shop):
    assert (shop.add(), shop.take(1)) == (0, [0])
    shop.add()
    shop.compact()
    with pytest.raises(SourceLost, match="--from-version 0"):
        shop.take(1)
    shown = json.loads(retake(1, "--from-version", "0", "--dry-run", "--json").stdout)
    assert (shown["after"]["version"], len(shown["after"]["found"]["files"]), shown["gave_up"]) == (4, 1, [])
    with pytest.raises(SourceLost, match="--from-version 0"):
        shop.take(1)
    assert f"{DAY.format(1)} takes the table at version 4, from 1 files" in retake(1, "--from-version", "0").stdout
    assert shop.take(1) == [0, 1]
    assert (shop.add(), shop.take(2)) == (2, [2])


def test_rows_in_one_file_with_published_ones_are_taken_once_those_are_deleted(shop):
    shop.add()
    shop.publish(len(shop.take(1)))
    shop.add()
    shop.take(2)
    shop.compact()
    refused = retake(2, "--from-version", "1", code=1).stderr
    assert f"also holds rows that {DAY.format(1)} has published" in refused
    assert "`stagehold intervals delete`" in refused
    shop.delete(1)
    said = retake(2, "--from-version", "1").stdout
    assert f"{DAY.format(1)} gives up what it had taken" in said
    assert (shop.take(2), shop.take(1)) == ([0, 1], [])


def test_what_was_published_is_deleted_first_and_what_is_left_out_is_said(shop):
    for _ in range(3):
        shop.add()
    shop.publish(len([shop.take(1)]))
    assert f"`stagehold intervals delete sales '{DAY.format(1)}'`" in retake(1, "--from-version", "0", code=1).stderr
    shop.delete(1)
    assert "versions 0 to 1 are left out, which no later interval takes" in retake(1, "--from-version", "2").stdout
    assert shop.take(1) == [2]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "say from which version on: `--from-version N`"),
        (("--from-version", "9"), "--from-version is 9; allowed: 0, or 1 to 0"),
    ],
)
def test_what_cannot_be_meant_is_refused(shop, options, said):
    shop.add()
    shop.take(1)
    assert said in retake(1, *options, code=1).stderr
    assert "has taken nothing of it" in retake(2, "--from-version", "0", code=1).stderr


@pytest.mark.parametrize("seed", range(12))
def test_whatever_happens_each_row_is_taken_once(shop, seed):
    """Days come and die, tables are compacted, what is lost is retaken or deleted: nothing is repeated or left out."""
    dice, published, alive = random.Random(seed), dict[int, list[int]](), list[int]()
    shop.add()
    for day in range(1, 7):
        for _ in range(dice.randrange(1, 3)):
            shop.add()
        if dice.random() < 0.5:
            shop.compact()
        alive.append(day)
        for one in [one for one in alive if dice.random() < 0.6]:
            rows = taken_or_retaken(shop, one, published)
            if rows is not None:
                shop.publish(one)
                published[one] = rows
                alive.remove(one)
    for one in sorted({*alive, *range(1, 8)} - published.keys()):
        while (rows := taken_or_retaken(shop, one, published)) is None:
            pass
        shop.publish(one)
        published[one] = rows
    assert sorted(chain.from_iterable(published.values())) == list(range(shop.rows))


def taken_or_retaken(shop: Shop, day: int, published: dict[int, list[int]]) -> list[int] | None:
    """What the day reads, perhaps after the way out that its text names; None if another day has to be mended first."""
    try:
        return shop.take(day)
    except SourceLost as lost:
        dead = (
            day
            if lost.waiting is None
            else next(n for n in range(1, 9) if f"interval {DAY.format(n)} took" in str(lost))
        )
    words = ["source", "retake", "orders", "--pipeline", "sales", "--interval", DAY.format(dead), "--from-version", "0"]
    refused = CliRunner().invoke(app, words)
    if refused.exit_code:
        for named in [one for one in published if DAY.format(one) in refused.stderr.partition("also holds")[2]]:
            shop.delete(named)
            del published[named]
    return None
