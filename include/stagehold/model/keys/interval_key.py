"""One key for each interval, however it is written: `2026-11-20`, `2026-11-20T02:00:00Z` and the run that a schedule
starts then.

A key is a date, a moment, or free text:

* The schedule's only time on a day is the day: the key of `0 2 * * *` is `2026-11-20`, and stays so if the time of day
  moves.
* Any other moment is written in UTC, `2026-11-20T14:05:00Z`: that of an hourly schedule, or of a run started by hand.
* Without a schedule a day is its midnight.
* What does not look like a date (`whole`, `us-east`) is taken as it is.

Schedules are read in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import islice, takewhile

from stagehold.errors import InvalidInterval
from stagehold.model.keys.interval_text import IntervalTimes

# What Airflow's presets mean; "@once" has no times.
PRESETS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@quarterly": "0 0 1 */3 *",
    "@yearly": "0 0 1 1 *",
}
ONCE = "@once"
YEARS = range(1900, 3000)  # cron can be asked about; a date outside is a slip of the hand
SHOWN = 3  # intervals of a day that an error names
DAYS_KNOWN = 512  # of which the times are kept: cron takes a thousand times as long
LONGEST = 250  # what the ledger's column holds
ALLOWED = (
    "a date such as 2026-11-20, a moment such as 2026-11-20T02:00:00Z (UTC unless it says +02:00), "
    f"or a key of your own that does not look like one, at most {LONGEST} characters"
)

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_MOMENT = re.compile(
    r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)\s?(Z|[+-]\d{2}:?\d{2})?", re.ASCII | re.IGNORECASE
)
_LIKE_A_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([Tt ]\d.*)?", re.ASCII)

# The same as regular expressions alone, for forms that refuse what does not match before anything runs.
_YEAR = "(?:19|2[0-9])[0-9]{2}"  # of YEARS
_LEAP_YEAR = "(?:(?:19|2[0-9])(?:0[48]|[2468][048]|[13579][26])|2[048]00)"
_DAY_OF_MONTH = (
    "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    "|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
_DATE_FORM = f"(?:{_YEAR}-{_DAY_OF_MONTH}|{_LEAP_YEAR}-02-29)"
_HOUR = "(?:[01][0-9]|2[0-3])"
_CLOCK_FORM = rf"[Tt ]{_HOUR}:[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{{1,6}})?)?\s?(?:[Zz]|[+-]{_HOUR}:?[0-5][0-9])?"
_OTHER_FORM = r"(?![0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ][0-9].*)?\s*$).*"
_SAMPLE = tuple(date(2024, 1, day) for day in range(1, 8))


def interval_key(text: str, schedule: str | None) -> str:
    """The key of the interval that ``text`` means in a pipeline of this schedule; a key is its own.

    :raises InvalidInterval: it looks like a date and is none, it means several intervals of the schedule, or it cannot
    be kept.
    """
    given = text.strip()
    if not given or len(given) > LONGEST or not given.isprintable():
        raise InvalidInterval(text, "cannot be a key", ALLOWED)
    if not _LIKE_A_DATE.fullmatch(given):
        return given
    parsed = _parsed(given)
    return key_of(parsed, schedule) if isinstance(parsed, datetime) else _key_of_day(parsed, schedule)


def form_of_keys(schedule: str | None) -> str:
    """A regular expression for what `interval_key` takes in a pipeline of this schedule, or nothing at all. It also
    takes a day of which the schedule makes several intervals, unless it does so of each day.
    """
    several = all(len(tuple(islice(_due_on(day, schedule), 2))) > 1 for day in _SAMPLE)
    clock = _CLOCK_FORM if several else f"(?:{_CLOCK_FORM})?"
    return rf"^\s*(?:{_DATE_FORM}{clock}|{_OTHER_FORM})\s*$"


def key_of(moment: datetime, schedule: str | None) -> str:
    """The key of the interval that begins at ``moment``."""
    start = moment.astimezone(UTC)
    times = _times_of(start.date(), schedule)
    return start.date().isoformat() if times == (start,) else start.isoformat().replace("+00:00", "Z")


def key_of_day(day: date, schedule: str | None) -> str | None:
    """The key of the only interval of a day; None if the schedule is due more than once, or not at all."""
    times = _times_of(day, schedule)
    return key_of(times[0], schedule) if len(times) == 1 else None


def moment_of(key: str, schedule: str | None) -> datetime | None:
    """When the interval of a key begins; None for free text."""
    if _DAY.fullmatch(key):
        day = date.fromisoformat(key)
        times = _times_of(day, schedule)
        return times[0] if len(times) == 1 else _midnight(day)
    return _moment(key) if _MOMENT.fullmatch(key) else None


def times_of(key: str, schedule: str | None) -> IntervalTimes:
    """The key with its beginning and its end."""
    return IntervalTimes(key, moment_of(key, schedule), end_of(key, schedule))


def end_of(key: str, schedule: str | None) -> datetime | None:
    """When the interval of a key ends: as the next one of its schedule begins. Without a schedule a day has its own
    end, and a moment none.
    """
    start = moment_of(key, schedule)
    if start is None or schedule in (None, ONCE):
        return start + timedelta(days=1) if start and _DAY.fullmatch(key) else None
    return next(_due_after(start, _cron(schedule)), None)


def present_key(now: datetime, schedule: str | None) -> str:
    """The interval that is meant if none is named: today, or of a schedule with several times a day the newest."""
    today = now.astimezone(UTC).date()
    if len(_times_of(today, schedule)) < 2 or schedule is None:
        return today.isoformat()
    return key_of(newest_time(now, schedule), schedule)


def newest_time(now: datetime, schedule: str) -> datetime:
    """When the schedule was due last; now counts."""
    from croniter import croniter

    newest: datetime = croniter(_cron(schedule), now.astimezone(UTC) + timedelta(microseconds=1)).get_prev(datetime)
    return newest


def previous_key(key: str, schedule: str) -> str:
    """The interval before that of ``key``.

    :raises InvalidInterval: the schedule is not due then, so nothing comes before or after it.
    """
    return _neighbour(key, schedule, "get_prev")


def following_key(key: str, schedule: str) -> str:
    """The interval after that of ``key``; it raises what `previous_key` does."""
    return _neighbour(key, schedule, "get_next")


def keys_between(first: str, last: str, schedule: str) -> Iterator[str]:
    """The intervals of a schedule from the one that ``first`` names to the one that ``last`` names, in order. A day
    stands for all of its intervals.

    :raises InvalidInterval: one of them is neither a day nor a moment.
    """
    start, end = span_of(first, last)
    for due in takewhile(lambda due: due < end, _due_after(start - timedelta(microseconds=1), _cron(schedule))):
        yield key_of(due, schedule)


def span_of(first: str, last: str) -> tuple[datetime, datetime]:
    """The time from the beginning of the first to the end of the last, which is not in it any more. The end is that of
    a day, or of the smallest piece of time behind a moment.

    :raises InvalidInterval: one of them is neither a day nor a moment.
    """
    begins, ends = _parsed(first.strip()), _parsed(last.strip())
    start = begins if isinstance(begins, datetime) else _midnight(begins)
    if isinstance(ends, datetime):
        return start, ends + timedelta(microseconds=1)
    return start, _midnight(ends) + timedelta(days=1)


def _neighbour(key: str, schedule: str, way: str) -> str:
    from croniter import croniter

    moment, cron = moment_of(key, schedule), _cron(schedule)
    if moment is None or not croniter.match(cron, moment):
        allowed = f"one of the schedule {schedule}, since a stage of the pipeline keeps state from one to the next"
        raise InvalidInterval(key, "is no interval of the schedule", allowed)
    found: datetime = getattr(croniter(cron, moment), way)(datetime)
    return key_of(found, schedule)


def _key_of_day(day: date, schedule: str | None) -> str:
    times = _times_of(day, schedule)
    if len(times) < 2:
        return day.isoformat()
    shown = ", ".join(moment.isoformat().replace("+00:00", "Z") for moment in times[:SHOWN])
    raise InvalidInterval(
        day.isoformat(), f"is {len(times)} intervals of the schedule {schedule}", f"one of {shown}, ..."
    )


def _parsed(text: str) -> date | datetime:
    try:
        found = date.fromisoformat(text) if _DAY.fullmatch(text) else _moment(text)
        if found.year in YEARS:
            return found
        raise ValueError(text)
    except (ValueError, OverflowError) as error:
        raise InvalidInterval(text, f"is no date from {YEARS[0]} to {YEARS[-1]}", ALLOWED) from error


def _moment(text: str) -> datetime:
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise ValueError(text)
    day, clock, zone = match.groups()
    return datetime.fromisoformat(f"{day}T{clock}{(zone or 'Z').upper()}").astimezone(UTC)


@lru_cache(maxsize=DAYS_KNOWN)
def _times_of(day: date, schedule: str | None) -> tuple[datetime, ...]:
    """When the schedule is due on a day; without times of its own, the day's midnight."""
    return tuple(islice(_due_on(day, schedule), 24 * 60))


def _due_on(day: date, schedule: str | None) -> Iterator[datetime]:
    if schedule is None or schedule == ONCE:
        return iter((_midnight(day),))
    ends = _midnight(day) + timedelta(days=1)
    return takewhile(lambda due: due < ends, _due_after(_midnight(day) - timedelta(seconds=1), _cron(schedule)))


def _due_after(moment: datetime, cron: str) -> Iterator[datetime]:
    """When it is due from then on; never again for a date that does not come, such as 31 February."""
    from croniter import croniter  # here, as most commands are about a pipeline without a schedule, or a key as it is
    from croniter.croniter import CroniterBadDateError

    times = croniter(cron, moment, ret_type=datetime)
    with suppress(CroniterBadDateError):
        while True:
            yield times.get_next()


def _cron(schedule: str) -> str:
    return PRESETS.get(schedule, schedule)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
