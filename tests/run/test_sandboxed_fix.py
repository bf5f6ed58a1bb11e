"""A run fails half-way; its code is mended, tried in a sandbox that cannot write to production, and then taken there.

Not being able to is a matter of permission: production's lake and ledger are made read-only, and the run in the
sandbox, with the Spark server that it starts, may not override that.
"""

from __future__ import annotations

import ctypes
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from deltalake import DeltaTable
from tests.conftest import QUICK_JAVA, free_port

from stagehold.settings import Settings

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]  # a dozen commands, one after the other

DAY, NEXT, NEWEST = "2026-11-20", "2026-11-21", "2026-11-22"
FAULTY = "F.when(F.col('currency').isNull(), F.raise_error(F.lit('no currency'))).otherwise(F.col('cents') * 2)"
MENDED = "F.when(F.col('currency').isNull(), F.col('cents')).otherwise(F.col('cents') * 2)"
JOBS = """
from pyspark.sql import functions as F

from stagehold import stage


@stage
def orders(ctx, source):
    return source


@stage
def priced(ctx, orders):
    return orders.select("id", {price}.alias("price"))


@stage
def totals(ctx, priced):
    return priced.agg(F.count("*").alias("orders"), F.sum("price").alias("price"))
"""
PIPELINE = """
pipeline: sales
wave: 100ms
stages:
  orders:
    job: sales_jobs:orders
    source:
      kind: csv
      path: "${lake}/raw/orders"
      splits: 3
      incremental: true
      schema: "id int, cents long, currency string"
    output: {type: blocking}
  priced:
    job: sales_jobs:priced
    inputs: {orders: forward}
    output: {type: blocking}
  totals:
    job: sales_jobs:totals
    inputs: {priced: gather}
    output: {type: blocking_persistent, table: marts.totals}
"""
Listing = dict[str, tuple[int, int, bytes]]


WRITING = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1  # linux/prctl.h, linux/capability.h


def obey_permissions() -> None:
    """In a child, before it becomes a program: that and all that it starts may write only where permissions say so.
    Others than root may not do more anyway.
    """
    if os.geteuid() == 0 and ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0):
        raise OSError("the right to override permissions cannot be given up here")


@contextmanager
def read_only(*places: Path) -> Iterator[None]:
    """Nothing in these files and folders can be changed, added or deleted inside the block."""
    found = [each for place in places for each in (place, *place.rglob("*"))]
    modes = {path: path.stat().st_mode for path in found}
    for path, mode in modes.items():
        path.chmod(mode & ~WRITING)
    try:
        yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


@dataclass(frozen=True)
class Shop:
    """A project with the pipeline `sales`, and commands in it."""

    settings: Settings

    @staticmethod
    def make(folder: Path, spark_remote: str) -> Shop:
        (folder / "project").mkdir()
        (folder / "project" / "sales.yaml").write_text(PIPELINE)
        project = str(folder / "project")
        shop = Shop(
            Settings(
                home=str(folder / "home"),
                project=project,
                pipelines=project,
                suites=project,
                spark_remote=spark_remote,
                spark_cores=1,
                spark_memory="1g",
                spark_java_options=QUICK_JAVA,
                spark_port=free_port(),
            )
        )
        shop.price(FAULTY)
        return shop

    @property
    def lake(self) -> Path:
        return Path(self.settings.lake_uri)

    @property
    def ledger(self) -> Path:
        return self.settings.home_path / "ledger.db"

    def price(self, expression: str) -> None:
        Path(self.settings.project, "sales_jobs.py").write_text(JOBS.format(price=expression))

    def arrive(self, number: int, *currencies: str) -> None:
        """A file of orders, one for each currency."""
        file = self.lake / "raw" / "orders" / f"{number}.csv"
        file.parent.mkdir(parents=True, exist_ok=True)
        rows = (f"{number}{place},{100 * number + place},{name}\n" for place, name in enumerate(currencies))
        file.write_text("".join(rows))

    def command(self, *words: str, restricted: bool = False) -> subprocess.CompletedProcess[str]:
        settings = replace(self.settings, spark_remote="") if restricted else self.settings
        return subprocess.run(
            [sys.executable, "-m", "stagehold", *words],
            env=os.environ | dict(settings.environment),
            preexec_fn=obey_permissions if restricted else None,
            capture_output=True,
            text=True,
            check=False,
        )

    def run(self, interval: str, *words: str, restricted: bool = False) -> dict[str, Any]:
        ended = self.command("run", "sales", "--interval", interval, "--json", *words, restricted=restricted)
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)

    def listing(self) -> Listing:
        """Every file of production's lake and its ledger, with its content."""
        found = [path for path in (*self.lake.rglob("*"), self.ledger) if path.is_file()]
        return {str(path): (path.stat().st_mtime_ns, path.stat().st_size, path.read_bytes()) for path in found}

    def published(self, lake: str, interval: str) -> tuple[int, int]:
        table = DeltaTable(f"{lake}/marts/totals").to_pyarrow_table(filters=[("_interval", "=", interval)])
        (row,) = table.to_pylist()
        return row["orders"], row["price"]

    def expected(self, *numbers: int) -> tuple[int, int]:
        """The same by DuckDB, of these files."""
        files = [str(self.lake / "raw" / "orders" / f"{number}.csv") for number in numbers]
        price = "sum(CASE WHEN currency IS NULL THEN cents ELSE cents * 2 END)::BIGINT"
        columns = {"id": "INT", "cents": "BIGINT", "currency": "VARCHAR"}
        read = f"read_csv({files}, header = false, columns = {columns})"
        (found,) = duckdb.sql(f"SELECT count(*), {price} FROM {read}").fetchall()
        return found


