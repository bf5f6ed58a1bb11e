"""A lake in a folder, and one in a bucket."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["tmp_path", "s3_lake"])
def lake(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))
