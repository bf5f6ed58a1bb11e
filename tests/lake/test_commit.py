"""The commit protocol: what readers see, and which of several attempts may change it."""

from __future__ import annotations

import pytest

from stagehold.errors import Fenced
from stagehold.lake.commit import committed, fence, publish

pytestmark = pytest.mark.spark

A, B, C = ("a", 1), ("b", 2), ("c", 3)


def test_a_published_wave_is_read_back_by_spark_and_by_any_other_reader(hand):
    records = hand.prepare().publish({0: [A, B], 1: [C]})
    assert hand.read(records) == [(0, *A), (0, *B), (1, *C)]
    assert hand.seen_by_anybody() == [(0, *A), (0, *B), (1, *C)]


def test_nothing_is_visible_before_the_commit(hand):
    hand.prepare().wave({0: [A]})
    assert hand.seen_by_anybody() == []
    assert committed(hand.location) == ()


def test_a_wave_replaces_just_its_own_partitions(hand):
    first = hand.prepare().publish({0: [A], 1: [B]})
    second = hand.at(epoch=2).prepare().publish({1: [C]})
    assert hand.seen_by_anybody() == [(0, *A), (1, *C)]
    assert hand.read([first[0], second[0]]) == [(0, *A), (1, *C)]
    assert hand.read(first) == [(0, *A), (1, *B)]


def test_an_attempt_that_was_fenced_cannot_publish(hand):
    late = hand.prepare().wave({0: [A]})
    fence(hand.location, 2)
    version = hand.version
    with pytest.raises(Fenced, match=r"epoch 1 .* fenced by epoch 2"):
        publish(hand.location, late)
    with pytest.raises(Fenced):
        fence(hand.location, 1)
    assert (hand.version, hand.seen_by_anybody()) == (version, [])
