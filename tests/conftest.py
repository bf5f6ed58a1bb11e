"""Fixtures that cost seconds are made once: one Spark server and one session for all Spark tests."""

from __future__ import annotations

import atexit
import gc
import os
import socket
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import hypothesis
import pytest
from sqlalchemy import Engine, event
from tests.ledger.blank import lay_blank_ledger
from tests.left_out import leaves_out, unnamed

from stagehold.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# How long one example takes says more about the machine's other work than about our code.
hypothesis.settings.register_profile("no deadline", deadline=None)
hypothesis.settings.load_profile("no deadline")

# Tests run thousands of queries once, on a cold Java: its second compiler costs more than it saves, and so does Spark's
# own, which makes a Java class of each query and takes a third of all processor time for it. The `spark` fixture has
# it, as have the commands of README, the demo among them, and `make test-generated`.
GENERATED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
QUICK_JAVA = os.environ.get(
    "STAGEHOLD_TEST_JAVA",
    "-XX:TieredStopAtLevel=1 -Dspark.sql.codegen.wholeStage=false -Dspark.sql.codegen.factoryMode=NO_CODEGEN",
)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if collection_path.name.startswith("test_") and collection_path.suffix == ".py":
        return leaves_out(config.option.markexpr, collection_path.read_text()) or None
    return None


def pytest_collection() -> None:
    """Nothing of what is imported goes away."""
    gc.disable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    marks: defaultdict[Path, set[str]] = defaultdict(set)
    for item in items:
        marks[item.path].update(mark.name for mark in item.iter_markers())
    wrong = [f"{path}: {names}" for path in marks if (names := unnamed(marks[path], path.read_text()))]
    if wrong:
        raise pytest.UsageError("A mark has to stand in its file as pytest.mark.NAME (tests/left_out.py)", *wrong)


def pytest_collection_finish() -> None:
    """Thousands of tests stay to the end, so nobody need look through them for garbage: neither here nor in a fork."""
    gc.enable()
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.callbacks.clear()  # that of hypothesis would tell of the interrupt by which pytest-xdist ends a process
    atexit.register(gc.unfreeze)  # Python's last collection is enough; pytest's own ten, right now, need not see it all


def pytest_configure() -> None:
    """Tests kill processes, and no machine: what was handed to the system is safe from them."""
    os.fsync = lambda descriptor: None


@event.listens_for(Engine, "connect")
def leave_the_disk_out(connection: object, _record: object) -> None:
    """As above, of what SQLite writes."""
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous = OFF")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def spark_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Settings of a home whose Spark server runs;
    tests that need a home of their own take `dataclasses.replace(..., lake=...)`.
    """
    from stagehold.spark.server.server import spark_server

    settings = Settings(
        home=str(tmp_path_factory.mktemp("home")), spark_port=free_port(), spark_java_options=QUICK_JAVA
    )
    with spark_server(settings):
        yield settings


@pytest.fixture(scope="session")
def spark_remote(spark_settings: Settings) -> str:
    """Address of the session's server, for homes that have none of their own."""
    from stagehold.spark.server.server import running_server

    state = running_server(spark_settings)
    assert state is not None
    return f"sc://localhost:{state.port}/;token={state.token};user_id=stagehold"


@pytest.fixture(scope="session")
def spark(spark_settings: Settings) -> Iterator[SparkSession]:
    """For tests of what Spark makes of data and conditions, so it computes as users have it do."""
    from stagehold.spark.session.sessions import open_session, release_session

    session_id = str(uuid4())
    session = open_session(spark_settings, session_id)
    for name, value in GENERATED.items():
        session.conf.set(name, value)
    yield session
    release_session(spark_settings, session_id)


@pytest.fixture(scope="session")
def unconnected() -> Iterator[SparkSession]:
    """A session of Spark Connect that no server knows: frames can be built with it, nothing can be asked."""
    from pyspark.sql.connect.session import SparkSession

    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
        made = SparkSession(connection="sc://127.0.0.1:9/;token=none")
        yield made  # type: ignore[misc]
        atexit.unregister(made.client._on_exit)  # nobody is there to be told
        made.client.close()


@pytest.fixture
def own_settings(tmp_path: Path) -> Settings:
    """A home and ports that no other test uses, for tests that start or kill services."""
    return Settings(
        home=str(tmp_path / "home"),
        spark_port=free_port(),
        airflow_port=free_port(),
        spark_memory="1g",
        spark_java_options=QUICK_JAVA,
    )


@pytest.fixture
def ledger_file(tmp_path: Path) -> Path:
    return lay_blank_ledger(tmp_path / "ledger.db")


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    from tests.object_store import object_store

    with object_store() as address:
        yield address


@pytest.fixture
def s3_lake(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A lake in a new bucket, found as any AWS client finds it."""
    from tests.object_store import new_lake, way_to

    from stagehold.lake.store import files

    for name, text in way_to(s3_endpoint).items():
        monkeypatch.setenv(name, text)
    yield new_lake()
    files._s3.cache_clear()


@pytest.fixture
def lake_in_s3(spark: SparkSession, s3_lake: str) -> str:
    """A lake that the shared Spark session finds, too;
    the server's own environment has no keys, so the session is given some.
    """
    from stagehold.lake.store.location import s3a_options

    options = {
        **s3a_options(os.environ),
        "fs.s3a.access.key": os.environ["AWS_ACCESS_KEY_ID"],
        "fs.s3a.secret.key": os.environ["AWS_SECRET_ACCESS_KEY"],
        "fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    }
    for name, text in options.items():
        spark.conf.set(name, text)
    return s3_lake