@pytest.fixture
def shop(tmp_path, spark_remote) -> Iterator[Shop]:
    made = Shop.make(tmp_path, spark_remote)
    yield made
    made.command("down", restricted=True)


def test_code_is_mended_and_tried_where_nothing_of_production_can_be_written(shop):
    shop.arrive(1, "EUR", "USD")
    shop.run("2026-11-19")
    for number, currencies in {2: ["EUR"], 3: ["USD", "EUR"], 4: ["EUR", ""]}.items():
        shop.arrive(number, *currencies)
    failed = shop.command("run", "sales", "--interval", DAY, "--run-id", "broken")
    assert "no currency" in failed.stderr
    saved = shop.command("savepoint", "create", "broken", "--name", "before-the-fix")
    assert saved.returncode == 0, saved.stderr
    shop.arrive(5, "EUR")
    shop.run(NEXT)
    shop.arrive(6, "USD")
    shop.price(MENDED)
    own, before = shop.settings.in_sandbox("fix"), shop.listing()

    with read_only(shop.lake, shop.ledger):
        touched = subprocess.run(["touch", shop.lake / "x"], preexec_fn=obey_permissions, check=False)
        assert touched.returncode != 0, "else this test shows nothing"
        warm = shop.command("up", "--spark-only", restricted=True)
        assert warm.returncode == 0, warm.stderr
        words = ("--sandbox", "fix", "--restore", "before-the-fix")
        tried = shop.run(DAY, *words, restricted=True)
        assert (tried["reused"], tried["computed"]) == (3, 4), "orders are those of production, all else is new"
        assert shop.published(own.lake_uri, DAY) == shop.expected(2, 3, 4)
        shop.run(NEWEST, "--sandbox", "fix", restricted=True)
        assert shop.published(own.lake_uri, NEWEST) == shop.expected(6), "what other intervals took is not read again"
        for command in (("verify",), ("gc", "--older-than", "0s"), ("reconcile",), ("savepoint", "list")):
            ended = shop.command(*command, "--sandbox", "fix", restricted=True)
            assert ended.returncode == 0, ended.stdout + ended.stderr
        shop.command("down", restricted=True)
    assert shop.listing() == before

    delivered = shop.run(DAY, "--restore", "before-the-fix")
    assert (delivered["reused"], delivered["computed"]) == (3, 4)
    assert shop.published(shop.settings.lake_uri, DAY) == shop.expected(2, 3, 4)
    shop.run(NEWEST)
    assert shop.published(shop.settings.lake_uri, NEWEST) == shop.expected(6), "the sandbox took nothing from it"
    assert shop.command("sandbox", "remove", "fix").returncode == 0
    assert shop.run(DAY)["computed"] == 0
