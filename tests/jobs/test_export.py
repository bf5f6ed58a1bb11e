"""The sample's sink of two phases writes each row into a real PostgreSQL exactly once, wherever a worker is killed."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
from sqlalchemy import Engine, create_engine, text
from tests.postgres import BACK_ENDS, own_schema, postgres_server
from tests.run.workbench import Workbench, ended, killed

from stagehold.ledger.ledger import Ledger
from stagehold.model.checkpoint_records import CheckpointState
from stagehold.run.faults import AnyPoint, CheckpointPoint, FaultAction, Point, inject

__all__ = ["postgres_server"]

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif("postgresql" not in BACK_ENDS, reason="this machine has no PostgreSQL"),
]

JOBS = Path(__file__).parents[2] / "jobs"
DAY, RUN = "2026-11-20", "r"
SOLD = """\
pipeline: sold
schedule: "@daily"
wave: 1ms
checkpoint: {interval: 300ms}
stages:
  daily_orders:
    job: jobs.customers:daily_orders
    source: {kind: parquet, path: "${lake}/raw/daily_orders/*.parquet", splits: 2}
    output: {type: blocking}
  customer_totals:
    job: jobs.customers:customer_totals
    inputs: {daily_orders: {exchange: keyed, key: o_custkey}}
    key: custkey
    partitions: 4
    state:
      totals: {kind: keyed, key: custkey, columns: {custkey: bigint, spent: "decimal(18,2)", orders: bigint}}
    output: {type: blocking}
  exported:
    job: jobs.export:exported
    inputs: {customer_totals: forward}
    reads: {env: [EXPORT_URL]}
    effects: allowed
    on_complete: jobs.export:publish
