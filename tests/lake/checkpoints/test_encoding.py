"""Parts that earlier versions wrote can be read."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.lake.checkpoints.samples import record, verdict

from stagehold.lake.checkpoints.encoding import PART_BEFORE_CUTS, RecordedPartition, decode_table, encode, records_in

ROWS = tuple(RecordedPartition("a", one, (verdict(one),)) for one in map(record, range(3)))


def before_gates(table: pa.Table) -> pa.Table:
    """When a suite was a part of the key."""
    return table.drop_columns("judged")


def before_cuts(table: pa.Table) -> pa.Table:
    """When nothing could be kept, and a part of it had fewer fields."""
    fields = table.schema.field("kept").type.value_type
    fewer = pa.struct([fields.field(name) for name in PART_BEFORE_CUTS])
    kept = pa.field("kept", pa.list_(pa.field("element", fewer, nullable=False)), nullable=False)
    at = table.schema.get_field_index("kept")
    return before_gates(table).set_column(at, kept, pa.array([[]] * table.num_rows, kept.type))


def written(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue())


@pytest.mark.parametrize("earlier", [before_gates, before_cuts])
def test_a_part_of_an_earlier_form_says_what_it_did(earlier):
    assert records_in(decode_table(written(earlier(decode_table(encode(ROWS)))))) == ROWS


def test_a_part_says_by_which_suite_a_partition_was_judged():
    judged = tuple(replace(one, record=replace(one.record, judged="suite 7")) for one in ROWS)
    assert records_in(decode_table(encode(judged))) == judged


def test_a_part_that_lacks_anything_else_is_refused():
    with pytest.raises(ValueError, match="its columns are not those of a part"):
        decode_table(written(decode_table(encode(ROWS)).drop_columns("rows")))
