"""Fixtures that cost seconds are made once: one Spark server and one session for all Spark tests."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import hypothesis
import pytest

from stagehold.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# How long one example takes says more about the machine's other work than about our code.
hypothesis.settings.register_profile("no deadline", deadline=None)
hypothesis.settings.load_profile("no deadline")

# Tests run many short queries on a cold Java, where the second compiler costs more than it saves.
QUICK_JAVA = "-XX:TieredStopAtLevel=1"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def spark_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Settings of a home whose Spark server runs; tests that need a home of their own take `dataclasses.replace(..., lake=...)`."""
    from stagehold.run.server import spark_server

    settings = Settings(home=str(tmp_path_factory.mktemp("home")), spark_port=free_port(), spark_java_options=QUICK_JAVA)
    with spark_server(settings):
        yield settings


@pytest.fixture(scope="session")
def spark_remote(spark_settings: Settings) -> str:
    """Address of the session's server, for homes that have none of their own."""
    from stagehold.run.server import running_server

    state = running_server(spark_settings)
    assert state is not None
    return f"sc://localhost:{state.port}/;token={state.token};user_id=stagehold"


@pytest.fixture(scope="session")
def spark(spark_settings: Settings) -> Iterator[SparkSession]:
    from stagehold.run.sessions import open_session, release_session

    session_id = str(uuid4())
    yield open_session(spark_settings, session_id)
    release_session(spark_settings, session_id)


@pytest.fixture
def own_settings(tmp_path: Path) -> Settings:
    """A home and ports that no other test uses, for tests that start or kill services."""
    return Settings(
        home=str(tmp_path / "home"), spark_port=free_port(), airflow_port=free_port(), spark_memory="1g", spark_java_options=QUICK_JAVA
    )


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.fixture
def s3_lake(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A lake in a new bucket, found as any AWS client finds it."""
    import boto3

    from stagehold.lake import files

    for name, text in {"ENDPOINT_URL": s3_endpoint, "REGION": "us-east-1", "DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", text)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tester")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "tester")
    files._s3.cache_clear()
    bucket = f"lake-{uuid4()}"
    boto3.client("s3").create_bucket(Bucket=bucket)
    yield f"s3://{bucket}/some/lake"
    files._s3.cache_clear()
