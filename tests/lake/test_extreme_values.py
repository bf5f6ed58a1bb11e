"""Every value that Spark holds is stored, and read back by Spark from the published table and by partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.lake.paper_table import records
from tests.lake.stagehand import Stagehand

from stagehold.lake.commit.staging import WaveFiles, stage_frame
from stagehold.lake.commit.wave_commit import CommittedPartition, WaveCommit
from stagehold.lake.measure import fingerprints, measure
from stagehold.lake.read import read_partitions
from stagehold.lake.tables import ensure_table
from stagehold.model.records import PartitionRecord

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark

LONGS = ("-9223372036854775807 - 1", "0", "9223372036854775807")
FLOATS = ("'NaN'", "'Infinity'", "'-Infinity'", "-0.0", "0.0", "1.5")
EXTREMES = {
    "boolean": ("false", "true"),
    "tinyint": ("-128", "127"),
    "smallint": ("-32768", "32767"),
    "int": ("-2147483648", "2147483647"),
    "bigint": LONGS,
    "float": (*FLOATS, "1.4E-45", "3.4028235E38"),
    "double": (*FLOATS, "4.9E-324", "1.7976931348623157E308", "-1.7976931348623157E308"),
    "decimal(5,2)": ("-999.99", "0.01", "999.99"),
    "decimal(15,0)": ("-999999999999999", "999999999999999"),
    "decimal(38,0)": (f"-{'9' * 38}", "0", "9" * 38),
    "decimal(38,38)": (f"-0.{'9' * 38}", f"0.{'0' * 37}1"),
    "string": (
        "''",
        "' '",
        "char(0)",
        "repeat('z', 33)",
        "repeat('😀', 300000)",
        "X'FF'",  # which is no UTF-8
        "X'EDA080'",
    ),
    "binary": ("X''", "X'00'", "X'FF'", "encode(repeat('z', 1000000), 'UTF-8')"),
    "date": (
        "'-5877641-06-23'",
        "'-0001-12-31'",
        "'0000-12-31'",
        "'0001-01-01'",
        "'1582-10-15'",
        "'9999-12-31'",
        "'+10000-01-01'",
        "'+5881580-07-11'",
    ),
    "timestamp": (
        "timestamp_micros(-9223372036854775807 - 1)",
        "'0000-12-31 23:59:59.999999'",
        "'0001-01-01 00:00:00'",
        "'9999-12-31 23:59:59.999'",
        "'9999-12-31 23:59:59.999999'",
        "'+10000-01-01 00:00:00'",
        "timestamp_micros(9223372036854775807)",
    ),
    "timestamp_ntz": (
        "'-290308-12-21 19:59:05.224192'",
        "'0000-12-31 23:59:59.999999'",
        "'0001-01-01 00:00:00'",
        "'9999-12-31 23:59:59.999'",
        "'9999-12-31 23:59:59.999999'",
        "'+10000-01-01 00:00:00'",
        "'+294247-01-10 04:00:54.775807'",
    ),
    "array<date>": ("array()", "array(date'0000-12-31', null, date'+10000-01-01')"),
    "map<int,timestamp_ntz>": ("map()", "map(1, timestamp_ntz'9999-12-31 23:59:59.999999')"),
    "struct<a:double,b:timestamp>": (
        "struct(double('NaN'), timestamp'+10000-01-01 00:00:00')",
        "struct(null, null)",
    ),
}
LONGEST = max(map(len, EXTREMES.values()))


def rows() -> str:
    """A column for each type: each partition has one value of each, and the last one all of them and NULL."""
    lines = [*range(LONGEST), *range(LONGEST)]
    places = [(number, number if place < LONGEST else LONGEST) for place, number in enumerate(lines)]
    cast = [
        ", ".join((*(f"CAST({some[at % len(some)]} AS {kind})" for kind, some in EXTREMES.items()), str(partition)))
        for at, partition in places
    ]
    nulls = ", ".join((*(f"CAST(NULL AS {kind})" for kind in EXTREMES), str(LONGEST)))
    names = ", ".join((*(f"c{number}" for number in range(len(EXTREMES))), "_partition"))
    return f"SELECT * FROM VALUES {', '.join(f'({line})' for line in (*cast, nulls))} AS t({names})"


def publish(hand: Stagehand) -> list[PartitionRecord]:
    frame, partitions = hand.spark.sql(rows()), tuple(range(LONGEST + 1))
    ensure_table(hand.location, frame.schema, hand.claim)
    staged = stage_frame(frame, WaveFiles(hand.location, hand.attempt_id, 1, partitions))
    measured = measure(hand.spark, staged, frame.schema, partitions)
    committed = tuple(
        CommittedPartition(record.partition, record.rows, record.fingerprint, "key", staged.files[record.partition])
        for record in measured
    )
    commit = WaveCommit("run", hand.location.stage, hand.attempt_id, hand.epoch, 1, committed, len(partitions))
    return records(hand.location, hand.committer.publish(hand.location, commit))


def exactly(frame: DataFrame) -> dict[str, list[tuple[object, ...]]]:
    """The values of each type, as text and as a hash, since neither tells all values apart; maps have no hash."""
    names = [f"c{number}" for number in range(len(EXTREMES))]
    values = {
        name: f"to_json(struct({name} AS it))" if kind.startswith("map") else name
        for name, kind in zip(names, EXTREMES, strict=True)
    }
    asked = [f"concat_ws(' ', md5(CAST({it} AS STRING)), xxhash64({it})) AS {name}" for name, it in values.items()]
    found = frame.selectExpr("_partition", *asked).collect()
    return {
        kind: sorted((row["_partition"], row[name]) for row in found)
        for name, kind in zip(names, EXTREMES, strict=True)
    }


def test_extremes_are_stored_and_read_back_from_the_table_and_by_partition(hand, spark):
    published, given = publish(hand), exactly(spark.sql(rows()))
    table = spark.read.format("delta").load(hand.location.uri)
    assert exactly(table) == given
    assert exactly(read_partitions(spark, published)) == given
    assert fingerprints(spark, published) == {record.partition: record.fingerprint for record in published}
