"""Fixtures for tests of stages: `spark`, a session as runs have it, and `stages`, which calls stages of the project's
pipelines with rows of the test's own. A `spark` fixture of the project's own counts in place of this one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagehold.testing.stage_tests import StageTests


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for all tests: to start its server takes some seconds."""
    from stagehold.local.testing import local_spark  # here, as most projects that have the plugin installed do not ask

    session = local_spark()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def stages(spark: Any) -> StageTests:
    """The stages of all pipelines of the project."""
    from stagehold.settings import load_settings
    from stagehold.testing.stage_tests import StageTests

    return StageTests(spark, load_settings())
