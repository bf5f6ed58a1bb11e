"""Real processes that commit to one table at the same moment."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.lake.commit.racers import WAVES, race
from tests.lake.paper_table import PaperTable
from tests.lake.slow_store import Trouble, counted_store, slow_store

from stagehold.lake.commit.committed_waves import committed
from stagehold.lake.commit.staged_committer import StagedCommitter
from stagehold.lake.store import files

pytestmark = pytest.mark.slow

BURST = 6  # seconds, of the minute that calls are tried for


def test_of_two_attempts_that_race_the_newer_wins_and_no_row_is_lost_or_twice(tmp_path: Path) -> None:
    older = PaperTable.own(str(tmp_path))
    newer = older.next_epoch()
    said = race(older, newer)
    assert len([answer for answer in said[newer] if answer.startswith("published")]) == WAVES
    seen = [row[1:] for row in older.seen()]
    assert [row for row in seen if row[0] == 0] == [(0, newer.attempt_id, WAVES)]
    assert [row[0] for row in seen if row[0] != 0] == list(range(1, WAVES + 1))


@pytest.mark.parametrize(("place", "waves"), [("tmp_path", WAVES), ("s3_lake", 2)])
def test_intervals_that_race_for_one_published_table_all_get_in(
    place: str, waves: int, request: pytest.FixtureRequest
) -> None:
    first = PaperTable.published(str(request.getfixturevalue(place)))
    intervals = [first.on(f"2026-11-{day}") for day in (20, 21, 22, 23)]
    said = race(*intervals, waves=waves)
    assert_nothing_lost(first, said, waves)


def test_two_drivers_whose_commits_overlap_in_a_slow_store_lose_nothing(
    s3_lake: str, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log's PUT takes half a second, in which delta-spark's commits overwrite each other; ours are conditional."""
    first = PaperTable.published(s3_lake)
    with slow_store(s3_endpoint, 0.5) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        said = race(first, first.on("2026-11-21"), waves=3)
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_endpoint)
    assert_nothing_lost(first, said, 3)


@pytest.mark.parametrize("trouble", Trouble)
def test_a_wave_that_is_published_in_a_burst_of_trouble_is_there_once(
    trouble: Trouble, s3_lake: str, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = PaperTable.published(s3_lake)
    with counted_store(s3_endpoint) as proxy, ThreadPoolExecutor() as beside:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.address)
        files._s3.cache_clear()
        wave, hit = table.wave({0: [("a", 1)]}), beside.submit(proxy.burst, trouble, BURST)
        landed = StagedCommitter().publish(table.location, wave)
        assert hit.result()
        assert [row[1:] for row in table.seen()] == [(0, "a", 1)]
        assert [version for version, _ in committed(table.location)] == [landed.version]


def assert_nothing_lost(table: PaperTable, said: dict[PaperTable, list[str]], waves: int) -> None:
    """Every commit that was said to have landed is there under a version of its own, with all its rows."""
    versions = [answer for answers in said.values() for answer in answers]
    assert len(set(versions)) == len(versions) == waves * len(said)
    for interval in said:
        rows = [row[1:] for row in table.seen() if row[0] == interval.location.interval]
        assert rows[0] == (0, interval.attempt_id, waves)
        assert [row[0] for row in rows[1:]] == list(range(1, waves + 1))
        assert [partition.partition for _, wave in committed(interval.location) for partition in wave.partitions][
            -2:
        ] == [0, waves]
