from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagehold.model.records import Attempt, AttemptState
from stagehold.plan.waves.sizing import (
    FAST_GROWTH,
    GROWTH,
    LONGEST,
    SHORTEST,
    TASK_BYTES,
    TASK_SECONDS_IN_A_BUCKET,
    AdaptiveInterval,
    DeclaredInterval,
    WaveCost,
    WaveSizer,
    adaptive_interval,
)

SIZER = WaveSizer(DeclaredInterval(10), slots=4)


def known(seconds, size=0.0):
    return None if seconds is None else WaveCost(0.0, seconds, size)


@pytest.mark.parametrize(
    ("seconds", "remaining", "expected"),
    [
        (None, 100, 4),  # nothing is known: as small as is not wasteful
        (None, 3, 3),
        (None, 0, 0),
        (0.1, 100, 100),  # shorter than the interval: one wave
        (0.124, 100, 100),  # a little longer than the interval is no reason for a second commit
        (0.2, 100, 50),  # two waves of the interval's length
        (0.21, 100, 50),
        (0.3, 100, 34),  # three equal waves rather than two long ones and a short one
        (100.0, 100, 4),  # never below the slots
        (0.1, 0, 0),
    ],
)
def test_the_first_wave_is_small_unless_the_stage_was_timed_before(seconds, remaining, expected):
    assert replace(SIZER, known=known(seconds)).first(remaining)[0] == expected


@pytest.mark.parametrize(
    ("size", "seconds", "before", "remaining", "expected"),
    [
        (4, 10.0, None, 100, 4),  # just right
        (4, 5.0, None, 100, 8),  # half as long as wanted: twice as many
        (4, 2.0, None, 100, 10),  # a fifth as long: as many as take half of what is wanted
        (4, 0.1, None, 1000, 32),  # and no more than eight times as many
        (4, 1.0, None, 20, 20),  # all that remains fits, even if it should take twice as long
        (4, 1.0, None, 21, 20),
        (4, 0.1, None, 200, 200),
        (4, 1.0, 0.25, 60, 30),  # as earlier runs were as quick, two waves do
        (4, 1.0, 5.0, 60, 20),  # earlier runs were slower: as if there were none
        (16, 20.0, None, 100, 8),  # too long: shrinks at once
        (16, 20.0, 0.1, 100, 8),  # whatever earlier runs took
        (16, 1000.0, None, 100, 4),  # never below the slots
        (16, 10.0, None, 5, 5),  # never more than there are
        (4, 0.0, None, 100, 100),
        (4, 1.0, None, 0, 0),
    ],
)
def test_the_next_wave_aims_at_the_interval(size, seconds, before, remaining, expected):
    assert replace(SIZER, known=known(before)).following(remaining, [(size, seconds, 0.0)], 0.1)[0] == expected


def test_what_cannot_be_divided_is_one_wave():
    assert replace(SIZER, known=known(100.0), undivided=True).first(1000)[0] == 1000


def test_the_reason_says_what_was_known():
    assert "not been timed" in SIZER.first(100)[1]
    assert replace(SIZER, known=known(0.2)).first(100)[1] == "about 10.0 s of wanted 10.0 s (as declared)"


def test_an_adaptive_interval_follows_the_measured_commit():
    sizer = WaveSizer(AdaptiveInterval(0, 0.0), slots=4, known=known(1.0))
    assert sizer.first(10_000)[0] == 417  # sqrt(2 * 1 s * 24 h) is 416 s, which 24 equal waves come close to
    assert sizer.following(10_000, [(100, 100.0, 0.0)], 0.01)[0] < 100


SECONDS = st.floats(0, 1e6)
SIZERS = st.builds(
    WaveSizer,
    interval=st.one_of(
        st.builds(DeclaredInterval, st.floats(0.001, 1e6)),
        st.builds(AdaptiveInterval, st.integers(0, 100), SECONDS),
    ),
    slots=st.integers(1, 100),
    known=st.one_of(st.none(), st.builds(WaveCost, SECONDS, st.floats(0, 1e6), st.floats(0, 1e12))),
)


WAVES = st.lists(st.tuples(st.integers(1, 100_000), SECONDS, st.floats(0, 1e12)), min_size=1, max_size=8)


