from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from stagehold.checkpoints.restore_sources import Origin, RestoreSource, choose, in_order, non_restored_allowed
from stagehold.errors import RestoreSourceUnusable

ORIGINS = {"own": Origin.OWN, "other": Origin.OTHER_RUN, "save": Origin.SAVEPOINT}


def sources(text):
    """ "origin@minute", with ``!`` for the one the user named."""
    found = []
    for part in text.split():
        origin, _, minute = part.rstrip("!").partition("@")
        taken_at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=int(minute))
        found.append(RestoreSource(ORIGINS[origin], int(minute), origin, taken_at, named=part.endswith("!")))
    return found


ORDERS = [
    ("own checkpoints, newest first", "own@1 own@3 own@2", "own@3 own@2 own@1"),
    ("own before newer ones of others", "other@9 own@1 save@8", "own@1 other@9 save@8"),
    ("other runs before newer savepoints", "save@9 other@1", "other@1 save@9"),
    ("the named one instead of all but the own", "other@9 save@2! save@8 own@1", "own@1 save@2"),
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

    choice = choose(sources("own@1 other@2 save@3"), verify)
    assert choice.source is not None
    assert choice.source.origin is Origin.OTHER_RUN
    assert [(str(source), why) for source, why in choice.passed_over] == [
        ("checkpoint of this run 1 (own)", "a file is gone")
    ]
    assert asked == ["own", "other"]


def test_without_any_source_the_run_starts_empty():
    assert choose([], lambda source: None).source is None
    assert choose(sources("own@1 other@2"), lambda source: "gone").source is None


def test_a_named_source_that_does_not_verify_is_an_error():
    with pytest.raises(RestoreSourceUnusable, match=r"savepoint 2 \(save\): a file is gone"):
        choose(sources("own@1 save@2!"), lambda source: "a file is gone")


def test_a_named_source_is_not_even_asked_when_the_run_has_its_own_checkpoint():
    assert (
        choose(sources("own@1 save@2!"), lambda source: None if source.origin is Origin.OWN else "gone").source
        == sources("own@1")[0]
    )


ALLOWED = [
    ("own", False, False, False),
    ("own", True, False, False),
    ("own", False, True, True),
    ("save", False, False, False),
    ("save", True, False, True),
    ("save", False, True, True),
    ("other", True, False, True),
]


@pytest.mark.parametrize(("origin", "flag", "failover", "allowed"), ALLOWED)
def test_state_may_be_left_behind(origin, flag, failover, allowed):
    assert non_restored_allowed(sources(f"{origin}@1")[0], flag=flag, failover=failover) is allowed
