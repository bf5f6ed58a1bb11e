"""What a ledger that was lost can learn from the tables about what intervals have read, and when it cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.lake.paper_table import PaperTable, lose_commits
from tests.sources.made_sources import source_stage

from stagehold.errors import LedgerBehind
from stagehold.lake.commit.staged_committer import StagedCommitter
from stagehold.lake.store.location import table_location
from stagehold.ledger.ledger import Ledger
from stagehold.model.source_position import FilesRead, Position, SourceFile, SourcePosition, VersionsRead
from stagehold.plan.split.regions import sources_within, stored_with
from stagehold.sources.attempt_sources import Sources
from stagehold.sources.taken_positions import unknown_positions
from stagehold.spec.pipeline import Exchange, Input, Output, OutputType, Pipeline, Stage

A = ("a", 1)
PUBLISHED = Output(type=OutputType.BLOCKING_PERSISTENT, table="marts.top")
FUSED = Output(type=OutputType.PIPELINED)


def source(output: Output) -> Stage:
    read = source_stage("events", "jobs.x:events", path="${lake}/raw/*", splits=1, incremental=True)
    return read.model_copy(update={"output": output})


def reader(name: str, *inputs: str, output: Output) -> Stage:
    edges = tuple(Input(stage=one, exchange=Exchange.FORWARD) for one in inputs)
    return Stage(name=name, job=f"jobs.x:{name}", inputs=edges, partitions=1, max_parallelism=128, output=output)


def files(*names: str) -> FilesRead:
    return FilesRead(tuple(SourceFile(name, 1, "then") for name in names))


MONDAY, TUESDAY = files("1", "2"), VersionsRead(None, 3)


@pytest.fixture(params=["published", "own", pytest.param("own in s3", marks=pytest.mark.slow)])
def stage(request: pytest.FixtureRequest) -> Stage:
    return source(PUBLISHED if request.param == "published" else Output())


@pytest.fixture
def lake(request: pytest.FixtureRequest, stage: Stage, tmp_path: Path) -> str:
    in_bucket = "s3" in request.node.callspec.id
    return str(request.getfixturevalue("s3_lake")) if in_bucket else str(tmp_path)


Begin = Callable[[str], PaperTable]


@pytest.fixture
def begin(lake: str, stage: Stage) -> Begin:
    def begin_interval(interval: str) -> PaperTable:
        table = PaperTable(table_location(lake, "p", stage, interval))
        return table if Path(table.location.uri).exists() else table.create()

    return begin_interval


def publish(table: PaperTable, position: Position, number: int = 1) -> None:
    commit = replace(table.wave({0: [A]}, number), positions=(SourcePosition("events", position),))
    StagedCommitter().publish(table.location, commit)


def told(lake: str, stage: Stage, *known: str) -> dict[str, Position]:
    return {interval: position for interval, (_, position) in unknown_positions(lake, "p", stage, stage, known).items()}


def test_nothing_is_told_by_tables_that_are_not_there(lake, stage):
    assert told(lake, stage) == {}


def test_intervals_that_published_are_told_with_what_they_took(lake, stage, begin):
    publish(begin("2026-11-20T02:00:00+00:00"), MONDAY)
    publish(begin("tuesday"), TUESDAY)
    assert told(lake, stage) == {"2026-11-20T02:00:00+00:00": MONDAY, "tuesday": TUESDAY}
    assert told(lake, stage, "tuesday") == {"2026-11-20T02:00:00+00:00": MONDAY}


def test_a_ledger_that_knows_every_interval_costs_no_look_at_commits(lake, stage, begin):
    table = begin("monday")
    publish(table, MONDAY)
    lose_commits(table)
    assert told(lake, stage, "monday") == {}


def test_what_an_interval_took_and_never_published_is_free_again(lake, stage, begin):
    table = begin("monday")
    StagedCommitter().fence(table.location, table.claim)
    assert told(lake, stage) == {}


def test_rows_whose_commits_are_no_longer_in_the_log_are_refused(tmp_path, stage, lake, begin):
    if lake != str(tmp_path):
        return  # files are lost by path here
    table = begin("monday")
    publish(table, MONDAY)
    publish(table, MONDAY, 2)
    StagedCommitter().fence(replace(table, epoch=2).location, replace(table, epoch=2).claim)
    table.handle().create_checkpoint()
    for version in range(table.version):
        Path(table.location.uri, "_delta_log", f"{version:020d}.json").unlink()
    with pytest.raises(
        LedgerBehind, match=r"does not know what monday read of source stage events.*begins with " r"version 3"
    ):
        told(lake, stage)
    assert told(lake, stage, "monday") == {}


def test_an_attempt_takes_back_what_the_ledger_lacks(tmp_path, lake, stage, begin):
    publish(begin("monday"), MONDAY)
    publish(begin("tuesday"), files("3"))
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
        sources = Sources("p", "wednesday", "r", lake, ledger, stored_with={"events": (stage,)})
        assert sorted(sources.take_back(stage)) == ["monday", "tuesday"]
        assert sources.take_back(stage) == ()
        assert ledger.positions.taken("p", "events") == {"monday": MONDAY, "tuesday": files("3")}


def test_what_is_fused_into_a_stage_is_told_by_the_stages_that_are_stored():
    events, cleaned = source(FUSED), reader("cleaned", "events", output=FUSED)
    top, other = reader("top", "cleaned", output=PUBLISHED), reader("other", "events", output=Output())
    last = reader("last", "top", "other", output=Output())
    pipeline = Pipeline(name="p", file="p.yaml", stages=(events, cleaned, top, other, last))
    assert stored_with(events, pipeline) == (top, other)
    assert sources_within(top, pipeline) == sources_within(other, pipeline) == (events,)
    assert sources_within(last, pipeline) == ()
