"""What Spark's own statements do to a published table is told apart: removed, changed, or only moved to other files."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.lake.stagehand import Stagehand

from stagehold.lake.commit.committer import committer_for
from stagehold.lake.published import Absences, absences
from stagehold.lake.store.location import spark_uri
from stagehold.model.records import PartitionRecord
from stagehold.spec.settings.output_settings import CommitterKind

pytestmark = pytest.mark.spark

A, B, C, D = ("a", 1), ("b", 2), ("c", 3), ("d", 4)


# each committer and each place once
@pytest.fixture(params=[("delta_spark", "folder"), ("staged", "s3")], ids="-".join)
def table(request: pytest.FixtureRequest, shared: Stagehand) -> Stagehand:
    kind, place = request.param
    if place == "s3":
        shared = shared.at(location=replace(shared.location, uri=f"{request.getfixturevalue('lake_in_s3')}/top"))
    return shared.at(
        committer=committer_for(CommitterKind(kind), shared.spark, shared.location, only_writer=True)
    ).prepare()


def told(recorded: list[PartitionRecord]) -> dict[int, tuple[int | None, str | None]]:
    found = absences(recorded)
    assert not found.lost
    assert all((change.who or "").startswith("Apache-Spark/") for change in found.removed.values())
    return {partition: (change.version, change.operation) for partition, change in found.removed.items()}


def test_every_statement_is_told_for_what_it_is(table):
    """One RESTORE for all: Spark takes a minute for it on a busy machine."""
    name = f"delta.`{spark_uri(table.location.uri)}`"
    recorded, version = table.publish({0: [A], 1: [B, A], 2: [C], 3: [D], 4: []}), table.version
    expected: dict[int, tuple[int, str]] = {}
    assert told(recorded) == expected
    for statement, operation, partition in (
        (f"DELETE FROM {name} WHERE name = 'a' AND _partition = 0", "DELETE", 0),
        (f"UPDATE {name} SET amount = 7 WHERE name = 'b'", "UPDATE", 1),
        (f"MERGE INTO {name} t USING (SELECT 'c' AS name) s ON t.name = s.name WHEN MATCHED THEN DELETE", "MERGE", 2),
    ):
        table.spark.sql(statement).collect()
        expected[partition] = (table.version, operation)
        assert told(recorded) == expected
    table.spark.sql(f"RESTORE TABLE {name} TO VERSION AS OF {version}").collect()
    assert told(recorded) == {}
    table.spark.sql(f"INSERT OVERWRITE {name} SELECT * FROM {name} WHERE name = 'd'").collect()
    assert told(recorded) == dict.fromkeys(range(4), (table.version, "WRITE"))


def test_what_spark_only_moved_is_there_and_not_doubled_by_the_next_wave(table):
    name = f"delta.`{spark_uri(table.location.uri)}`"
    recorded = table.publish({0: [A, B], 1: [C], 2: []})
    table.spark.sql(f"INSERT INTO {name} SELECT * FROM {name} WHERE _partition = 0").collect()
    table.spark.sql(f"OPTIMIZE {name}").collect()
    assert absences(recorded) == Absences()
    assert not {file.path for file in recorded[0].files} & {
        uri.partition("/top/")[2] for uri in table.handle().file_uris()
    }
    assert table.read(recorded) == [(0, *A), (0, *B), (1, *C)]
    table.at(epoch=2).prepare().publish({0: [A, B]})
    assert table.seen_by_anybody() == [(0, *A), (0, *B), (1, *C)]
