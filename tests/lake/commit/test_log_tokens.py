"""Which attempts a table's log remembers, without anybody telling whom to look for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.lake.paper_table import PaperTable

from stagehold.lake.commit.staged_committer import StagedCommitter
from stagehold.lake.commit.tokens import newest_epoch, tokens_of
from stagehold.model.partition_set import Share

A = ("a", 1)


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.slow)])
def table(request: pytest.FixtureRequest) -> PaperTable:
    return PaperTable.published(str(request.getfixturevalue("s3_lake" if request.param == "s3" else "tmp_path")))


def test_a_table_that_is_not_there_remembers_nobody(tmp_path):
    assert tokens_of(str(tmp_path / "nowhere")) == {}


@pytest.mark.parametrize("checkpoint", [False, True])
def test_tokens_are_found_before_and_behind_a_checkpoint(table, checkpoint):
    tuesday = table.on("tuesday")
    tuesday.publish({0: [A]})
    replace(table, epoch=7).publish({0: [A]})
    if checkpoint:
        table.handle().create_checkpoint()
    replace(table, epoch=8, location=table.location.of(Share(2, 3))).publish({2: [A]})
    StagedCommitter().fence(tuesday.location, replace(tuesday, epoch=4).claim)
    found = tokens_of(table.location.uri)
    cell = table.location.cell
    assert newest_epoch(found, tuesday.location.cell) == 4
    assert newest_epoch(found, cell) == 8
    assert [newest_epoch(found, cell, share) for share in (Share(0, 1), Share(1, 2), None)] == [7, 8, 8]
    assert newest_epoch(found, f"{cell}1") == 0
