"""Parts that earlier versions wrote can be read."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.lake.checkpoints.samples import record, verdict

from stagehold.lake.checkpoints.encoding import (
    PART_BEFORE_CUTS,
    PART_BEFORE_SHAPES,
    VERDICT_BEFORE_SEVERITY,
    RecordedPartition,
    decode_table,
    encode,
    records_in,
)
from stagehold.model.choices import Severity

ROWS = tuple(RecordedPartition("a", one, (verdict(one),)) for one in map(record, range(3)))


def before_storing(table: pa.Table) -> pa.Table:
    """When nobody knew what it took to store a partition."""
    return table.drop_columns("storing")


def before_counters(table: pa.Table) -> pa.Table:
    """When functions could count nothing."""
    return before_storing(table).drop_columns("counted")


def before_shapes(table: pa.Table) -> pa.Table:
    """When a part of what is kept did not say how it was declared."""
    fields = table.schema.field("kept").type.value_type
    fewer = pa.struct([fields.field(name) for name in PART_BEFORE_SHAPES])
    kept = pa.field("kept", pa.list_(pa.field("element", fewer, nullable=False)), nullable=False)
    said = [
        [{name: one[name] for name in PART_BEFORE_SHAPES} for one in some] for some in table.column("kept").to_pylist()
    ]
    table, at = before_storing(table), table.schema.get_field_index("kept")
    return table.set_column(at, kept, pa.array(said, kept.type))


def before_waivers(table: pa.Table) -> pa.Table:
    """When nothing that a gate refused could be read, and a verdict had fewer fields."""
    table = before_counters(table)
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


@pytest.mark.parametrize(
    "earlier", [before_storing, before_counters, before_shapes, before_waivers, before_gates, before_cuts]
)
def test_a_part_of_an_earlier_form_says_what_it_did(earlier):
    assert records_in(decode_table(written(earlier(decode_table(encode(ROWS)))))) == ROWS


def test_a_part_says_what_gates_said_and_what_was_counted():
    record, said = ROWS[0].record, ROWS[0].verdicts[0]
    judged = replace(
        ROWS[0],
        record=replace(
            record, judged="suite 7", refused=("no nulls(a)", "unique(b)"), counted=(("bad", 3),), storing=0.5
        ),
        verdicts=(replace(said, severity=Severity.INFO, configuration='{"type": "x"}', result="{}"),),
    )
    assert records_in(decode_table(encode([judged]))) == (judged,)


def test_a_part_that_lacks_anything_else_is_refused():
    with pytest.raises(ValueError, match="its columns are not those of a part"):
        decode_table(written(decode_table(encode(ROWS)).drop_columns("rows")))


OF_A_RUN = """
import sys
from tests.lake.checkpoints.samples import record, verdict
from stagehold.lake.checkpoints.encoding import RecordedPartition, decode_table, encode
assert decode_table(encode([RecordedPartition("a", record(0), (verdict(record(0)),))])).num_rows == 1
print("pandas" in sys.modules)
"""


def test_a_run_that_reuses_everything_has_no_need_of_pandas_to_leave_its_checkpoint():
    """To import it takes a sixth of all processor time of such a run."""
    done = subprocess.run([sys.executable, "-c", OF_A_RUN], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("text", ["", "\x00\x1f\x7f", 'a "quoted"\\ line\n', "é😀\u2028", "x" * 3_000_000])
@pytest.mark.parametrize("seconds", [None, 0.1 + 0.2, 5e-324, math.inf])
def test_any_text_and_any_seconds_are_read_as_they_were(text, seconds):
    rows = [
        RecordedPartition("a", replace(record(0), reason=text, seconds=seconds, epoch=2**63 - 1), (verdict(record(0)),))
    ]
    assert records_in(decode_table(encode(rows))) == tuple(rows)


def test_a_part_without_rows_has_the_columns_of_a_part():
    assert records_in(decode_table(encode([]))) == ()
