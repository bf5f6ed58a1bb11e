"""Makes Airflow know the assets of published tables before a run publishes.

A task names an alias, and Airflow makes the asset with its first event. Of two tasks that tell the first event of a
table at one moment, both would make it: the database refuses the second, and Airflow fails that task.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from stagehold.airflow.telling.outlets import table_asset
from stagehold.lake.store.location import table_location

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from stagehold.settings import Settings
    from stagehold.spec.pipeline import Pipeline


def unknown_tables(tasks: Iterable[Any], session: Session) -> set[str]:
    """Tables that the tasks of a serialized DAG publish, and of which Airflow knows no asset."""
    from airflow.models.asset import AssetAliasModel

    named = {outlet.name for task in tasks for outlet in task.outlets}
    if not named:
        return set()
    asked = select(AssetAliasModel.name).where(AssetAliasModel.name.in_(named), AssetAliasModel.assets.any())
    return named - set(session.scalars(asked))


def make_known(tables: set[str], pipeline: Pipeline, settings: Settings, session: Session) -> None:
    """Make the assets of these tables, below the session's transaction. What another scheduler makes at this moment is
    left to it.
    """
    for stage in pipeline.stages:
        if stage.output.table in tables:
            place = table_location(settings.lake_uri, pipeline.name, stage, "")
            with suppress(IntegrityError), session.begin_nested():
                _make(stage.output.table, place.uri, session)


def _make(table: str, uri: str, session: Session) -> None:
    from airflow.assets.manager import asset_manager
    from airflow.models.asset import AssetAliasModel, AssetModel
    from airflow.serialization.definitions.assets import SerializedAsset

    told = table_asset(table, uri)
    known = select(AssetModel).where(AssetModel.name == told.name, AssetModel.uri == told.uri)
    asset = session.scalar(known)
    if asset is None:
        new = SerializedAsset(name=told.name, uri=told.uri, group="asset", extra={}, watchers=[])
        (asset,) = asset_manager.create_assets([new], session=session)
    alias = session.scalar(select(AssetAliasModel).where(AssetAliasModel.name == table)) or AssetAliasModel(name=table)
    asset.aliases.append(alias)
    session.flush()
