"""Creates the table of a stage and keeps its columns those of the stage's output.

Always through delta-rs, whichever committer the stage has: that takes milliseconds, while on an object store a commit
by Spark could overwrite one that landed at the same moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stagehold.errors import TableSchemaConflict
from stagehold.lake.commit.delta_log import create_table, schema_fields, table_exists
from stagehold.lake.commit.tokens import (
    RetryReason,
    by_delta_rs,
    naming_table,
    partition_columns,
    token_properties,
    until_done,
)
from stagehold.lake.commit.wave_commit import Claim
from stagehold.lake.declared_columns import described, tells_as_declared
from stagehold.lake.store.columns import INTERVAL, PARTITION, Growth, refuse_unusable_columns, sql_type
from stagehold.lake.store.location import TableLocation
from stagehold.spec.pipeline import OutputForm
from stagehold.spec.settings.output_settings import CommitterKind, Evolution

if TYPE_CHECKING:
    from deltalake import DeltaTable, Schema
    from pyspark.sql.types import StructType

NO_PARTITION = "-1"
# Recorded versions stay readable for as long as their records: Spark refuses to read what is older than the first.
PROPERTIES = {
    "delta.deletedFileRetentionDuration": "interval 3650 days",
    "delta.logRetentionDuration": "interval 3650 days",
}


def ensure_table(
    location: TableLocation,
    schema: StructType,
    claim: Claim,
    output: OutputForm = OutputForm(),  # noqa: B008 - it is immutable
    *,
    as_recorded: bool = False,
) -> None:
    """Create the table, or give it the columns of ``schema``, which has `_partition`.

    A stage's own table takes any schema; its earlier versions stay readable as they were. A published one only gains
    columns and wider types, and as far as its ``output`` lets it. Two attempts may do this at once: the later one finds
    the table made. An attempt that was fenced changes nothing.

    :param as_recorded: the interval is recorded with just these columns, so that columns which others brought into a
        published table since then are none of its loss: readers see NULL there, as before.

    :raises StageContractBroken: when a column cannot be stored.
    :raises TableSchemaConflict: when a published table would lose or change columns; nothing is changed.
    :raises Fenced: when a newer epoch was here first.
    """
    refuse_unusable_columns(location.stage, schema)
    wanted = _table_schema(location, described(schema, output.columns))
    if not table_exists(location.uri):
        _create(location, wanted)
    if location.interval is None:
        until_done(location, claim, lambda table, landed: _replace_columns(table, location, wanted, output, landed))
        return
    grown = _Grown(location, wanted, output, as_recorded)
    until_done(location, claim, grown.step)


def _create(location: TableLocation, wanted: Schema) -> None:
    """Make an empty table, unless another attempt has just made it."""
    from deltalake.exceptions import DeltaError

    try:
        with naming_table(location.uri):
            create_table(location.uri, wanted, partition_columns(location), PROPERTIES)
    except DeltaError:
        if not table_exists(location.uri):
            raise


def _table_schema(location: TableLocation, schema: StructType) -> Schema:
    from deltalake import Schema
    from pyspark.sql.types import StringType

    return Schema.from_json((schema if location.interval is None else schema.add(INTERVAL, StringType())).json())


def _replace_columns(
    table: DeltaTable, location: TableLocation, wanted: Schema, output: OutputForm, landed: int
) -> RetryReason:
    same = list(schema_fields(table.schema()).items()) == list(schema_fields(wanted).items())
    if same and tells_as_declared(table.schema(), wanted, output.columns):
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
    """Timestamps without a zone are the only type we store for which a table has to be prepared."""
    return "timestamp_ntz" in wanted.to_json() and "timestampNtz" not in (table.protocol().writer_features or ())


def _add_feature(table: DeltaTable) -> None:
    from deltalake import TableFeatures

    table.alter.add_feature(TableFeatures.TimestampWithoutTimezone, allow_protocol_versions_increase=True)


class _Grown:
    """A published table that gains what ``wanted`` has beyond it."""

    def __init__(self, location: TableLocation, wanted: Schema, output: OutputForm, as_recorded: bool) -> None:
        self.location, self.wanted, self.output, self.as_recorded = location, wanted, output, as_recorded

    def step(self, table: DeltaTable, landed: int) -> RetryReason:
        present, wanted = schema_fields(table.schema()), schema_fields(self.wanted)
        growth = Growth.of(present, wanted)
        self._refuse(growth, present, wanted)
        told = tells_as_declared(table.schema(), self.wanted, self.output.columns)
        if told and not (growth.new or growth.wider):
            return None
        if _lacks_feature(table, self.wanted):
            return by_delta_rs(lambda: _add_feature(table)) or "the table was prepared for its new types"
        return by_delta_rs(lambda: self._commit(table, self._schema(table, growth), landed))

    def _refuse(self, growth: Growth, present: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
        """delta-spark writes rows with the table's types, so a narrow one would not be what is recorded of it."""
        fixed = self.output.evolution is Evolution.FAIL and not self.as_recorded
        keeps_narrow = not fixed and self.output.committer is CommitterKind.STAGED
        wider, new = (growth.wider, growth.new) if fixed else ((), ())
        changed = (*growth.other, *wider, *(() if keeps_narrow else growth.narrower))
        missing = () if self.as_recorded else growth.missing
        if missing or changed or new:
            raise TableSchemaConflict(
                self.location.stage,
                self.location.uri,
                missing={name: sql_type(present[name]) for name in missing},
                changed={name: (sql_type(present[name]), sql_type(wanted[name])) for name in changed},
                new=new,
            )

    def _schema(self, table: DeltaTable, growth: Growth) -> Schema:
        """The table's, with wider types where they are wanted, with what is new behind the others, and with what it
        tells of columns that are declared.
        """
        from deltalake import Field, Schema

        wanted = {field.name: field for field in self.wanted.fields}
        declared = {name: wanted[name].metadata for name in self.output.columns if name in wanted}
        present = table.schema().fields
        kept = [wanted[field.name] if field.name in growth.wider else field for field in present]
        told = [
            Field(each.name, each.type, nullable=each.nullable, metadata=declared.get(each.name, each.metadata))
            for each in kept
        ]
        return Schema([*told, *(wanted[name] for name in growth.new)])

    def _commit(self, table: DeltaTable, schema: Schema, landed: int) -> None:
        """delta-rs takes another schema with a commit that replaces something: here, what never is."""
        table.create_write_transaction(
            [],
            "overwrite",
            schema,
            partition_columns(self.location),
            [(INTERVAL, "=", self.location.interval or ""), (PARTITION, "in", [NO_PARTITION])],
            commit_properties=token_properties({self.location.token: landed}),
        )
