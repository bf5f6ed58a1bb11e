"""Creates a stage's table and keeps its columns those of the stage's output.

Through delta-rs, whichever committer the stage has: it takes milliseconds, and on an object store a commit by Spark
could overwrite one that landed at the same moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stagehold.errors import TableSchemaConflict
from stagehold.lake.columns import INTERVAL, refuse_unusable_columns
from stagehold.lake.commit.delta_log import schema_fields, storage_options, table_exists
from stagehold.lake.commit.tokens import RetryReason, by_delta_rs, partition_columns, token_properties, until_done
from stagehold.lake.commit.wave_commit import Claim
from stagehold.lake.location import TableLocation

if TYPE_CHECKING:
    from deltalake import DeltaTable, Schema
    from pyspark.sql.types import StructType

# Recorded versions stay readable for as long as their records: Spark refuses to read what is older than the first.
PROPERTIES = {
    "delta.deletedFileRetentionDuration": "interval 3650 days",
    "delta.logRetentionDuration": "interval 3650 days",
}


def ensure_table(location: TableLocation, schema: StructType, claim: Claim) -> None:
    """Create the table, or give it the columns of ``schema``, which has `_partition`.

    A stage's own table takes any schema; its earlier versions stay readable as they were. A published one only gains
    columns. Two attempts may do this at once: the later one finds the table made. One that was fenced changes nothing.

    :raises StageContractBroken: when a column cannot be stored.
    :raises TableSchemaConflict: when a published table would lose or change columns; nothing is changed.
    :raises Fenced: when a newer epoch was here first.
    """
    refuse_unusable_columns(location.stage, schema)
    wanted = _table_schema(location, schema)
    if not table_exists(location.uri):
        _create(location, wanted)
    change = _replace_columns if location.interval is None else _add_columns
    until_done(location, claim, lambda table, landed: change(table, location, wanted, landed))


def _create(location: TableLocation, wanted: Schema) -> None:
    """Make an empty table, unless another attempt just did."""
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        DeltaTable.create(
            location.uri,
            wanted,
            partition_by=partition_columns(location),
            configuration=PROPERTIES,
            storage_options=storage_options(location.uri),
        )
    except DeltaError:
        if not table_exists(location.uri):
            raise


def _table_schema(location: TableLocation, schema: StructType) -> Schema:
    from deltalake import Schema
    from pyspark.sql.types import StringType, StructType

    nullable = StructType(schema.fields).toNullable()
    return Schema.from_json((nullable if location.interval is None else nullable.add(INTERVAL, StringType())).json())


def _replace_columns(table: DeltaTable, location: TableLocation, wanted: Schema, landed: int) -> RetryReason:
    if list(schema_fields(table.schema()).items()) == list(schema_fields(wanted).items()):
        return None
    if _lacks_feature(table, wanted):
        return by_delta_rs(lambda: _add_feature(table)) or "the table was prepared for its new types"
    properties = token_properties({location.token: landed})
    return by_delta_rs(
        lambda: table.create_write_transaction(
            [], "overwrite", wanted, partition_columns(location), commit_properties=properties
        )
    )


def _lacks_feature(table: DeltaTable, wanted: Schema) -> bool:
    """Timestamps without a zone are the one type we store that a table has to be prepared for."""
    return "timestamp_ntz" in wanted.to_json() and "timestampNtz" not in (table.protocol().writer_features or ())


def _add_feature(table: DeltaTable) -> None:
    from deltalake import TableFeatures

    table.alter.add_feature(TableFeatures.TimestampWithoutTimezone, allow_protocol_versions_increase=True)


def _add_columns(table: DeltaTable, location: TableLocation, wanted: Schema, landed: int) -> RetryReason:
    present, types = schema_fields(table.schema()), schema_fields(wanted)
    missing = [name for name in present if name not in types]
    changed = [name for name, kind in types.items() if name in present and present[name] != kind]
    if missing or changed:
        raise TableSchemaConflict(location.stage, location.uri, missing=missing, changed=changed)
    new = [field for field in wanted.fields if field.name not in present]
    if not new:
        return None
    return by_delta_rs(
        lambda: table.alter.add_columns(new, commit_properties=token_properties({location.token: landed}))
    )