@given(sizer=SIZERS, remaining=st.integers(1, 100_000), waves=WAVES, commit=SECONDS)
def test_a_wave_is_never_empty_and_never_more_than_remain(sizer, remaining, waves, commit):
    assert 1 <= sizer.first(remaining)[0] <= remaining
    assert 1 <= sizer.following(remaining, waves, commit)[0] <= remaining


@given(sizer=SIZERS, remaining=st.integers(1, 100_000), size=st.integers(1, 100_000), seconds=SECONDS)
def test_without_history_waves_grow_slowly_unless_the_rest_fits_with_ease(sizer, remaining, size, seconds):
    following = replace(sizer, known=None).following(remaining, [(size, seconds, 0.0)], 0.1)[0]
    fits = max(seconds, 0.001) / size * following * GROWTH <= sizer.interval.seconds(0.1) * 1.001
    assert following <= max(GROWTH * size, sizer.slots) or fits
    assert following <= max(FAST_GROWTH * size, sizer.slots) or following == remaining


@given(sizer=SIZERS, waves=WAVES)
def test_whatever_waves_took_the_next_is_at_most_so_many_times_the_last(sizer, waves):
    following = replace(sizer, known=None).following(10**9, waves, 0.1)[0]
    assert following <= max(FAST_GROWTH * waves[-1][0], sizer.slots)


@given(waves=WAVES)
def test_a_cost_explains_the_last_wave(waves):
    cost, (partitions, seconds, _) = WaveCost.of(waves), waves[-1]
    assert cost.fixed >= 0
    assert cost.each > 0
    assert cost.fixed + partitions * cost.each == pytest.approx(max(seconds, 0.001))


@pytest.mark.parametrize(
    ("waves", "fixed", "each"),
    [
        ([(4, 8.0)], 0.0, 2.0),  # of one wave nobody can tell
        ([(8, 9.0), (8, 8.0)], 0.0, 1.0),  # nor of several that are alike
        ([(80, 50.0), (100, 60.0)], 0.0, 0.6),  # or nearly so, whatever they say
        ([(4, 5.4), (8, 5.8)], 2.9, 0.3625),  # another size: a partition costs at least half of the average
        ([(4, 5.4), (8, 5.8), (32, 8.2)], 5.0, 0.1),  # two of them: at least a quarter
        ([(4, 9.0), (8, 8.0), (16, 16.0)], 4.6, 0.71),  # a slow start looks like a fixed cost
        ([(4, 12.0), (8, 6.0), (16, 7.0), (32, 9.0), (64, 13.0)], 5.0, 0.125),  # and is forgotten
        ([(32, 9.0), (64, 13.0), (8, 6.0)], 5.0, 0.125),  # larger ones tell as much
        ([(4, 1.0), (8, 4.0)], 0.0, 0.5),  # more than it should: nothing is cheaper than for nothing
        ([(4, 0.0), (8, 0.0)], 0.0, 0.001 / 8),
        ([(4, 40.0), (64, 10.0)], 5.0, 10 / 128),  # larger and quicker
    ],
)
def test_waves_of_unlike_sizes_tell_what_is_fixed(waves, fixed, each):
    cost = WaveCost.of([(partitions, seconds, 100.0 * partitions) for partitions, seconds in waves])
    assert (cost.fixed, cost.each, cost.bytes) == pytest.approx((fixed, each, 100.0), rel=0.02, abs=0.05)


def simulated(sizer, total, fixed, each, commit=0.1):
    """Sizes and lengths of the waves of a stage that takes just so long."""
    waves, remaining, size = [], total, sizer.first(total)[0]
    while remaining:
        waves.append((size, fixed + size * each, 0.0))
        remaining -= size
        size = sizer.following(remaining, waves, commit)[0]
    return waves


THIRTY = WaveSizer(DeclaredInterval(30), slots=4)


