"""What an attempt says of its work, with a clock that is moved by hand."""

from __future__ import annotations

import pytest

from stagehold.model.pulse import Memory, Meter, QueryStage, Side


class HandClock:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def meter(clock):
    made = Meter(lambda: Memory(client=7), clock)
    made.begin_stage("joined", 8)
    return made


def reading(number: int, ended: int, read: int = 0, tasks: int = 4) -> QueryStage:
    return QueryStage(number, tasks, ended, read)


def test_an_attempt_that_has_begun_no_stage_says_nothing():
    assert Meter().pulse() is None


def test_rates_are_those_of_waves_that_have_ended(meter, clock):
    meter.begin_wave(1)
    with meter.at(Side.PUBLISHING):
        clock.seconds += 2
    meter.end_wave(2, rows=300, size=6000, seconds=3.0)
    meter.begin_wave(2)
    clock.seconds += 50
    pulse = meter.pulse()
    assert (pulse.stage, pulse.wave, pulse.done, pulse.partitions) == ("joined", 2, 2, 8)
    assert (pulse.rows_a_second, pulse.bytes_a_second) == (100.0, 2000.0)
    assert (pulse.doing, pulse.memory) == (None, Memory(client=7))


def test_a_new_stage_begins_with_nothing(meter):
    meter.end_wave(2, rows=300, size=6000, seconds=3.0)
    meter.begin_stage("sums", 4)
    pulse = meter.pulse()
    assert (pulse.stage, pulse.done, pulse.partitions, pulse.rows) == ("sums", 0, 4, 0)
    assert (pulse.rows_a_second, pulse.slowest, pulse.share_of_slowest) == (0.0, None, 0.0)


def test_the_stages_of_a_query_tell_reading_function_and_writing_apart(meter, clock):
    with meter.in_query(dealt=True):
        clock.seconds += 6
        meter.observe([reading(0, 2, read=10)])
        assert meter.pulse().doing is Side.FUNCTION, "a query of one stage may do all at once"
        clock.seconds += 2
        meter.observe([reading(0, 4, read=20), reading(1, 0)])
        clock.seconds += 3
        meter.observe([reading(0, 4, read=20), reading(1, 4), reading(2, 1)])
        assert meter.pulse().doing is Side.WRITING
        clock.seconds += 1
    with meter.at(Side.JUDGING):
        clock.seconds += 4
    pulse = meter.pulse()
    assert pulse.seconds == {Side.READING: 6, Side.FUNCTION: 2, Side.WRITING: 4, Side.JUDGING: 4}
    assert (pulse.slowest, pulse.share_of_slowest, pulse.read) == (Side.READING, 0.375, 20)


@pytest.mark.parametrize("dealt", [False, True])
def test_a_query_of_one_stage_is_the_functions(meter, clock, dealt):
    with meter.in_query(dealt=dealt):
        clock.seconds += 2
        meter.observe([reading(5, 1, read=10)])
        clock.seconds += 3
    assert meter.pulse().seconds == {Side.FUNCTION: 5}


def test_who_writes_rows_where_they_are_writes_in_the_functions_last_stage(meter, clock):
    with meter.in_query(dealt=False):
        clock.seconds += 2
        meter.observe([reading(0, 4, read=10, tasks=5)])
        clock.seconds += 3
        meter.observe([reading(0, 5, read=10, tasks=5), reading(1, 0)])
    assert meter.pulse().seconds == {Side.READING: 2, Side.FUNCTION: 3}


def test_a_query_of_which_the_server_says_nothing_is_the_functions(meter, clock):
    with meter.in_query(dealt=True):
        clock.seconds += 1
        assert meter.pulse().doing is Side.FUNCTION
    assert meter.pulse().seconds == {Side.FUNCTION: 1}


def test_stages_at_work_at_once_share_the_time(meter, clock):
    with meter.in_query(dealt=True):
        clock.seconds += 4
        meter.observe([reading(0, 1, read=10), reading(1, 1)])
        meter.observe([reading(0, 4, read=10), reading(1, 4), reading(2, 4)])
    assert meter.pulse().seconds == {Side.READING: 2, Side.FUNCTION: 2}


def test_what_is_asked_beside_the_query_counts_for_nothing(meter):
    meter.observe([reading(0, 1, read=10)])
    assert meter.pulse().read == 0


def test_what_goes_on_counts_up_to_now(meter, clock):
    with meter.at(Side.PUBLISHING):
        clock.seconds += 3
        pulse = meter.pulse()
    assert (pulse.doing, pulse.seconds) == (Side.PUBLISHING, {Side.PUBLISHING: 3})
