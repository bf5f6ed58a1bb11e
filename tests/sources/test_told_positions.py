"""What intervals of production have read, for a sandbox that opens no ledger but its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.ledger.blank import lay_blank_ledger
from tests.sources.made_sources import source_stage

from stagehold.chronicle.chronicle import LakeChronicle, facts_told
from stagehold.errors import PositionTaken
from stagehold.ledger import Ledger
from stagehold.model.records import Cell, TakenPosition
from stagehold.model.source_position import FilesRead, SourceFile
from stagehold.sources.attempt_sources import Listing, Sources
from stagehold.sources.source_files import find_files
from stagehold.sources.taken_positions import told_positions

PIPELINE, STAGE = "orders", "events"


@pytest.fixture
def lake(tmp_path):
    return str(tmp_path / "lake")


@pytest.fixture
def ledger(ledger_file, lake):
    with Ledger.open(f"sqlite:///{ledger_file}", chronicle=LakeChronicle(lake)) as opened:
        yield opened


def files(*names: str) -> FilesRead:
    return FilesRead(tuple(SourceFile(name, 1, "v") for name in names))


def told(lake: str) -> dict[str, tuple[str, object]]:
    return dict(told_positions(lake, PIPELINE, STAGE))


def test_each_interval_has_what_it_took_last(ledger, lake):
    ledger.positions.take(Cell(PIPELINE, STAGE, "monday"), "r1", lambda _: files("a"))
    ledger.positions.take(Cell(PIPELINE, STAGE, "tuesday"), "r2", lambda _: files("b"))
    ledger.positions.take_again(Cell(PIPELINE, STAGE, "monday"), "r3", lambda _: files("a", "c"))
    assert told(lake) == {"monday": ("r3", files("a", "c")), "tuesday": ("r2", files("b"))}


def test_other_stages_and_pipelines_do_not_count(ledger, lake):
    ledger.positions.take(Cell(PIPELINE, "other", "monday"), "r", lambda _: files("a"))
    ledger.positions.take(Cell("other", STAGE, "monday"), "r", lambda _: files("a"))
    assert told(lake) == {}


def test_what_is_told_later_is_known_as_well(ledger, lake):
    ledger.positions.take(Cell(PIPELINE, STAGE, "monday"), "r", lambda _: files("a"))
    assert told(lake).keys() == {"monday"}
    ledger.positions.take(Cell(PIPELINE, STAGE, "tuesday"), "r", lambda _: files("b"))
    assert told(lake).keys() == {"monday", "tuesday"}


def test_a_torn_file_is_passed_over(ledger, lake):
    ledger.positions.take(Cell(PIPELINE, STAGE, "monday"), "r", lambda _: files("a"))
    ledger.positions.take(Cell(PIPELINE, STAGE, "tuesday"), "r", lambda _: files("b"))
    first = min(Path(lake).rglob("*.jsonl"))
    first.write_bytes(first.read_bytes()[:-3])
    assert told(lake).keys() == {"tuesday"}


def test_a_lake_without_a_chronicle_tells_nothing(lake):
    assert told(lake) == {}


EVENTS = source_stage(STAGE, "jobs.x:events", kind="csv", path="${lake}/raw/*.csv", splits=1, incremental=True)


@pytest.fixture
def own(tmp_path):
    """The ledger of a sandbox."""
    file = lay_blank_ledger(tmp_path / "own.db")
    with Ledger.open(f"sqlite:///{file}", chronicle=LakeChronicle(str(tmp_path / "sandbox"))) as opened:
        yield opened


def arrive(lake: str, *names: str) -> FilesRead:
    (Path(lake) / "raw").mkdir(parents=True, exist_ok=True)
    for name in names:
        (Path(lake) / "raw" / f"{name}.csv").write_text("1")
    return FilesRead(tuple(one for one in find_files("${lake}/raw/*.csv", lake) if Path(one.path).stem in names))


def sources(own: Ledger, lake: str, interval: str, **more: Any) -> Sources:
    return Sources(
        PIPELINE, interval, "try", f"{lake}/../sandbox", own, stored_with={STAGE: (EVENTS,)}, production=lake, **more
    )


def test_an_interval_that_is_new_in_a_sandbox_takes_what_none_of_production_has(ledger, own, lake):
    first, second = arrive(lake, "1"), arrive(lake, "2")
    ledger.positions.take(Cell(PIPELINE, STAGE, "monday"), "r", lambda _: first)
    planned = sources(own, lake, "tuesday").of(EVENTS)
    assert [file.path for split in planned.splits for file in split.files] == [second.files[0].path]
    assert own.positions.taken(PIPELINE, STAGE) == {}, "a plan records nothing"
    attempt = sources(own, lake, "tuesday")
    assert attempt.take_back(EVENTS) == ("monday",)
    assert attempt.settle(EVENTS, Listing.OF_RUN) == second
    assert ledger.positions.taken(PIPELINE, STAGE) == {"monday": first}


def test_an_interval_reads_in_a_sandbox_what_it_reads_in_production(ledger, own, lake):
    first = arrive(lake, "1")
    ledger.positions.take(Cell(PIPELINE, STAGE, "monday"), "r", lambda _: first)
    arrive(lake, "2")
    attempt = sources(own, lake, "monday")
    attempt.take_back(EVENTS)
    assert attempt.settle(EVENTS, Listing.OF_RUN) is None
    assert attempt.taken_of(EVENTS).position == first


def test_what_another_interval_of_production_has_taken_is_not_restored(ledger, own, lake):
    first = arrive(lake, "1")
    ledger.positions.take(Cell(PIPELINE, STAGE, "monday"), "r", lambda _: first)
    attempt = sources(own, lake, "tuesday", restored={STAGE: (first, {})})
    attempt.take_back(EVENTS)
    with pytest.raises(PositionTaken, match="monday"):
        attempt.settle(EVENTS, Listing.OF_RUN)


def restored_elsewhere(own: Ledger, lake: str) -> tuple[list[FilesRead], Sources]:
    """Tuesday of another lake, where Monday had taken a file as well; both files lie here, and a newer one."""
    taken = [arrive(lake, name) for name in ("1", "2", "3")]
    restored = (taken[1], {"monday": ("theirs", taken[0])})
    attempt = Sources(
        PIPELINE, "tuesday", "back", lake, own, stored_with={STAGE: (EVENTS,)}, restored={STAGE: restored}
    )
    return taken, attempt


def test_what_others_had_taken_in_another_lake_is_not_taken_again(own, lake):
    taken, attempt = restored_elsewhere(own, lake)
    (planned,) = attempt.of(EVENTS).splits
    assert planned.files == taken[1].files
    assert own.positions.taken(PIPELINE, STAGE) == {}, "a plan records nothing"
    for _ in range(2):
        attempt.settle(EVENTS, Listing.OF_RUN)
        assert own.positions.taken(PIPELINE, STAGE) == {"monday": taken[0], "tuesday": taken[1]}
    following = Sources(PIPELINE, "wednesday", "next", lake, own, stored_with={STAGE: (EVENTS,)})
    assert following.settle(EVENTS, Listing.OF_RUN) == taken[2]


def test_what_an_interval_has_taken_here_stays(own, lake):
    taken, attempt = restored_elsewhere(own, lake)
    own.positions.take(Cell(PIPELINE, STAGE, "monday"), "r", lambda _: taken[2])
    attempt.settle(EVENTS, Listing.OF_RUN)
    assert own.positions.taken(PIPELINE, STAGE) == {"monday": taken[2], "tuesday": taken[1]}


def test_what_others_had_taken_elsewhere_and_another_has_here_is_refused(own, lake):
    taken, attempt = restored_elsewhere(own, lake)
    own.positions.take(Cell(PIPELINE, STAGE, "sunday"), "r", lambda _: taken[0])
    with pytest.raises(PositionTaken, match="sunday"):
        attempt.of(EVENTS)
    with pytest.raises(PositionTaken, match="sunday"):
        attempt.settle(EVENTS, Listing.OF_RUN)
    assert own.positions.taken(PIPELINE, STAGE) == {"sunday": taken[0]}, "nothing was changed"


def test_what_was_taken_later_is_not_told(ledger, lake):
    ledger.positions.take(Cell(PIPELINE, STAGE, "monday"), "r", lambda _: files("a"))
    (monday,) = facts_told(lake, TakenPosition)
    ledger.positions.take(Cell(PIPELINE, STAGE, "tuesday"), "r", lambda _: files("b"))
    until = told_positions(lake, PIPELINE, STAGE, until=monday.recorded_at)
    assert until.keys() == {"monday"}
