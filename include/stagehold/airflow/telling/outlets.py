"""Published tables as assets of Airflow. A task names aliases; an event is sent only where data is new."""

from __future__ import annotations

from pathlib import Path

from airflow.sdk import Asset, AssetAlias

from stagehold.lake.store.location import OBJECT_STORE
from stagehold.plan.split.regions import Region
from stagehold.spec.pipeline import Pipeline


def outlets_of(pipeline: Pipeline, region: Region) -> list[AssetAlias]:
    """An alias for each table that the region publishes, with the table's name."""
    tables = (pipeline.stage(name).output.table for name in region.stages)
    return [AssetAlias(name=table) for table in tables if table is not None]


def table_asset(table: str, uri: str) -> Asset:
    """:param uri: of the table, a path or s3://."""
    return Asset(name=table, uri=uri if uri.startswith(OBJECT_STORE) else Path(uri).absolute().as_uri())
