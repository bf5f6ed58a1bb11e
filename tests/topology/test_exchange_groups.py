from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagehold.spec.pipeline import Exchange
from stagehold.topology.exchange_groups import PATTERNS, all_to_all, pointwise

# producers, consumers -> partitions that each consumer reads
POINTWISE = [
    (3, 3, "0 1 2"),
    (4, 2, "01 23"),
    (5, 2, "01 234"),
    (7, 3, "01 23 456"),
    (2, 4, "0 0 1 1"),
    (2, 5, "0 0 0 1 1"),
    (3, 7, "0 0 0 1 1 2 2"),
    (1, 3, "0 0 0"),
    (3, 1, "012"),
]


@pytest.mark.parametrize(("producers", "consumers", "expected"), POINTWISE)
def test_pointwise_reads(producers, consumers, expected):
    read = {consumer: produced for produced, consumed in pointwise(producers, consumers) for consumer in consumed}
    assert [tuple(read[consumer]) for consumer in range(consumers)] == [
        tuple(map(int, text)) for text in expected.split()
    ]


def test_all_to_all_is_one_block_however_wide():
    assert list(all_to_all(100_000, 100_000)) == [(range(100_000), range(100_000))]


def test_only_forward_is_pointwise():
    assert {exchange for exchange in Exchange if PATTERNS[exchange] is pointwise} == {Exchange.FORWARD}


@given(st.integers(1, 60), st.integers(1, 60), st.sampled_from([pointwise, all_to_all]))
def test_blocks_cover_every_producer_and_every_consumer_once(producers, consumers, pattern):
    blocks = list(pattern(producers, consumers))
    assert [index for produced, _ in blocks for index in produced] == list(range(producers))
    assert [index for _, consumed in blocks for index in consumed] == list(range(consumers))


@given(st.integers(1, 60), st.integers(1, 60))
def test_pointwise_shares_differ_by_at_most_one(producers, consumers):
    sizes = {max(len(produced), len(consumed)) for produced, consumed in pointwise(producers, consumers)}
    assert max(sizes) - min(sizes) <= 1
