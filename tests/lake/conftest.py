"""A lake of its own for each test, on the Spark server that all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lake.stagehand import Stagehand

from stagehold.lake.store.location import TableLocation


@pytest.fixture
def hand(spark, tmp_path: Path) -> Stagehand:
    """Works on a table that its stage owns."""
    return Stagehand(spark, TableLocation("joined", str(tmp_path / "joined"), "stagehold/p/joined/2026-11-20", None))


@pytest.fixture
def shared(spark, tmp_path: Path) -> Stagehand:
    """Works on the share of one interval of a published table."""
    return Stagehand(
        spark, TableLocation("top", str(tmp_path / "marts" / "top"), "stagehold/p/top/2026-11-20", "2026-11-20")
    )
