"""The entry of a published table in the catalog of Spark's server, by which its readers find it by name.

A table is registered once there is one, in a session that its stage has open anyway; a mark beside its data says so, so
that no session is opened for it again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from stagehold.errors import CatalogTaken
from stagehold.lake.commit.delta_log import table_exists
from stagehold.lake.store.files import files_at
from stagehold.lake.store.location import path_safe, published_table, spark_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagehold.spec.pipeline import Stage

MARKS = "_catalog"  # folder of the marks, which nobody's VACUUM touches


def unregistered(stages: Iterable[Stage], lake_uri: str) -> list[tuple[str, str]]:
    """Addresses of tables that these stages publish and that are not registered yet, with the names to give them."""
    outputs = [stage.output for stage in stages]
    wanted = [(output.table, output.catalog) for output in outputs if output.table and output.catalog]
    found = [(published_table(lake_uri, table), name) for table, name in wanted]
    return [(uri, name) for uri, name in found if table_exists(uri) and not files_at(uri).sizes(_mark(name))]


def register(spark: SparkSession, uri: str, name: str) -> None:
    """Have the catalog know the table at ``uri`` by ``name``, which is ``[CATALOG.]SCHEMA.TABLE``.

    :raises CatalogTaken: it knows another table by that name, which is left alone.
    """
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS {_quoted(name.rpartition('.')[0])}").collect()
    spark.sql(f"CREATE TABLE IF NOT EXISTS {_quoted(name)} USING delta LOCATION '{spark_uri(uri)}'").collect()
    found = str(spark.sql(f"DESCRIBE DETAIL {_quoted(name)}").collect()[0]["location"])
    if _plain(found) != _plain(spark_uri(uri)):
        raise CatalogTaken(name, found, uri)
    files_at(uri).create(f"{_mark(name)}/registered", b"")


def _mark(name: str) -> str:
    return f"{MARKS}/{path_safe(name)}"


def _quoted(name: str) -> str:
    return ".".join(f"`{part}`" for part in name.split("."))


def _plain(address: str) -> str:
    """Hadoop writes the address of a folder in several ways."""
    return address.removeprefix("file:").rstrip("/").replace("///", "/")