@pytest.mark.parametrize(
    ("total", "fixed", "each", "most"),
    [
        (16, 5.0, 1.0, 3),  # sizes of 4, 8 and what is left
        (256, 5.0, 0.04, 4),
        (1024, 5.0, 0.01, 5),  # 5 s for each, and 15 s of work
        (4096, 5.0, 0.01, 7),
        (1024, 0.0, 0.01, 4),
        (1000, 0.2, 1.0, 37),  # 34 of the length that is wanted
        (400, 20.0, 0.3, 16),  # 12
    ],
)
def test_a_fixed_cost_is_paid_a_few_times_only_and_no_wave_is_much_too_long(total, fixed, each, most):
    waves = simulated(THIRTY, total, fixed, each)
    assert len(waves) <= most
    assert max(seconds for _, seconds, _ in waves) <= 30 * 1.25
    again = simulated(replace(THIRTY, known=WaveCost.of(waves)), total, fixed, each)
    assert len(again) == pytest.approx(max(1, (total * each - 7.5) / (30 - fixed)), abs=1)


def test_where_a_wave_costs_more_than_is_wanted_however_small_all_are_as_small_as_is_not_wasteful():
    assert {size for size, _, _ in simulated(THIRTY, 40, 40.0, 0.3)} == {4}


def test_an_adaptive_interval_weighs_what_one_more_wave_costs():
    waves = [(8, 5.8, 0.0), (64, 11.4, 0.0), (128, 17.8, 0.0)]
    reason = WaveSizer(AdaptiveInterval(0, 0.0), slots=4).following(10_000, waves, 0.2)[1]
    assert "one more wave costs 5.00 s (measured)" in reason
    assert "5.0 s of it however few there are" in reason


@given(sizer=SIZERS, total=st.integers(1, 2000), fixed=st.floats(0, 100), each=st.floats(0, 100))
def test_waves_come_to_an_end(sizer, total, fixed, each):
    assert len(simulated(sizer, total, fixed, each)) <= total


MEGABYTE = 2**20


@pytest.mark.parametrize(
    ("recorded", "cost", "expected"),
    [
        ({}, WaveCost(0.0, 0.01, 0), ()),
        (dict.fromkeys(range(6)), None, range(6)),  # nothing is known: a task each
        (
            dict.fromkeys(range(6)),
            WaveCost(0.0, 10.0, 0),
            range(6),
        ),  # slow ones: little is lost with a task
        (dict.fromkeys(range(6)), WaveCost(0.0, 0.0, TASK_BYTES), range(6)),  # large ones
        (dict.fromkeys(range(100)), WaveCost(0.0, 0.001, 100), (0, 25, 50, 75)),  # small ones: all cores are busy
        (dict.fromkeys(range(16)), WaveCost(0.0, 0.0, TASK_BYTES / 2 - 65536), range(0, 16, 2)),
        (dict.fromkeys(range(100)), WaveCost(0.0, 0.1, 0), range(0, 100, 5)),  # 10 s of two cores, in tasks of a second
        (dict.fromkeys([70, 3, 9, 1]), WaveCost(0.0, 0.0, 0), (1, 3, 9, 70)),
        ({**dict.fromkeys(range(8), MEGABYTE), 3: 200 * MEGABYTE}, WaveCost(0.0, 0.0, 0), (0, 3, 4)),  # a skewed one
        (dict.fromkeys(range(8), 0), WaveCost(0.0, 0.0, MEGABYTE), (0, 2, 4, 6)),  # empty ones
    ],
)
def test_small_partitions_share_a_task(recorded, cost, expected):
    assert SIZER.task_starts(recorded, cost) == tuple(expected)


def test_the_pace_of_earlier_runs_counts_until_a_wave_has_ended():
    recorded = dict.fromkeys(range(100))
    assert len(replace(SIZER, known=WaveCost(0.0, 0.001, 1)).task_starts(recorded, None)) == 4
    assert len(replace(SIZER, known=WaveCost(0.0, 0.001, 1)).task_starts(recorded, WaveCost(0.0, 10.0, 1))) == 100


def test_into_a_bucket_more_partitions_share_a_task():
    recorded, cost = dict.fromkeys(range(100)), WaveCost(0.0, 0.5, 100)
    assert len(SIZER.task_starts(recorded, cost)) == 100
    assert len(replace(SIZER, task_seconds=TASK_SECONDS_IN_A_BUCKET).task_starts(recorded, cost)) == 10


