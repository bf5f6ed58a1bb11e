"""Savepoints as Airflow uses them when it creates a backfill, beside a scheduler that writes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, event, text

from stagehold.local.airflow_process import begin, begin_before_savepoints


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "airflow.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "PRAGMA journal_mode=WAL; CREATE TABLE dates (state TEXT); INSERT INTO dates VALUES ('old')"
        )
    return path


@pytest.fixture
def engine(database: Path) -> Iterator[Engine]:
    begin_before_savepoints()
    engine = create_engine(f"sqlite:///{database}", connect_args={"timeout": 0.1})
    yield engine
    engine.dispose()
    event.remove(Engine, "savepoint", begin)


def states(database: Path) -> list[str]:
    with closing(sqlite3.connect(database)) as connection:
        return [state for (state,) in connection.execute("SELECT state FROM dates")]


def test_what_a_savepoint_released_is_seen_by_others_only_after_the_commit(engine: Engine, database: Path) -> None:
    with engine.connect() as connection:
        with connection.begin_nested():
            connection.execute(text("UPDATE dates SET state = 'new'"))
        assert states(database) == ["old"]
        connection.commit()
    assert states(database) == ["new"]


def test_a_savepoint_that_reads_first_can_write_because_others_wait(engine: Engine, database: Path) -> None:
    with engine.connect() as connection, connection.begin_nested():
        assert connection.scalar(text("SELECT state FROM dates")) == "old"
        with closing(sqlite3.connect(database, timeout=0.1)) as scheduler, pytest.raises(sqlite3.OperationalError):
            scheduler.execute("UPDATE dates SET state = 'scheduler'")
        connection.execute(text("UPDATE dates SET state = 'new'"))


def test_a_second_savepoint_joins_the_transaction_of_the_first(engine: Engine, database: Path) -> None:
    with engine.connect() as connection:
        with connection.begin_nested():
            connection.execute(text("UPDATE dates SET state = 'first'"))
        with connection.begin_nested() as second:
            connection.execute(text("UPDATE dates SET state = 'second'"))
            second.rollback()
        connection.commit()
    assert states(database) == ["first"]
