"""Published tables as assets of Airflow. A task names aliases; an event comes about only where data is new."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetAlias

from stagehold.gates.outcomes import Outcome, outcome_of, waived_in
from stagehold.lake.location import OBJECT_STORE
from stagehold.model.records import Waiver
from stagehold.plan.resume.reasons import partition_ranges
from stagehold.plan.split.regions import Region
from stagehold.spec.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stagehold.airflow.telling.work_done import StageWork


def outlets_of(pipeline: Pipeline, region: Region) -> list[AssetAlias]:
    """One for each table that the region publishes, called as the table is."""
    tables = (pipeline.stage(name).output.table for name in region.stages)
    return [AssetAlias(name=table) for table in tables if table is not None]


def table_asset(table: str, uri: str) -> Asset:
    """:param uri: of the table, a path or s3://."""
    return Asset(name=table, uri=uri if uri.startswith(OBJECT_STORE) else Path(uri).absolute().as_uri())


def asset_facts(work: StageWork, run_id: str, waivers: Sequence[Waiver]) -> dict[str, Any]:
    """What an event tells of the data that is there now, of how much of it this run made, and of what its gate said."""
    cell, waived = work.records[0].cell, waived_in(work.records, waivers)
    outcomes = [(one, outcome_of(one, waived)) for one in work.verdicts]
    counts = Counter(outcome.value for _, outcome in outcomes)
    unmet: dict[tuple[str, str], list[int]] = {}
    for one, outcome in outcomes:
        if outcome is not Outcome.PASSED:
            unmet.setdefault((outcome.value, one.expectation), []).append(one.partition)
    return {
        "pipeline": cell.pipeline,
        "stage": work.stage.name,
        "interval": cell.interval,
        "run_id": run_id,
        "partitions": len(work.records),
        "computed": sum(one.run_id == run_id and not one.taken_over for one in work.records),
        "rows": sum(one.rows for one in work.records),
        "gate": work.stage.gate,
        "verdicts": {outcome.value: counts[outcome.value] for outcome in Outcome} if work.stage.gate else {},
        "not_met": [
            {"verdict": verdict, "expectation": expectation, "partitions": partition_ranges(sorted(some))}
            for (verdict, expectation), some in sorted(unmet.items())
        ],
    }