@given(
    sizer=SIZERS,
    recorded=st.dictionaries(st.integers(0, 100_000), st.one_of(st.none(), st.integers(0, 10**12)), max_size=300),
    cost=st.one_of(st.none(), st.builds(WaveCost, SECONDS, SECONDS, st.floats(0, 1e12))),
)
def test_every_partition_has_a_task_and_no_task_is_without_partitions(sizer, recorded, cost):
    starts = sizer.task_starts(recorded, cost)
    assert list(starts) == sorted({*starts} & recorded.keys())
    assert starts[:1] == tuple(sorted(recorded)[:1])


@given(sizer=SIZERS, count=st.integers(1, 1000), each=st.floats(0, TASK_BYTES / 4))
def test_a_task_of_several_small_partitions_is_no_larger_than_a_task_should_be(sizer, count, each):
    starts = (*sizer.task_starts(dict.fromkeys(range(count)), WaveCost(0.0, 0.0, each)), count)
    assert max(after - start for start, after in pairwise(starts)) * each <= TASK_BYTES * 1.3


START = datetime(2026, 11, 20, tzinfo=UTC)
HOUR = 3600.0


@pytest.mark.parametrize(
    ("failures", "worked", "commit", "expected"),
    [
        (0, 0, None, 415.7),  # a commit of 1 s and a failure a day, until something is known
        (0, 0, 0.25, 207.8),  # cheap commits: shorter waves
        (0, 99 * 24 * HOUR, 0.25, 600.0),  # hardly ever fails: as long as is allowed
        (23, 0, 0.25, 42.4),  # a failure an hour
        (1000, HOUR, 0.1, 10.0),  # fails all the time: as short as is allowed
        (0, 0, 0.0, 10.0),  # commits for nothing
    ],
)
def test_young_and_daly(failures, worked, commit, expected):
    assert AdaptiveInterval(failures, worked).seconds(commit) == pytest.approx(expected, abs=0.05)


@given(st.integers(0, 10**6), st.floats(0, 1e12), st.one_of(st.none(), st.floats(0, 1e9)))
def test_the_interval_stays_within_bounds(failures, worked, commit):
    assert SHORTEST <= AdaptiveInterval(failures, worked).seconds(commit) <= LONGEST


def test_a_declared_interval_is_what_it_is():
    assert DeclaredInterval(0.5).seconds(100.0) == 0.5


def test_the_reason_names_what_was_measured():
    assert (
        AdaptiveInterval(2, 36_000.0).reason(0.5) == "auto: one more wave costs 0.50 s (measured), 2 failures in 10.0 "
        "h of recorded work"
    )
    assert "1.00 s (assumed)" in AdaptiveInterval(0, 0).reason(None)


def attempt(epoch, state=AttemptState.FINISHED, seconds=HOUR, failure_class=None, region="joined"):
    ended = None if seconds is None else START + timedelta(seconds=seconds)
    facts = {"ended_at": ended, "failure_class": failure_class}
    return Attempt(f"a{epoch}", "run", "sales", "i", region, epoch, state, START, **facts)


@pytest.mark.parametrize(
    ("attempts", "failures", "hours"),
    [
        ([], 0, 0),
        ([attempt(1), attempt(2)], 0, 2),
        ([attempt(1, AttemptState.FAILED), attempt(2)], 1, 2),
        ([attempt(1, AttemptState.FAILED, failure_class="environment")], 1, 1),
        ([attempt(1, AttemptState.FAILED, failure_class="non_recoverable")], 0, 1),
        ([attempt(1, AttemptState.CANCELED)], 0, 1),
        ([attempt(1, AttemptState.RUNNING, None)], 0, 0),  # it works
        ([attempt(1, AttemptState.RUNNING, None), attempt(2)], 1, 1),  # it was killed: a newer one followed
        ([attempt(1, AttemptState.RUNNING, None), attempt(2, region="top")], 0, 1),
        ([attempt(1, seconds=-5)], 0, 0),
    ],
)
def test_the_ledger_tells_how_often_work_is_lost(attempts, failures, hours):
    assert adaptive_interval(attempts) == AdaptiveInterval(failures, hours * HOUR)
