"""Runs one share of a region in a process of its own, as a mapped Airflow task does:
python -m tests.run.run_share RUN REGION SHARE.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from stagehold.model.partition_set import Share
from stagehold.plan.split.regions import stage_regions
from stagehold.run.here.region import run_region
from stagehold.run.planning.planning import RunRequest
from stagehold.run.planning.task import RegionTask
from stagehold.settings import load_settings
from stagehold.spec.loading.loader import find_pipeline

if __name__ == "__main__":
    run_id, interval, region, share = sys.argv[1:]
    settings = load_settings()
    pipeline = find_pipeline("toy", settings)
    task = RegionTask(
        request=RunRequest(pipeline, run_id, interval, dict(pipeline.params)),
        region=next(one for one in stage_regions(pipeline) if one.name == region),
        logical_date=datetime(2026, 11, 20, tzinfo=UTC),
        owner=f"test/{run_id}/{region}/{share}",
        launcher="cli",
        share=Share.parse(share),
    )
    outcome = run_region(task, settings, lambda line: print(line, file=sys.stderr, flush=True))
    print(outcome.reused, outcome.computed)
