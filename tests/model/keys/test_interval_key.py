"""One interval has one key, however it is written."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from croniter import croniter
from hypothesis import given
from hypothesis import strategies as st

from stagehold.errors import InvalidInterval
from stagehold.model.keys.interval_key import (
    LONGEST,
    PRESETS,
    end_of,
    following_key,
    form_of_keys,
    interval_key,
    key_of,
    keys_between,
    moment_of,
    present_key,
    previous_key,
    times_of,
)
from stagehold.model.keys.interval_text import IntervalTimes

NIGHTLY, HOURLY, MONDAYS, TWICE = "0 2 * * *", "@hourly", "0 2 * * 1", "0 2,14 * * *"
SCHEDULES = (None, "@once", NIGHTLY, HOURLY, MONDAYS, TWICE, "*/5 3 * * *", "0 0 31 2 *", "30 4 1 * *", *PRESETS)
DUE = (NIGHTLY, HOURLY, MONDAYS, TWICE, "*/5 3 * * *", "30 4 1 * *", *PRESETS)
FRIDAY = "2026-11-20"


@pytest.mark.parametrize(
    ("written", "schedule", "key"),
    [
        (FRIDAY, NIGHTLY, FRIDAY),
        ("2026-11-20T02:00:00Z", NIGHTLY, FRIDAY),
        ("2026-11-20T02:00", NIGHTLY, FRIDAY),
        (" 2026-11-20 02:00:00+00:00 ", NIGHTLY, FRIDAY),
        ("2026-11-20T07:30:00+05:30", NIGHTLY, FRIDAY),
        ("2026-11-19t21:00:00-0500", NIGHTLY, FRIDAY),
        ("2026-11-20T02:00:00.000000z", NIGHTLY, FRIDAY),
        ("2026-11-20T00:00:00Z", NIGHTLY, "2026-11-20T00:00:00Z"),  # not when the schedule is due: a run by hand
        ("2026-11-20T14:05:07.25Z", NIGHTLY, "2026-11-20T14:05:07.250000Z"),
        ("2026-11-20T00:00:00Z", "@daily", FRIDAY),
        ("2026-11-20T00:00:00Z", None, FRIDAY),
        ("2026-11-20T00:00:00Z", "@once", FRIDAY),
        ("2026-11-20T05:00:00Z", HOURLY, "2026-11-20T05:00:00Z"),
        ("2026-11-20T06:00:00+01:00", HOURLY, "2026-11-20T05:00:00Z"),
        (FRIDAY, MONDAYS, FRIDAY),  # no day of the schedule, and a run by hand may be for it
        ("2026-11-23T02:00:00Z", MONDAYS, "2026-11-23"),
        (FRIDAY, "0 0 31 2 *", FRIDAY),
    ],
)
def test_what_means_one_interval_is_one_key(written, schedule, key):
    assert interval_key(written, schedule) == key


@pytest.mark.parametrize(
    "text", ["whole", "us-east", "2026-11", "20261120", "2026-11-20-eu", "2026-11-20|us", "12345-01-01", "v1 é"]
)
def test_what_does_not_look_like_a_date_is_taken_as_it_is(text):
    assert {interval_key(text, schedule) for schedule in SCHEDULES} == {text}
    assert moment_of(text, NIGHTLY) is None


@pytest.mark.parametrize(
    "text",
    [
        *(
            "2024-13-45",
            "2026-02-30",
            "2026-1-5",
            "0000-01-01",
            "0001-01-01",
            "9999-12-31",
            "9999-12-31T23:59-05:00",
            "2026-11-20T25:00",
            "2026-11-20T02:61",
            "2026-11-20T2",
            "2026-11-20 2pm",
        ),
        *(
            "2026-11-20T02:00:00+99:00",
            "2026-11-20T02:00:00 Europe/Berlin",
            "",
            "  ",
            "two\nlines",
            "nul\x00",
            "x" * (LONGEST + 1),
        ),
    ],
)
@pytest.mark.parametrize("schedule", [None, NIGHTLY])
def test_what_looks_like_a_date_and_is_none_is_refused(text, schedule):
    with pytest.raises(InvalidInterval, match="a date such as 2026-11-20, a moment such as"):
        interval_key(text, schedule)


def test_a_day_that_is_several_intervals_is_refused_with_their_keys():
    with pytest.raises(InvalidInterval) as refused:
        interval_key(FRIDAY, HOURLY)
    assert "is 24 intervals of the schedule @hourly" in str(refused.value)
    assert "2026-11-20T00:00:00Z, 2026-11-20T01:00:00Z, 2026-11-20T02:00:00Z" in str(refused.value)
    with pytest.raises(InvalidInterval, match="is 2 intervals"):
        interval_key(FRIDAY, TWICE)


@pytest.mark.parametrize(
    ("key", "schedule", "moment"),
    [
        (FRIDAY, NIGHTLY, datetime(2026, 11, 20, 2, tzinfo=UTC)),
        (FRIDAY, None, datetime(2026, 11, 20, tzinfo=UTC)),
        (FRIDAY, MONDAYS, datetime(2026, 11, 20, tzinfo=UTC)),
        ("2026-11-20T14:05:00Z", NIGHTLY, datetime(2026, 11, 20, 14, 5, tzinfo=UTC)),
    ],
)
def test_a_key_says_when_its_interval_begins(key, schedule, moment):
    assert moment_of(key, schedule) == moment


@pytest.mark.parametrize(
    ("key", "schedule", "end"),
    [
        (FRIDAY, NIGHTLY, datetime(2026, 11, 21, 2, tzinfo=UTC)),
        (FRIDAY, None, datetime(2026, 11, 21, tzinfo=UTC)),
        (FRIDAY, "@once", datetime(2026, 11, 21, tzinfo=UTC)),
        (FRIDAY, MONDAYS, datetime(2026, 11, 23, 2, tzinfo=UTC)),
        ("2026-11-20T14:00:00Z", HOURLY, datetime(2026, 11, 20, 15, tzinfo=UTC)),
        ("2026-11-20T14:05:00Z", None, None),
        ("whole", NIGHTLY, None),
    ],
)
def test_an_interval_ends_where_the_next_one_begins(key, schedule, end):
    assert end_of(key, schedule) == end
    assert times_of(key, schedule) == IntervalTimes(key, moment_of(key, schedule), end)


def test_the_present_interval_is_today_or_the_newest_of_several():
    now = datetime(2026, 11, 20, 13, 59, tzinfo=UTC)
    assert [present_key(now, schedule) for schedule in (None, NIGHTLY, MONDAYS)] == [FRIDAY] * 3
    assert present_key(now, HOURLY) == "2026-11-20T13:00:00Z"
    assert present_key(now, TWICE) == "2026-11-20T02:00:00Z"
    assert present_key(datetime(2026, 11, 20, 1, tzinfo=UTC), TWICE) == "2026-11-19T14:00:00Z"
    assert present_key(datetime(2026, 11, 20, 14, tzinfo=UTC), TWICE) == "2026-11-20T14:00:00Z"


@given(
    moment=st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1)),
    schedule=st.sampled_from(SCHEDULES),
    hours=st.integers(-12, 12),
)
def test_a_key_is_its_own_key_and_gives_its_moment_back(moment, schedule, hours):
    start = moment.replace(tzinfo=UTC)
    key = key_of(start, schedule)
    assert interval_key(key, schedule) == key
    assert moment_of(key, schedule) == start
    assert interval_key(start.astimezone(timezone(timedelta(hours=hours))).isoformat(), schedule) == key


@given(day=st.dates(date(1990, 1, 1), date(2090, 1, 1)), schedule=st.sampled_from(SCHEDULES))
def test_a_day_is_the_moment_it_begins_or_is_refused(day, schedule):
    try:
        key = interval_key(day.isoformat(), schedule)
    except InvalidInterval:
        return
    moment = moment_of(key, schedule)
    assert key == day.isoformat()
    # Of a day on which the schedule is not due, the midnight is the moment, which only stands for it where there is no
    # schedule.
    assert key_of(moment, schedule) in (key, f"{key}T00:00:00Z")


@given(moment=st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1)), schedule=st.sampled_from(DUE))
def test_neighbours_are_each_others(moment, schedule):
    key = key_of(croniter(PRESETS.get(schedule, schedule), moment.replace(tzinfo=UTC)).get_next(datetime), schedule)
    assert following_key(previous_key(key, schedule), schedule) == key
    assert previous_key(following_key(key, schedule), schedule) == key
    assert moment_of(previous_key(key, schedule), schedule) < moment_of(key, schedule)


@pytest.mark.parametrize(
    ("key", "schedule", "before"),
    [
        ("2026-11-20", NIGHTLY, "2026-11-19"),
        ("2026-11-16", MONDAYS, "2026-11-09"),
        ("2026-11-20T00:00:00Z", HOURLY, "2026-11-19T23:00:00Z"),
        ("2026-03-01", "@daily", "2026-02-28"),
    ],
)
def test_the_interval_before(key, schedule, before):
    assert previous_key(key, schedule) == before


@pytest.mark.parametrize(
    ("key", "schedule"), [("2026-11-20", MONDAYS), ("whole", NIGHTLY), ("2026-11-20T14:05:00Z", NIGHTLY)]
)
def test_what_is_no_interval_of_the_schedule_has_no_neighbours(key, schedule):
    with pytest.raises(InvalidInterval, match="is no interval of the schedule"):
        previous_key(key, schedule)


@pytest.mark.parametrize(
    ("schedule", "first", "last", "expected"),
    [
        ("0 2 * * *", "2026-11-01", "2026-11-03", ["2026-11-01", "2026-11-02", "2026-11-03"]),
        ("0 2 * * *", "2026-11-01T03:00:00Z", "2026-11-02T02:00:00Z", ["2026-11-02"]),
        ("0 2 * * *", "2026-11-02T04:00:00+02:00", "2026-11-02", ["2026-11-02"]),
        ("0 */12 * * *", "2026-11-01", "2026-11-01", ["2026-11-01T00:00:00Z", "2026-11-01T12:00:00Z"]),
        (
            "0 */12 * * *",
            "2026-11-01T12:00:00Z",
            "2026-11-02T00:00:00Z",
            ["2026-11-01T12:00:00Z", "2026-11-02T00:00:00Z"],
        ),
        ("@weekly", "2026-11-01", "2026-11-14", ["2026-11-01", "2026-11-08"]),
        ("0 0 31 2 *", "2026-11-01", "2026-11-14", []),
        ("@daily", "2026-11-03", "2026-11-01", []),
    ],
)
def test_a_range_has_the_intervals_of_the_schedule_and_a_day_is_all_of_its_own(schedule, first, last, expected):
    assert list(keys_between(first, last, schedule)) == expected


@pytest.mark.parametrize("text", ["whole", "2026-02-30", ""])
def test_a_range_is_from_a_day_or_a_moment(text):
    with pytest.raises(InvalidInterval):
        list(keys_between(text, "2026-11-01", "@daily"))


def is_taken(written: str, schedule: str | None) -> bool:
    try:
        interval_key(written, schedule)
    except InvalidInterval:
        return False
    return True


WRITTEN = st.one_of(
    st.dates().map(str),
    st.datetimes().map(str),
    st.tuples(st.datetimes(), st.sampled_from(("", "Z", "z", " Z", "+02:00", "-0530", "+25:00", "x"))).map(
        lambda made: f"{made[0]:%Y-%m-%dT%H:%M:%S}{made[1]}"
    ),
    st.from_regex(r"[12][0-9]{3}-[0-9]{1,2}-[0-9]{1,2}([T ][0-9]{1,2}(:[0-9]{2}){0,2})?", fullmatch=True),
    st.from_regex(r"[a-z0-9-]{1,12}", fullmatch=True),
)


@given(WRITTEN)
def test_the_form_of_keys_takes_what_is_a_key_and_refuses_what_is_none(written):
    assert bool(re.search(form_of_keys(None), written)) == is_taken(written, None)


@pytest.mark.parametrize(
    ("written", "schedule", "taken"),
    [
        ("", NIGHTLY, True),
        ("2024-02-29", NIGHTLY, True),
        ("2023-02-29", NIGHTLY, False),
        ("1900-02-29", None, False),
        ("2000-02-29T02:00", None, True),
        ("2023-11-31 02:00", None, False),
        ("3000-01-01", None, False),
        ("2024-1-5", None, False),
        ("2024-11-05 is mine", None, True),
        ("2024-11-05 2nd", None, False),
        (FRIDAY, HOURLY, False),
        (f"{FRIDAY}T14:00Z", HOURLY, True),
        (FRIDAY, "0 0,12 1 * *", True),  # of the first day of a month alone it makes two
        ("us-east", HOURLY, True),
    ],
)
def test_a_form_refuses_what_no_run_could_be_for(written, schedule, taken):
    assert bool(re.search(form_of_keys(schedule), written)) == taken
    if written and taken:
        assert is_taken(written, schedule)
