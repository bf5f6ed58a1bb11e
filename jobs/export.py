"""A sink outside the lake, in two phases: a stage that writes its rows into a staging table of a database, and a
function that swaps them into the table that people read, once a checkpoint is complete that has all of them.

Whoever is killed at whatever moment, each row is there once. The stage may be computed again: a batch is named by what
is in it, so the same rows are staged once. The swap may be called again: it brings the table to what the checkpoint
has, in one transaction. What was staged and is in no checkpoint is seen by nobody.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256

from pyspark.sql import DataFrame
from sqlalchemy import Connection, create_engine, text

from stagehold import StageCheckpoint, StageContext, stage

TABLES = (
    "CREATE TABLE IF NOT EXISTS staged_totals "
    "(batch text, custkey bigint, spent numeric(18, 2), orders bigint, PRIMARY KEY (batch, custkey))",
    "CREATE TABLE IF NOT EXISTS customer_totals "
    "(day text, batch text, custkey bigint, spent numeric(18, 2), orders bigint, PRIMARY KEY (day, custkey))",
    "CREATE TABLE IF NOT EXISTS exports (day text PRIMARY KEY, run text, checkpoint bigint)",
)
STAGE = text("INSERT INTO staged_totals VALUES (:batch, :custkey, :spent, :orders) ON CONFLICT DO NOTHING")
NEWER = text("SELECT 1 FROM exports WHERE day = :day AND run = :run AND checkpoint > :checkpoint")
SWAP = (
    "INSERT INTO exports VALUES (:day, :run, :checkpoint) "
    "ON CONFLICT (day) DO UPDATE SET run = :run, checkpoint = :checkpoint",
    "DELETE FROM customer_totals WHERE day = :day AND NOT batch = ANY(:batches)",
    "INSERT INTO customer_totals SELECT :day, staged.* FROM staged_totals AS staged WHERE batch = ANY(:batches) "
    "AND NOT EXISTS (SELECT 1 FROM customer_totals AS there WHERE day = :day AND there.batch = staged.batch)",
    "DELETE FROM staged_totals WHERE batch = ANY(:batches)",
)
ROWS = text("SELECT count(*) FROM customer_totals WHERE day = :day")


@stage
def exported(ctx: StageContext, customer_totals: DataFrame) -> DataFrame:
    """Stage a partition, and give a receipt: the name of its batch, and how many rows it has."""
    rows = sorted(customer_totals.select("custkey", "spent", "orders").collect())
    (partition,) = ctx.partitions
    batch = sha256(repr((ctx.interval, partition, rows)).encode()).hexdigest()
    with database() as connection:
        if rows:
            connection.execute(STAGE, [{"batch": batch, **row.asDict()} for row in rows])
    return customer_totals.sparkSession.createDataFrame([(batch, len(rows))], "batch string, rows bigint")


def publish(ctx: StageCheckpoint) -> None:
    """Make the day's rows those of the checkpoint. One that has only a part of them changes nothing."""
    if not ctx.is_whole:
        return
    receipts = ctx.rows().to_pylist()
    facts = {"day": ctx.interval, "run": ctx.run_id, "checkpoint": ctx.number}
    with database() as connection:
        connection.execute(text("LOCK TABLE exports IN EXCLUSIVE MODE"))
        if connection.scalar(NEWER, facts):
            return  # somebody else took the run over, and has told us of a newer one
        for statement in SWAP:
            connection.execute(text(statement), {**facts, "batches": [receipt["batch"] for receipt in receipts]})
        there, wanted = connection.scalar(ROWS, facts), sum(receipt["rows"] for receipt in receipts)
        if there != wanted:
            raise LookupError(f"{there} of {wanted} rows are staged: have {ctx.stage} computed once more (--again)")


@contextmanager
def database() -> Iterator[Connection]:
    """A transaction in the database that `EXPORT_URL` names, as SQLAlchemy writes it."""
    engine = create_engine(os.environ["EXPORT_URL"])
    try:
        with engine.begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(36)"))  # two may not make the tables at once
            for table in TABLES:
                connection.execute(text(table))
            yield connection
    finally:
        engine.dispose()
