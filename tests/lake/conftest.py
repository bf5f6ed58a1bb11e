"""A lake of its own for each test, on the Spark server that all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.lake.stagehand import Stagehand

from stagehold.lake.location import TableLocation
from stagehold.lake.object_store import s3a_options


@pytest.fixture
def hand(spark, tmp_path: Path) -> Stagehand:
    """Works on a table that its stage owns."""
    return Stagehand(spark, TableLocation("joined", str(tmp_path / "joined"), "stagehold/p/joined/2026-11-20", None))


@pytest.fixture
def shared(spark, tmp_path: Path) -> Stagehand:
    """Works on the share of one interval of a published table."""
    return Stagehand(spark, TableLocation("top", str(tmp_path / "marts" / "top"), "stagehold/p/top/2026-11-20", "2026-11-20"))


@pytest.fixture
def lake_in_s3(spark, s3_lake: str) -> str:
    """A lake that the shared Spark session finds, too; the server's own environment has no keys, so the session is given some."""
    options = {
        **s3a_options(os.environ),
        "fs.s3a.access.key": "tester",
        "fs.s3a.secret.key": "tester",
        "fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    }
    for name, text in options.items():
        spark.conf.set(name, text)
    return s3_lake
