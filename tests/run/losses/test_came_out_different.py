"""A partition that is computed again under its key and comes out different, on a real Spark server."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.run.small_project import NUMBERS, SmallProject

from stagehold.errors import CameOutDifferent

pytestmark = pytest.mark.spark

JOBS = """
from pyspark.sql import functions as F
from stagehold import stage

@stage
def drawn(ctx, source):
    return source.withColumn("drawn", F.rand())
"""


@pytest.mark.parametrize("policy", [None, "off", "warn"])
def test_it_is_an_error_and_nothing_is_published_unless_determinism_is_warn(tmp_path, spark_remote, policy):
    project = SmallProject.make(tmp_path, spark_remote, JOBS)
    facts = {} if policy is None else {"determinism": policy}
    pipeline = project.pipeline("drawn", {"drawn": {"source": NUMBERS}}, **facts)
    before = project.run(pipeline, "first")["drawn"]
    for file in before[1].files:
        Path(before[1].table, file.path).unlink()
    if policy == "warn":
        after = project.run(pipeline, "second")["drawn"]
        assert [old == new for old, new in zip(before, after, strict=True)] == [True, False, True, True]
        assert "came out different" in (after[1].reason or "")
        return
    versions = sorted(Path(before[1].table).glob("_delta_log/*.json"))
    with pytest.raises(CameOutDifferent, match=r"drawn\[1\] was healed and came out different"):
        project.run(pipeline, "second")
    published = [path for path in sorted(Path(before[1].table).glob("_delta_log/*.json")) if path not in versions]
    assert not any('"add"' in path.read_text() for path in published)
