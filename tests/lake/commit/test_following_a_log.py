"""An attempt follows the log of a table in a bucket, and does not read it anew for each wave."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from deltalake.exceptions import TableNotFoundError
from tests.lake.paper_table import PaperTable
from tests.lake.slow_store import Proxy, counted_store

from stagehold.errors import Fenced
from stagehold.lake.commit.delta_log import LOG_FOLDER
from stagehold.lake.store import files
from stagehold.lake.store.files import files_at

pytestmark = pytest.mark.slow

A, B = ("a", 1), ("b", 2)
CALLS = 10  # five of a commit by delta-rs, and one for cleaning up; three to follow the log, and one to read back


@pytest.fixture
def store(s3_lake: str, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    with counted_store(s3_endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.address)
        files._s3.cache_clear()
        yield proxy


@pytest.fixture
def table(store: Proxy, s3_lake: str) -> PaperTable:
    return PaperTable.published(s3_lake)


def calls_to_publish(table: PaperTable, store: Proxy, number: int) -> int:
    wave = table.wave({number: [A]}, number)
    before = len([path for _, path in store.calls if LOG_FOLDER in path])
    table.committer.publish(table.location, wave)
    return len([path for _, path in store.calls if LOG_FOLDER in path]) - before


def test_a_wave_costs_as_many_calls_to_the_log_however_many_were_before(table, store):
    calls = [calls_to_publish(table, store, number) for number in range(1, 9)]
    assert calls[1:] == [CALLS] * 7
    assert len(table.seen()) == 8


def test_what_others_commit_between_two_waves_is_seen(table, store):
    other = table.on("2026-11-21")
    table.publish({0: [A]}, 1)
    other.publish({0: [A], 1: [A]}, 1)
    table.publish({0: [B], 1: [B]}, 2)
    other.publish({1: [B]}, 2)
    assert [record.version for record in table.publish({2: [A]}, 3)] == [5]
    day, next_day = table.location.interval, other.location.interval
    assert table.seen() == [(day, 0, *B), (day, 1, *B), (day, 2, *A), (next_day, 0, *A), (next_day, 1, *B)]


def test_who_was_fenced_between_two_waves_publishes_nothing(table, store):
    table.publish({0: [A]}, 1)
    newer = table.next_epoch()
    newer.committer.fence(newer.location, newer.claim)
    version = table.version
    with pytest.raises(Fenced):
        table.publish({0: [B]}, 2)
    assert table.version == version


def test_who_was_fenced_and_comes_back_with_a_later_epoch_publishes_again(table, store):
    table.publish({0: [A]}, 1)
    newer = table.next_epoch()
    newer.publish({0: [B]}, 1)
    newest = replace(newer, epoch=3)
    newest.publish({1: [B]}, 1)
    assert [row[1:] for row in table.seen()] == [(0, *B), (1, *B)]


@pytest.mark.parametrize("left", [0, 2], ids=["all of it", "its newest commits"])
def test_nothing_is_committed_behind_a_log_that_was_deleted(table, store, left):
    for number in (1, 2, 3):
        table.publish({number: [A]}, number)
    log = files_at(table.location.uri)
    log.remove([path for path in sorted(log.sizes(LOG_FOLDER))[left:]])
    wave = table.wave({4: [A]}, 4)
    if left:
        assert table.committer.publish(table.location, wave).version == left
    else:
        with pytest.raises(TableNotFoundError):
            table.committer.publish(table.location, wave)
        assert not log.sizes(LOG_FOLDER)
