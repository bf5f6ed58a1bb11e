"""What Spark's own statements do to a published table is told apart: removed, changed, or only moved to other files."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.lake.stagehand import Stagehand

from stagehold.lake.committer import committer_for
from stagehold.lake.location import spark_uri
from stagehold.lake.published import Absences, absences
from stagehold.model.spec import CommitterKind

pytestmark = pytest.mark.spark

A, B, C = ("a", 1), ("b", 2), ("c", 3)


@pytest.fixture(params=[("staged", "folder"), ("delta_spark", "folder"), ("staged", "s3")], ids="-".join)
def table(request: pytest.FixtureRequest, shared: Stagehand) -> Stagehand:
    kind, place = request.param
    if place == "s3":
        shared = shared.at(location=replace(shared.location, uri=f"{request.getfixturevalue('lake_in_s3')}/top"))
    return shared.at(committer=committer_for(CommitterKind(kind), shared.spark, shared.location, only_writer=True)).prepare()


def test_every_statement_is_told_for_what_it_is(table):
    name = f"delta.`{spark_uri(table.location.uri)}`"
    recorded, version = table.publish({0: [A, B], 1: [C], 2: []}), table.version
    assert absences(recorded) == Absences()
    for statement, operation, hit in (
        (f"DELETE FROM {name} WHERE amount = 1", "DELETE", {0}),
        (f"UPDATE {name} SET amount = 7 WHERE name = 'c'", "UPDATE", {1}),
        (f"MERGE INTO {name} t USING (SELECT 'b' AS name) s ON t.name = s.name WHEN MATCHED THEN DELETE", "MERGE", {0}),
        (f"RESTORE TABLE {name} TO VERSION AS OF 0", "RESTORE", {0, 1}),
        (f"INSERT OVERWRITE {name} SELECT * FROM {name} WHERE amount = 3", "WRITE", {0, 1}),
        (f"DELETE FROM {name}", "DELETE", {0, 1}),
    ):
        table.spark.sql(statement).collect()
        found = absences(recorded)
        assert {partition: (one.version, one.operation) for partition, one in found.removed.items()} == dict.fromkeys(
            hit, (table.version, operation)
        )
        assert all((one.who or "").startswith("Apache-Spark/") for one in found.removed.values())
        assert not found.lost
        table.spark.sql(f"RESTORE TABLE {name} TO VERSION AS OF {version}").collect()
        assert absences(recorded) == Absences(), operation


def test_what_spark_only_moved_is_there_and_not_doubled_by_the_next_wave(table):
    name = f"delta.`{spark_uri(table.location.uri)}`"
    recorded = table.publish({0: [A, B], 1: [C], 2: []})
    table.spark.sql(f"INSERT INTO {name} SELECT * FROM {name} WHERE _partition = 0").collect()
    table.spark.sql(f"OPTIMIZE {name}").collect()
    assert absences(recorded) == Absences()
    assert not {file.path for file in recorded[0].files} & {uri.partition("/top/")[2] for uri in table.handle().file_uris()}
    assert table.read(recorded) == [(0, *A), (0, *B), (1, *C)]
    table.at(epoch=2).prepare().publish({0: [A, B]})
    assert table.seen_by_anybody() == [(0, *A), (0, *B), (1, *C)]
