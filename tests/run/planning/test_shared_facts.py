"""What intervals that are planned together look at once, and what each of them looks at for itself."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from tests.plan.resume.situations import forward
from tests.plan.split.test_partition_counts import stage

from stagehold.ledger import Ledger
from stagehold.run.planning import shared_facts
from stagehold.run.planning.planning import IntervalView, RunRequest
from stagehold.run.planning.shared_facts import SharedFacts
from stagehold.settings import Settings
from stagehold.sources.source_files import SourceRoots
from stagehold.spec.pipeline import Pipeline, Stage
from stagehold.spec.settings.source import Source

RAW = Stage(
    name="raw",
    job="jobs.x:raw",
    source=Source(kind="parquet", path="${lake}/raw/*.parquet", splits=2),
    partitions=2,
    max_parallelism=128,
)
PIPELINE = Pipeline(name="p", file="p.yaml", stages=(RAW, stage("checked", forward("raw"))))
DAYS = ("2026-11-01", "2026-11-02", "2026-11-03")


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often code was followed, by job, and files were listed, by pattern."""
    found: Counter[str] = Counter()
    code, files = shared_facts.code_fingerprint, SourceRoots.files
    monkeypatch.setattr(shared_facts, "code_fingerprint", lambda job, at: found.update([job]) or code(job, at))
    monkeypatch.setattr(SourceRoots, "files", lambda roots, of: found.update([of]) or files(roots, of))
    return found


def facts_of_days(pipeline: Pipeline, ledger: Ledger, settings: Settings, shared: SharedFacts | None) -> list[object]:
    requests = [RunRequest(pipeline, "planned", day, {}) for day in DAYS]
    views = [IntervalView.of_run(request, ledger, settings, shared) for request in requests]
    return [{name: one.facts for name, one in view.situation.stages.items()} for view in views]


def test_code_and_files_are_looked_at_once_for_all_intervals(
    ledger: Ledger, settings: Settings, looks: Counter[str]
) -> None:
    together = facts_of_days(PIPELINE, ledger, settings, SharedFacts(settings))
    assert looks == {"jobs.x:raw": 1, "jobs.x:checked": 1, "${lake}/raw/*.parquet": 1}
    assert together == facts_of_days(PIPELINE, ledger, settings, None)
    assert looks["jobs.x:raw"] == 1 + len(DAYS)


def test_each_interval_takes_its_own_part_of_an_incremental_source(
    ledger: Ledger, settings: Settings, looks: Counter[str]
) -> None:
    assert RAW.source is not None
    source = RAW.source.model_copy(update={"incremental": True})
    raw = RAW.model_copy(update={"source": source})
    pipeline = PIPELINE.model_copy(update={"stages": (raw, *PIPELINE.stages[1:])})
    facts_of_days(pipeline, ledger, settings, SharedFacts(settings))
    assert looks == {"jobs.x:raw": 1, "jobs.x:checked": 1, "${lake}/raw/*.parquet": len(DAYS)}


def test_each_interval_has_the_files_of_its_own_place(ledger: Ledger, settings: Settings) -> None:
    assert RAW.source is not None
    for day in DAYS:
        (Path(settings.lake_uri) / "raw" / day).mkdir()
        (Path(settings.lake_uri) / "raw" / day / "a.parquet").write_bytes(b"")
    raw = RAW.model_copy(update={"source": RAW.source.model_copy(update={"path": "${lake}/raw/${interval}/*.parquet"})})
    pipeline = PIPELINE.model_copy(update={"stages": (raw, *PIPELINE.stages[1:])})
    together = facts_of_days(pipeline, ledger, settings, SharedFacts(settings))
    assert together == facts_of_days(pipeline, ledger, settings, None)
    assert together[0] != together[1]


def test_who_looks_again_sees_what_has_changed(ledger: Ledger, settings: Settings) -> None:
    before = facts_of_days(PIPELINE, ledger, settings, SharedFacts(settings))
    (Path(settings.lake_uri) / "raw" / "b.parquet").write_bytes(b"more")
    assert facts_of_days(PIPELINE, ledger, settings, SharedFacts(settings)) != before


def test_a_lake_that_was_moved_has_the_same_splits(ledger: Ledger, settings: Settings, tmp_path: Path) -> None:
    """They are called from its root."""
    before = facts_of_days(PIPELINE, ledger, settings, SharedFacts(settings))
    (tmp_path / "lake").rename(tmp_path / "moved")
    moved = replace(settings, lake=str(tmp_path / "moved"))
    assert facts_of_days(PIPELINE, ledger, moved, SharedFacts(moved)) == before
