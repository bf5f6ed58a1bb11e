"""Files go to intervals by a path, a column or their arrival, on a real folder and a real ledger."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.sources.made_sources import source_stage

from stagehold.errors import InvalidSpec, SourceUnusable
from stagehold.model.keys.interval_key import times_of
from stagehold.sources.attempt_sources import Listing, Sources
from stagehold.spec.loading.loader import build_pipeline
from stagehold.spec.pipeline import Stage

NIGHTLY = "0 2 * * *"
BY_PATH = {"path": "${lake}/raw/day=${interval.start:%Y-%m-%d}/*.parquet", "incremental": {"by": "path"}}
BY_COLUMN = {"path": "${lake}/raw/**/*.parquet", "incremental": {"by": "column", "column": "day"}}
BY_ARRIVAL = {"path": "${lake}/raw/**/*.parquet", "incremental": {"by": "arrival"}}
DAYS = [f"2026-11-{day}" for day in range(20, 25)]
Take = Callable[..., list[str]]


@pytest.fixture
def arrive(tmp_path: Path) -> Callable[..., None]:
    def arrive(name: str, came: str = "2026-11-26T00:00", values: tuple[date | datetime, ...] = ()) -> None:
        path = tmp_path / "raw" / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"day": values} if values else {"n": [1]}), path)
        moment = datetime.fromisoformat(came).replace(tzinfo=UTC).timestamp()
        os.utime(path, (moment, moment))

    return arrive


@pytest.fixture
def take(ledger, tmp_path: Path) -> Take:
    """What an interval takes when it is first run."""

    def take(interval: str, fields: dict[str, Any], schedule: str | None = NIGHTLY) -> list[str]:
        stage = source_stage(**{**fields, "splits": 1})
        sources = attempt(interval, schedule)
        sources.settle(stage, Listing.OF_RUN)
        return names(sources, stage)

    def attempt(interval: str, schedule: str | None) -> Sources:
        return Sources("p", interval, "r", str(tmp_path), ledger, times_of=partial(times_of, schedule=schedule))

    return take


def names(sources: Sources, stage: Stage) -> list[str]:
    root = f"{sources.lake_uri}/raw/"
    return [file.path.removeprefix(root).removesuffix(".parquet") for file in sources.of(stage).splits[0].files]


@pytest.mark.parametrize("fields", [BY_PATH, BY_COLUMN])
@pytest.mark.parametrize("order", [DAYS, DAYS[::-1], [DAYS[2], DAYS[0], DAYS[4], DAYS[1], DAYS[3]]])
def test_a_backfill_of_days_whose_files_are_all_there_gives_each_day_its_own(take, arrive, fields, order):
    for day in DAYS:
        arrive(f"day={day}/a")
        arrive(f"day={day}/b")
    assert {day: take(day, fields) for day in order} == {day: [f"day={day}/a", f"day={day}/b"] for day in DAYS}


def test_a_late_file_goes_to_the_next_later_day_and_none_is_read_twice_or_left_out(take, arrive):
    arrive("day=2026-11-20/a")
    arrive("day=2026-11-21/a")
    assert take("2026-11-21", BY_PATH) == ["day=2026-11-21/a"]
    arrive("day=2026-11-21/late")
    arrive("day=2026-11-22/a")
    assert take("2026-11-20", BY_PATH) == ["day=2026-11-20/a"]  # not the late one, which is of a later day
    assert take("2026-11-22", BY_PATH) == ["day=2026-11-21/late", "day=2026-11-22/a"]
    assert take("2026-11-23", BY_PATH) == []
    assert take("2026-11-22", BY_PATH) == ["day=2026-11-21/late", "day=2026-11-22/a"]  # kept for good


def test_files_of_a_day_that_never_ran_wait_for_it(take, arrive):
    arrive("day=2026-11-19/a")
    arrive("day=2026-11-20/a")
    assert take("2026-11-20", BY_COLUMN) == ["day=2026-11-20/a"]
    assert take("2026-11-19", BY_COLUMN) == ["day=2026-11-19/a"]


def test_without_a_folder_the_greatest_value_of_a_files_statistics_counts(take, arrive):
    arrive("a", values=(date(2026, 11, 19), date(2026, 11, 20)))
    arrive("b", values=(date(2026, 11, 21),))
    assert take("2026-11-20", BY_COLUMN) == ["a"]
    assert take("2026-11-21", BY_COLUMN) == ["b"]
    arrive("c")
    with pytest.raises(SourceUnusable, match=r"c.parquet has no day or moment day, in folders or statistics"):
        take("2026-11-22", BY_COLUMN)


def test_a_file_without_rows_hinders_nobody(tmp_path, take, arrive):
    arrive("a", values=(date(2026, 11, 21),))
    pq.write_table(pa.table({"day": pa.array([], pa.date32())}), tmp_path / "raw" / "empty.parquet")
    assert take("2026-11-20", BY_COLUMN) == ["empty"]
    assert take("2026-11-21", BY_COLUMN) == ["a"]


def test_moments_belong_to_the_interval_that_they_are_in(take, arrive):
    arrive("before", values=(datetime(2026, 11, 20, 1, 59, tzinfo=UTC),))
    arrive("first", values=(datetime(2026, 11, 20, 2, tzinfo=UTC),))
    arrive("last", values=(datetime(2026, 11, 21, 1, 59, tzinfo=UTC),))
    assert take("2026-11-20", BY_COLUMN) == ["first", "last"]
    assert take("2026-11-19", BY_COLUMN) == ["before"]


@pytest.mark.parametrize(("schedule", "interval"), [("@monthly", "2026-11-01"), ("0 0 * * 1", "2026-11-16")])
def test_days_of_a_longer_interval_are_its_own(take, arrive, schedule, interval):
    arrive("day=2026-11-20/a")
    arrive("day=2026-10-31/a")
    assert take(interval, BY_COLUMN, schedule) == ["day=2026-11-20/a"]


def test_an_arrival_belongs_to_the_interval_in_which_the_file_was_written(take, arrive):
    arrive("early", came="2026-11-20T02:00")
    arrive("late", came="2026-11-21T01:59")
    arrive("next", came="2026-11-21T02:00")
    assert take("2026-11-21", BY_ARRIVAL) == ["next"]
    assert take("2026-11-20", BY_ARRIVAL) == ["early", "late"]


def test_an_interval_that_is_no_date_has_no_files_of_its_own(take, arrive):
    arrive("day=2026-11-20/a")
    with pytest.raises(SourceUnusable, match="'spring' is no date, so it has no start"):
        take("spring", BY_COLUMN)


def test_the_plan_says_how_many_came_late(ledger, tmp_path, take, arrive):
    arrive("day=2026-11-20/a")
    take("2026-11-20", BY_PATH)
    arrive("day=2026-11-20/late")
    arrive("day=2026-11-21/a")
    stage = source_stage(**{**BY_PATH, "splits": 1})
    sources = Sources("p", "2026-11-21", "r", str(tmp_path), ledger, times_of=partial(times_of, schedule=NIGHTLY))
    assert sources.told(stage) == "2 files, 1 of them late"


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"incremental": {"by": "name"}}, "{by: path}, {by: column, column: NAME}, {by: arrival}"),
        ({"incremental": {"by": "column"}}, "{by: column, column: NAME}"),
        ({"incremental": {"by": "path", "column": "day"}}, "{by: path}"),
        ({"incremental": {"by": "path"}}, "a path that names its interval: ${interval}"),
        ({"path": "x/${interval}", "incremental": {"by": "arrival"}}, "{by: path}, or false"),
        ({"path": "x/${interval}", "incremental": True}, "{by: path}, or false"),
        ({"kind": "delta", "incremental": {"by": "arrival"}}, "`where` gives a day its own rows"),
        ({"incremental": "yes"}, "true, false, or {by: path}"),
    ],
)
def test_what_does_not_say_where_files_go_is_refused(tmp_path, fields, told):
    (tmp_path / "work.py").write_text("from stagehold import stage\n\n\n@stage\ndef numbers(ctx, source): ...\n")
    source = {"kind": "parquet", "path": "x", "splits": 2, **fields}
    declared = {"pipeline": "small", "stages": {"numbers": {"job": "work:numbers", "source": source}}}
    with pytest.raises(InvalidSpec) as caught:
        build_pipeline(declared, project=tmp_path, suites=tmp_path)
    assert any(told in problem.allowed for problem in caught.value.problems), str(caught.value)
