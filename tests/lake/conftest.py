"""A lake of its own for each test, on the Spark server that all tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import boto3
import pytest
from tests.lake.stagehand import Stagehand

from stagehold.lake.location import TableLocation


@pytest.fixture
def hand(spark, tmp_path: Path) -> Stagehand:
    """Works on a table that its stage owns."""
    return Stagehand(spark, TableLocation("joined", str(tmp_path / "joined"), "stagehold/p/joined/2026-11-20", None))


@pytest.fixture
def shared(spark, tmp_path: Path) -> Stagehand:
    """Works on the share of one interval of a published table."""
    return Stagehand(spark, TableLocation("top", str(tmp_path / "marts" / "top"), "stagehold/p/top/2026-11-20", "2026-11-20"))


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
