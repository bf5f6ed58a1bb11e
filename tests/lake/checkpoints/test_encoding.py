"""Parts that earlier versions wrote can be read."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.lake.checkpoints.samples import record, verdict

from stagehold.lake.checkpoints.encoding import (
    PART_BEFORE_CUTS,
    VERDICT_BEFORE_SEVERITY,
    RecordedPartition,
    decode_table,
    encode,
    records_in,
)
from stagehold.model.records import Severity

ROWS = tuple(RecordedPartition("a", one, (verdict(one),)) for one in map(record, range(3)))


def before_waivers(table: pa.Table) -> pa.Table:
    """When nothing that a gate refused could be read, and a verdict had fewer fields."""
    fields = table.schema.field("verdicts").type.value_type
    fewer = pa.struct([fields.field(name) for name in VERDICT_BEFORE_SEVERITY])
    verdicts = pa.field("verdicts", pa.list_(pa.field("element", fewer, nullable=False)), nullable=False)
    said = [
        [{name: one[name] for name in VERDICT_BEFORE_SEVERITY} for one in some]
        for some in table.column("verdicts").to_pylist()
    ]
    at = table.schema.get_field_index("verdicts")
    return table.drop_columns("refused").set_column(at, verdicts, pa.array(said, verdicts.type))


def before_gates(table: pa.Table) -> pa.Table:
    """When a suite was a part of the key."""
    return before_waivers(table).drop_columns("judged")


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


@pytest.mark.parametrize("earlier", [before_waivers, before_gates, before_cuts])
def test_a_part_of_an_earlier_form_says_what_it_did(earlier):
    assert records_in(decode_table(written(earlier(decode_table(encode(ROWS)))))) == ROWS


def test_a_part_says_what_gates_said():
    record, said = ROWS[0].record, ROWS[0].verdicts[0]
    judged = replace(
        ROWS[0],
        record=replace(record, judged="suite 7", refused=("no nulls(a)", "unique(b)")),
        verdicts=(replace(said, severity=Severity.INFO, configuration='{"type": "x"}', result="{}"),),
    )
    assert records_in(decode_table(encode([judged]))) == (judged,)


def test_a_part_that_lacks_anything_else_is_refused():
    with pytest.raises(ValueError, match="its columns are not those of a part"):
        decode_table(written(decode_table(encode(ROWS)).drop_columns("rows")))
