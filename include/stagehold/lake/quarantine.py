"""A table for people with the rows that gates had set aside: `<table>__quarantine`, or beside the tables that a stage
owns.

It is made from what is recorded, so it can always be made again: an attempt that dies before bringing it up to date
leaves that to the next attempt of its stage. Stagehold itself never reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

from stagehold.lake.commit.delta_log import open_table, storage_options, table_exists
from stagehold.lake.store.columns import INTERVAL, PARTITION
from stagehold.lake.store.files import files_at
from stagehold.lake.store.location import table_location, tables_of
from stagehold.model.records import PartitionRecord
from stagehold.spec.pipeline import Stage

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

ENDING = "__quarantine"
RUN, ATTEMPT = "_run", "_attempt"
TRIES = 5  # while others change other intervals of the table
Asides = Mapping[int, str]  # who set rows of each partition aside


def quarantine_uri(lake_uri: str, pipeline: str, stage: Stage) -> str:
    if stage.output.table is None:
        return f"{tables_of(lake_uri, pipeline, stage)}{ENDING}"
    return f"{table_location(lake_uri, pipeline, stage, '').uri}{ENDING}"


def bring_up_to_date(uri: str, interval: str, records: Sequence[PartitionRecord], partitions: int) -> bool:
    """Make the table show what is now set aside of an interval's partitions; False if it does so already.

    A partition that was released or blocked since then keeps the rows that the table shows for it. A partition that no
    longer exists, since the stage has fewer ``partitions`` now, keeps none.

    :param records: the newest record of each partition.
    """
    from deltalake.exceptions import CommitFailedError

    for tries_left in reversed(range(TRIES)):
        shown = _shown(uri, interval)
        to_show = [record for record in records if _is_to_show(record) and record.partition < partitions]
        wanted = {record.partition: _who(record) for record in to_show}
        settled = {record.partition for record in records if record.state.readable}
        settled |= {number for number in shown if number >= partitions}
        if wanted == {number: who for number, who in shown.items() if number in settled}:
            return False
        try:
            _show(uri, interval, to_show, settled)
        except CommitFailedError:
            if not tries_left:
                raise
        else:
            return True
    return False


def take_out_quarantined(uri: str, interval: str) -> None:
    """Make the table show nothing of an interval any more.

    :raises CommitFailedError: others kept changing other intervals of the table.
    """
    if _shown(uri, interval):
        open_table(uri).delete(_of_interval(interval))


def _of_interval(interval: str) -> str:
    return f"{INTERVAL} = '{interval.replace(chr(39), chr(39) * 2)}'"


def _is_to_show(record: PartitionRecord) -> bool:
    return record.state.readable and record.set_aside is not None


def _who(record: PartitionRecord) -> str:
    """The attempt that wrote the rows, even if they were put in their present place by somebody else."""
    assert record.set_aside is not None
    return record.set_aside.files[0].path.split("/")[1]


def _shown(uri: str, interval: str) -> Asides:
    if not table_exists(uri):
        return {}
    filters = [(INTERVAL, "=", interval)]
    rows = open_table(uri).to_pyarrow_table(columns=[PARTITION, ATTEMPT], filters=filters).to_pylist()
    return {row[PARTITION]: row[ATTEMPT] for row in rows}


def _show(uri: str, interval: str, records: Sequence[PartitionRecord], settled: set[int]) -> None:
    from deltalake import write_deltalake

    tables = list(_tables(interval, records))
    options = storage_options(uri)
    replaced = f"{_of_interval(interval)} AND {PARTITION} IN ({_listed(settled)})"
    if not tables:
        open_table(uri).delete(replaced)
    elif table_exists(uri):
        write_deltalake(
            uri, _together(tables), mode="overwrite", predicate=replaced, schema_mode="merge", storage_options=options
        )
    else:
        write_deltalake(uri, _together(tables), mode="error", partition_by=[INTERVAL], storage_options=options)


def _listed(numbers: set[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))


def _together(tables: Sequence[pa.Table]) -> pa.Table:
    import pyarrow as pa

    return pa.concat_tables(tables, promote_options="default")


def _tables(interval: str, records: Sequence[PartitionRecord]) -> Iterator[pa.Table]:
    import pyarrow as pa
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    for record in records:
        told: dict[str, Any] = {RUN: record.run_id, INTERVAL: interval, ATTEMPT: _who(record)}
        for file in record.set_aside.files if record.set_aside else ():
            content = BytesIO(files_at(record.table).read(file.path))
            rows = pq.read_table(content, coerce_int96_timestamp_unit="us").replace_schema_metadata(None)
            for name, value in told.items():
                rows = rows.append_column(name, pa.array([value] * rows.num_rows, pa.string()))
            yield rows.append_column(PARTITION, pa.array([record.partition] * rows.num_rows, pa.int32()))
