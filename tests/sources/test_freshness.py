from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.sources.made_sources import source_stage

from stagehold.errors import SourceUnusable
from stagehold.sources.attempt_sources import Sources
from stagehold.sources.freshness import Freshness, age_of
from stagehold.sources.source_files import SourceRoots
from stagehold.spec.settings.source import FreshnessForm

NOW = datetime.now(UTC)
LIMITS = FreshnessForm(warn_after=timedelta(hours=26), error_after=timedelta(hours=50))
DAILY = "${lake}/raw/day=${interval.start:%Y-%m-%d}/*.parquet"


def arrive(lake: Path, day: str, hours: float) -> None:
    """A file that was written so many hours ago."""
    file = lake / "raw" / f"day={day}" / "a.parquet"
    file.parent.mkdir(parents=True)
    file.write_text("x")
    moment = (NOW - timedelta(hours=hours)).timestamp()
    os.utime(file, (moment, moment))


@pytest.mark.parametrize(
    ("hours", "freshness"),
    [(25.9, Freshness.FRESH), (26.1, Freshness.OLD), (49.9, Freshness.OLD), (50.1, Freshness.TOO_OLD)],
)
def test_the_newest_file_of_all_intervals_counts(tmp_path, hours, freshness):
    arrive(tmp_path, "2026-11-20", 500)
    arrive(tmp_path, "2026-11-21", hours)
    source = source_stage(path=DAILY, freshness=LIMITS).source
    assert source is not None
    assert age_of(source, SourceRoots(str(tmp_path), ""), NOW).freshness is freshness


def test_of_a_table_its_newest_version_counts_and_a_source_without_anything_is_empty(tmp_path):
    write_deltalake(str(tmp_path / "t"), pa.table({"n": [1]}))
    table = source_stage(kind="delta", path="${lake}/t", freshness=LIMITS).source
    files = source_stage(path=DAILY, freshness=LIMITS).source
    assert table is not None
    assert files is not None
    roots = SourceRoots(str(tmp_path), "")
    assert age_of(table, roots).freshness is Freshness.FRESH
    assert age_of(table, roots, NOW + timedelta(hours=30)).freshness is Freshness.OLD
    assert age_of(files, roots).freshness is Freshness.EMPTY


def test_an_interval_that_has_nothing_yet_is_warned_or_refused(ledger, tmp_path):
    sources = Sources("p", "2026-11-20", "r", str(tmp_path), ledger)
    stage = source_stage(path=DAILY, freshness=LIMITS)
    arrive(tmp_path, "2026-11-20", 30)
    assert sources.aged(stage) == "its newest data came 30h ago, and warn_after is 26h"
    assert sources.aged(source_stage(path=DAILY)) is None
    os.utime(tmp_path / "raw" / "day=2026-11-20" / "a.parquet", (1, 1))
    with pytest.raises(SourceUnusable, match=r"error_after is 50h.*Have newer data written there"):
        sources.aged(stage)
