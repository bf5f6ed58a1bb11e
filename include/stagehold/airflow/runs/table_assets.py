"""Makes Airflow know the assets of published tables before a run publishes.

A task names an alias, and Airflow makes the asset with its first event. Of two tasks that tell the first event of a
table at one moment, both would make it: the database refuses the second, and Airflow fails that task.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError

from stagehold.airflow.telling.outlets import table_asset
from stagehold.lake.store.location import table_location

if TYPE_CHECKING:
    from airflow.sdk import Asset
    from sqlalchemy import Connection
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
    """Make the assets of these tables, within the session's transaction. What another scheduler makes at this moment
    is left to it.

    The savepoint is the connection's: the scheduler refuses each commit of the session, and the end of a savepoint
    of the session counts as one.
    """
    connection = session.connection()
    for stage in pipeline.stages:
        if stage.output.table in tables:
            place = table_location(settings.lake_uri, pipeline.name, stage, "")
            with suppress(IntegrityError), connection.begin_nested():
                _make(table_asset(stage.output.table, place.uri), stage.output.table, connection)


def _make(told: Asset, alias: str, connection: Connection) -> None:
    from airflow.models.asset import AssetAliasModel, AssetModel, alias_association_table

    asset = {"name": told.name, "uri": told.uri}
    asset_id = _found_or_made(AssetModel, asset, {"group": told.group, "extra": {}}, connection)
    alias_id = _found_or_made(AssetAliasModel, {"name": alias}, {}, connection)
    connection.execute(insert(alias_association_table).values(alias_id=alias_id, asset_id=asset_id))


def _found_or_made(model: Any, key: dict[str, str], others: dict[str, Any], connection: Connection) -> int:
    found = connection.scalar(select(model.id).filter_by(**key))
    if found is not None:
        return int(found)
    made = connection.execute(insert(model).values(**key, **others)).inserted_primary_key
    assert made is not None, "an INSERT of one row tells its key"
    return int(made[0])
