"""Real processes that commit to one table at the same moment."""

from __future__ import annotations

from pathlib import Path

from tests.lake.paper_table import PaperTable
from tests.lake.racers import WAVES, race

from stagehold.lake.commit import committed


def test_of_two_attempts_that_race_the_newer_wins_and_no_row_is_lost_or_twice(tmp_path: Path) -> None:
    older = PaperTable.own(str(tmp_path))
    newer = older.next_epoch()
    said = race(older, newer)
    assert len([answer for answer in said[newer] if answer.startswith("published")]) == WAVES
    seen = [row[1:] for row in older.seen()]
    assert [row for row in seen if row[0] == 0] == [(0, newer.attempt_id, WAVES)]
    assert [row[0] for row in seen if row[0] != 0] == list(range(1, WAVES + 1))


def test_intervals_that_race_for_one_published_table_all_get_in(tmp_path: Path) -> None:
    first = PaperTable.published(str(tmp_path))
    intervals = [first.on(f"2026-11-{day}") for day in (20, 21, 22)]
    said = race(*intervals)
    versions = [answer for answers in said.values() for answer in answers]
    assert len(set(versions)) == len(versions) == WAVES * len(intervals)
    for interval in intervals:
        rows = [row[1:] for row in first.seen() if row[0] == interval.location.interval]
        assert rows[0] == (0, interval.attempt_id, WAVES)
        assert [row[0] for row in rows[1:]] == list(range(1, WAVES + 1))
        assert [one.partition for _, wave in committed(interval.location) for one in wave.partitions][-2:] == [0, WAVES]
