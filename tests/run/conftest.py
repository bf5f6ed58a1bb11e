"""The toy pipeline after a run without faults, run once for all tests of a process."""

from __future__ import annotations

import pytest
from tests.postgres import postgres_server
from tests.run.workbench import FinishedWorkbench, Workbench

__all__ = ["postgres_server"]


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory, spark_remote: str) -> FinishedWorkbench:
    return FinishedWorkbench.make(tmp_path_factory.mktemp("finished"), spark_remote)


@pytest.fixture
def finished(finished_run: FinishedWorkbench) -> Workbench:
    """As that run left it, whatever the test before has done to it."""
    return finished_run.put_back()
