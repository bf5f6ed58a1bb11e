"""Runs one share of a region in a process of its own, as a mapped Airflow task does: python -m tests.run.run_share RUN REGION SHARE."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from stagehold.model.spec_file import find_pipeline
from stagehold.plan.regions import stage_regions
from stagehold.plan.shares import Share
from stagehold.run.region import run_region
from stagehold.run.region_task import RegionTask
from stagehold.settings import load_settings

if __name__ == "__main__":
    run_id, interval, region, share = sys.argv[1:]
    settings = load_settings()
    pipeline = find_pipeline("toy", settings)
    task = RegionTask(
        pipeline=pipeline,
        region=next(one for one in stage_regions(pipeline) if one.name == region),
        run_id=run_id,
        interval=interval,
        logical_date=datetime(2026, 11, 20, tzinfo=UTC),
        params=dict(pipeline.params),
        restore=None,
        owner=f"test/{run_id}/{region}/{share}",
        launcher="cli",
        share=Share.parse(share),
    )
    outcome = run_region(task, settings, lambda line: print(line, file=sys.stderr, flush=True))
    print(outcome.reused, outcome.computed)
