from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from stagehold.checkpoints.restore_sources import Origin, RestoreSource, choose, in_order

ORIGINS = {"own": Origin.OWN, "other": Origin.OTHER_RUN, "save": Origin.SAVEPOINT}


def sources(text):
    """From "origin@minute"."""
    found = []
    for part in text.split():
        origin, _, minute = part.partition("@")
        taken_at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=int(minute))
        found.append(RestoreSource(ORIGINS[origin], int(minute), origin, taken_at))
    return found


ORDERS = [
    ("own checkpoints, newest first", "own@1 own@3 own@2", "own@3 own@2 own@1"),
    ("own before newer ones of others", "other@9 own@1 save@8", "own@1 other@9 save@8"),
    ("other runs before newer savepoints", "save@9 other@1", "other@1 save@9"),
    ("nothing", "", ""),
]


@pytest.mark.parametrize(("given", "ordered"), [row[1:] for row in ORDERS], ids=[row[0] for row in ORDERS])
def test_order_of_preference(given, ordered):
    assert [f"{source.run_id}@{source.checkpoint}" for source in in_order(sources(given))] == ordered.split()


def test_the_first_source_that_verifies_wins_and_no_later_one_is_asked():
    asked = []

    def verify(source):
        asked.append(source.run_id)
        return "a file is gone" if source.origin is Origin.OWN else None

    source, passed_over = choose(sources("own@1 other@2 save@3"), verify)
    assert source is not None
    assert source.origin is Origin.OTHER_RUN
    assert [(str(other), why) for other, why in passed_over] == [("checkpoint of this run 1 (own)", "a file is gone")]
    assert asked == ["own", "other"]


def test_without_any_source_there_is_none():
    assert choose([], lambda source: None) == (None, ())
    assert choose(sources("own@1 other@2"), lambda source: "gone")[0] is None
