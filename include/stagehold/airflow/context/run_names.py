"""The names of an Airflow run elsewhere: its interval, and the address of its tab."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, time
from typing import Any
from urllib.parse import quote

from stagehold.airflow.context.dag_places import DagPlace
from stagehold.model.keys.interval_key import interval_key, key_of, key_of_day, moment_of

OF_NO_TIME = datetime.min.replace(tzinfo=UTC)


def interval_of(
    *,
    asked: str | None,
    partition_key: str | None,
    data_interval_start: datetime | None,
    logical_date: datetime | None,
    run_after: datetime,
    schedule: str | None,
    by_hand: bool = False,
    news: Collection[str] = (),
) -> str:
    """The interval key: what the user asked for, else the partition key, else the newest interval of which assets had
    ``news`` that started the run, else the start of the run's data interval.

    A run ``by_hand`` with a date that is a day without a time (`airflow dags test DAG 2026-11-20`) is for that day, as
    the schedule's own run of it is. A run that was triggered without any date is for the moment when it was due, which
    a clear does not change.

    :raises InvalidInterval: the interval that was asked for does not exist, or may mean several intervals of the
        schedule.
    """
    if named := (asked or "").strip() or partition_key:
        return interval_key(named, schedule)
    if news:
        return interval_key(max(news, key=lambda key: (moment_of(key, schedule) or OF_NO_TIME, key)), schedule)
    moment = data_interval_start or logical_date or run_after
    if by_hand and logical_date and logical_date.astimezone(UTC).time() == time():
        return key_of_day(logical_date.astimezone(UTC).date(), schedule) or key_of(moment, schedule)
    return key_of(moment, schedule)


def intervals_in(extras: Iterable[Mapping[str, Any] | None]) -> Collection[str]:
    """The intervals that events of assets name, as ours do."""
    found = (extra.get("interval") for extra in extras if extra)
    return tuple(dict.fromkeys(str(interval) for interval in found if interval))


def run_tab(place: DagPlace, run_id: str) -> str:
    """The address of a run's Stagehold tab, which stands at the end of messages and logs. Airflow has one for each run
    of the DAG: that of several pipelines shows the one that is named.
    """
    from airflow.sdk.configuration import conf  # imported here, so that the rest can be used without an Airflow

    chosen = f"?pipeline={quote(place.pipeline, safe='')}" if place.pipeline else ""
    base = conf.get("api", "base_url", fallback="").rstrip("/")
    return f"{base}/dags/{quote(place.dag_id, safe='')}/runs/{quote(run_id, safe='')}/plugin/stagehold{chosen}"
