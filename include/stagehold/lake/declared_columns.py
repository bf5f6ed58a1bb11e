"""The columns that an author declares of an output: compared with those of its frame and with those of its table, and
told to the table's readers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stagehold.errors import ColumnProblem, ColumnsNotAsDeclared
from stagehold.lake.commit.delta_log import open_table, schema_fields, table_exists
from stagehold.lake.store.columns import IN_JSON, INTERVAL, PARTITION, Growth, data_fields, sql_type
from stagehold.spec.pipeline import OutputForm, Stage
from stagehold.spec.settings.output_settings import ColumnForm, Evolution

if TYPE_CHECKING:
    from deltalake import Schema
    from pyspark.sql.types import StructType

Declared = Mapping[str, ColumnForm]
COMMENT, NULL, NEVER = "comment", "stagehold.null", "false"  # in the metadata of a column; readers are shown the first


def refuse_other_columns(stage: Stage, schema: StructType) -> None:
    """Refuse a frame whose columns are not just those that its stage declares, in whatever order.

    :raises ColumnsNotAsDeclared: names every column that is missing, of another type, or not declared
    """
    columns = stage.output.columns
    if columns and (problems := tuple(_differences(columns, schema))):
        raise ColumnsNotAsDeclared(stage.name, problems, "computed")


def _differences(columns: Declared, schema: StructType) -> Iterator[ColumnProblem]:
    found = {field.name: field.dataType.simpleString() for field in data_fields(schema)}
    for name, column in columns.items():
        if name not in found:
            yield ColumnProblem(name, str(column), "no such column", "return it")
        elif found[name] != column.type:
            yield ColumnProblem(name, str(column), found[name], f"CAST({name} AS {column.type}) AS {name}")
    for name, kind in found.items():
        if name not in columns:
            yield ColumnProblem(name, "nothing", kind, "leave it out, or declare it")


def refuse_nulls(stage: Stage, nulls: Mapping[int, Mapping[str, int]]) -> None:
    """Refuse partitions that are NULL somewhere in a column that may have no NULL.

    :param nulls: by partition, how many rows are NULL in each column that was looked at.
    :raises ColumnsNotAsDeclared: names every such column, with its partitions
    """
    problems = []
    for name, column in stage.output.columns.items():
        found = {partition: counts[name] for partition, counts in nulls.items() if counts.get(name)}
        if found and not column.null:
            problems.append(_of_nulls(name, column, found))
    if problems:
        raise ColumnsNotAsDeclared(stage.name, problems, "published")


def _of_nulls(name: str, column: ColumnForm, found: Mapping[int, int]) -> ColumnProblem:
    rows, partitions = sum(found.values()), ", ".join(map(str, sorted(found)))
    seen = f"NULL in {rows} row{'' if rows == 1 else 's'} of partition{'' if len(found) == 1 else 's'} {partitions}"
    return ColumnProblem(name, str(column), seen, f"leave these rows out, or COALESCE({name}, ...) AS {name}")


def as_declared(schema: StructType, columns: Declared) -> StructType:
    """The columns, of which those that are declared to have no NULL, and only those, are not nullable."""
    from pyspark.sql.types import StructField, StructType

    never = {name for name, column in columns.items() if not column.null}
    return StructType(
        [StructField(each.name, each.dataType, each.name not in never, each.metadata) for each in schema.fields]
    )


def described(schema: StructType, columns: Declared) -> StructType:
    """The columns with what a table tells its readers of those that are declared; all of them may be NULL in its log,
    as they are in days from before they were there.
    """
    from pyspark.sql.types import StructField, StructType

    return StructType(
        [
            StructField(each.name, each.dataType, metadata=_metadata(each.metadata or {}, columns.get(each.name)))
            for each in StructType(schema.fields).toNullable().fields
        ]
    )


def _metadata(own: Mapping[str, Any], column: ColumnForm | None) -> dict[str, Any]:
    """What a frame brings along of the columns of its source counts as far as nothing is declared."""
    if column is None:
        return {name: value for name, value in own.items() if name != NULL}
    declared = {COMMENT: column.description, NULL: None if column.null else NEVER}
    kept = {name: value for name, value in own.items() if name not in declared}
    return {**kept, **{name: value for name, value in declared.items() if value is not None}}


def tells_as_declared(present: Schema, wanted: Schema, columns: Declared) -> bool:
    """Whether a table says of the declared columns what it should."""
    told, to_tell = told_columns(present), told_columns(wanted)
    return all(told.get(name) == to_tell[name] for name in columns if name in to_tell)


def told_columns(schema: Schema) -> dict[str, tuple[str | None, bool]]:
    """The comment of each column, and whether readers were told that it may be NULL."""
    fields = json.loads(schema.to_json())["fields"]
    return {field["name"]: (field["metadata"].get(COMMENT), field["metadata"].get(NULL) != NEVER) for field in fields}


@dataclass(frozen=True)
class ColumnChange:
    """How a column of a published table changes, by what is declared. ``breaks`` says that a reader of the table may
    fail, or read something else than before.
    """

    table: str
    column: str
    before: str
    after: str
    effect: str
    breaks: bool


def column_changes(stage: Stage, uri: str) -> tuple[ColumnChange, ...]:
    """What a run changes of the columns of a published table, as far as the stage declares its columns."""
    columns = stage.output.columns
    if not columns or stage.output.table is None or not table_exists(uri):
        return ()
    schema = open_table(uri).schema()
    present = {name: kind for name, kind in schema_fields(schema).items() if name not in (INTERVAL, PARTITION)}
    return tuple(ColumnChange(stage.output.table, *change) for change in _changes(stage.output, present, schema))


def _changes(
    output: OutputForm, present: Mapping[str, Any], schema: Schema
) -> Iterator[tuple[str, str, str, str, bool]]:
    columns, told = output.columns, told_columns(schema)
    types = {name: sql_type(kind) for name, kind in present.items()}
    kinds = {name: kind if isinstance(kind, str) else types[name] for name, kind in present.items()}
    declared = {name: IN_JSON.get(str(column.type), str(column.type)) for name, column in columns.items()}
    growth, fixed = Growth.of(kinds, declared), output.evolution is Evolution.FAIL
    refused = "a run is refused by `schema: fail`" if fixed else ""
    for name in growth.missing:
        yield name, types[name], "not there", "a run is refused: readers would lose it", True
    for name in growth.other:
        yield name, types[name], str(columns[name].type), "a run is refused: no reader could read both", True
    for name in growth.narrower:
        yield name, types[name], str(columns[name].type), refused or "readers still get the wider type", fixed
    for name in growth.wider:
        yield name, types[name], str(columns[name].type), refused or "readers get the wider type", True
    for name in growth.new:
        yield name, "not there", str(columns[name]), refused or "NULL in what was published before", fixed
    for name, column in columns.items():
        if name in present and column.null and not told[name][1]:
            yield name, f"{types[name]}, never NULL", str(column.type), "readers were told that it is never NULL", True