"""


@dataclass(frozen=True)
class Shop:
    """Orders of a day, the pipeline that exports what customers spent, and the database that it goes to."""

    bench: Workbench
    database: Engine

    @staticmethod
    def make(folder: Path, spark_remote: str, url: str) -> Shop:
        project = folder / "project"
        shutil.copytree(JOBS, project / "jobs", ignore=shutil.ignore_patterns("__pycache__"))
        (project / "pipelines").mkdir()
        (project / "pipelines" / "sold.yaml").write_text(SOLD)
        return Shop(Workbench.of(folder, spark_remote), create_engine(url))

    @property
    def orders(self) -> Path:
        return Path(self.bench.settings.lake_uri) / "raw" / "daily_orders"

    def sell(self, price: int) -> None:
        """Two files of orders of 20 customers, of whom some have one and others two."""
        self.orders.mkdir(parents=True, exist_ok=True)
        for file, count in enumerate((20, 9)):
            order = "range + 100 AS o_orderkey, range AS o_custkey"
            amount = f"CAST(range * {price} + {file} AS DECIMAL(18, 2)) AS o_totalprice"
            duckdb.sql(f"SELECT {order}, {amount} FROM range({count})").write_parquet(
                str(self.orders / f"{file}.parquet")
            )

    @property
    def expected(self) -> list[tuple[int, Decimal, int]]:
        columns = "o_custkey, sum(o_totalprice)::DECIMAL(18, 2), count(*)"
        found = duckdb.sql(f"SELECT {columns} FROM '{self.orders}/*.parquet' GROUP BY o_custkey ORDER BY o_custkey")
        return found.fetchall()

    @property
    def read(self) -> list[tuple[int, Decimal, int]]:
        """What people read; nothing before there is a table."""
        with self.database.connect() as connection:
            if not connection.scalar(text("SELECT to_regclass('customer_totals')")):
                return []
            columns = "custkey, spent, orders"
            query = text(f"SELECT {columns} FROM customer_totals WHERE day = :day ORDER BY custkey")
            return [tuple(row) for row in connection.execute(query, {"day": DAY})]

    @property
    def staged(self) -> int | None:
        with self.database.connect() as connection:
            return connection.scalar(text("SELECT count(*) FROM staged_totals"))

    def run(self, *words: str):
        return ended(self.bench.command("run", "sold", "--interval", DAY, "--run-id", RUN, "--json", *words))

    def resume(self):
        return ended(self.bench.command("resume", RUN, "--json"))

    @property
    def untold(self) -> list[int]:
        with Ledger.open(self.bench.settings.ledger_url) as ledger:
            return [record.number for record in ledger.checkpoints.of_run(RUN) if record.untold]


@pytest.fixture
def shop(tmp_path, spark_remote, postgres_server, monkeypatch) -> Iterator[Shop]:
    with own_schema(postgres_server) as url:
        monkeypatch.setenv("EXPORT_URL", url)
        shop = Shop.make(tmp_path, spark_remote, url)
        shop.sell(3)
        yield shop
        shop.database.dispose()


@pytest.mark.parametrize(
    ("point", "stage", "which"),
    [
        (Point.BEFORE_WRITE, "exported", [2]),
        (Point.AFTER_WRITE, "exported", [2]),
        (Point.BEFORE_PUBLISH, "exported", [2]),
        (Point.AFTER_PUBLISH, "exported", [2]),
        (Point.AFTER_RECORD, "exported", [2]),
        (Point.BEFORE_FINISH, "exported", [0]),
        (CheckpointPoint.BEGUN, "sold", range(2, 99)),
        (CheckpointPoint.WRITTEN, "sold", range(2, 99)),
        (CheckpointPoint.RECORDED, "sold", range(2, 99)),
        (CheckpointPoint.TOLD, "sold", range(2, 99)),
        (CheckpointPoint.RELEASED, "sold", range(2, 99)),
    ],
)
def test_each_row_is_there_once_wherever_a_worker_is_killed(shop: Shop, point: AnyPoint, stage: str, which) -> None:
    for number in which:
        inject(shop.bench.settings.home_path, point, stage, number, FaultAction.KILL)
    assert killed(shop.run())
    shutil.rmtree(shop.bench.settings.home_path / "faults")
    assert shop.read in ([], shop.expected), "all of the day or nothing"
    resumed = shop.resume()
    assert resumed.code == 0, resumed.err
    assert shop.read == shop.expected
    assert (shop.staged, shop.untold) == (0, [])


def test_whoever_is_killed_in_the_middle_of_the_swap_leaves_nothing_of_it(shop: Shop) -> None:
    assert shop.run().code == 0
    before = shop.read
    shop.sell(5)
    with shop.database.begin() as connection:
        connection.execute(text("LOCK TABLE exports IN EXCLUSIVE MODE"))  # whoever swaps waits here
        command = shop.bench.command("run", "sold", "--interval", DAY, "--run-id", RUN)
        waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
        deadline = time.monotonic() + 120
        while not connection.scalar(waiting):
            assert time.monotonic() < deadline, command.err()
            time.sleep(0.05)
        command.kill()
        assert killed(ended(command))
    assert shop.read == before
    resumed = shop.resume()
    assert resumed.code == 0, resumed.err
    assert shop.read == shop.expected != before
    assert shop.staged == 0


def test_a_database_that_takes_nothing_at_the_end_fails_the_command_and_a_resume_computes_nothing(shop: Shop) -> None:
    assert shop.run().code == 0
    with shop.database.begin() as connection:
        connection.execute(text("ALTER TABLE exports RENAME COLUMN checkpoint TO away"))
    failed = shop.run()
    assert failed.code == 1
    assert "on_complete of exported (jobs.export:publish) raised" in failed.err
    assert f"stagehold resume {RUN}" in failed.err
    assert len(shop.untold) == 1
    listed = ended(shop.bench.command("checkpoints", "list", "--run", RUN)).out
    assert "not told to all" in " ".join(listed.split())
    with shop.database.begin() as connection:
        connection.execute(text("ALTER TABLE exports RENAME COLUMN away TO checkpoint"))
    assert shop.resume().counts == (10, 0)
    assert shop.untold == []


def test_a_day_that_comes_to_less_than_before_leaves_nothing_of_before(shop: Shop) -> None:
    assert shop.run().code == 0
    assert len(shop.read) == 20
    (shop.orders / "0.parquet").unlink()
    shutil.copy(shop.orders / "1.parquet", shop.orders / "0.parquet")
    done = shop.run()
    assert done.code == 0, done.err
    assert shop.read == shop.expected
    assert (len(shop.read), shop.staged) == (9, 0)
    with Ledger.open(shop.bench.settings.ledger_url) as ledger:
        ends = {record.state for record in ledger.checkpoints.of_run(RUN)}
    assert ends <= {CheckpointState.COMPLETED, CheckpointState.FAILED}
