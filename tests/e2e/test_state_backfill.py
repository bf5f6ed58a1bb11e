"""`stagehold backfill` through Airflow, of a pipeline that keeps state: one date after the other, and exactly the cells
that were shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pytest
from deltalake import DeltaTable
from tests.e2e.forms import end_earlier
from tests.e2e.stack import Stack

from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Attempt

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

PIPELINE = "accrued"
DATES = FIRST, SECOND, THIRD = ("2025-06-01", "2025-06-02", "2025-06-03")
SPLITS, TOTALS = {"daily_orders": 3}, {"customer_totals": 2}
EXPECTED = """
    SELECT o_custkey, sum(o_totalprice)::DECIMAL(18,2), count(*)
    FROM read_parquet(?) WHERE day <= ? GROUP BY ALL ORDER BY ALL
"""


@dataclass(frozen=True)
class AccruedBackfill:
    """Commands about three dates, and what they leave. Some customers order on several of them."""

    stack: Stack

    @property
    def _lake(self) -> Path:
        return Path(self.stack.settings.lake_uri)

    def bring(self, date: str, more: int = 0) -> None:
        """The orders of a day, for so much more than they were."""
        place = self._lake / "accrued" / f"{date}.parquet"
        place.parent.mkdir(exist_ok=True)
        first = 40 * DATES.index(date)
        orders = f"""
            SELECT o_orderkey, o_orderkey % 7 AS o_custkey, (o_totalprice + {more})::DECIMAL(15,2) AS o_totalprice,
                   '{date}' AS day
            FROM read_parquet('{self._lake}/raw/orders/*.parquet')
            WHERE o_orderkey BETWEEN {first} AND {first + 39}
        """
        duckdb.execute(f"COPY ({orders}) TO '{place}' (FORMAT parquet)")

    def shown(self) -> Mapping[str, Any]:
        ended = self._command("--dry-run", "--json")
        assert ended.returncode == 0, ended.stderr
        return dict(json.loads(ended.stdout))

    def run(self, token: str) -> Mapping[str, Any]:
        end_earlier(self.stack, PIPELINE)
        ended = self._command("--token", token, "--json")
        assert ended.returncode == 0, ended.stderr
        return dict(json.loads(ended.stdout))

    def _command(self, *words: str):
        return self.stack.command("backfill", PIPELINE, "--from", FIRST, "--to", THIRD, *words)

    def computed(self, since: datetime) -> dict[str, dict[str, int]]:
        """How many partitions of each stage were recorded since then, by date."""
        with Ledger.open(self.stack.settings.ledger_url) as ledger:
            newest = {date: ledger.partitions.newest_of(PIPELINE, date) for date in DATES}
        found = {
            date: {
                stage: new
                for stage, records in stages.items()
                if (new := sum(record.recorded_at >= since for record in records))
            }
            for date, stages in newest.items()
        }
        return {date: stages for date, stages in found.items() if stages}

    def attempts(self, date: str, since: datetime) -> list[Attempt]:
        """Of the date's run in Airflow, in the order in which they began."""
        with Ledger.open(self.stack.settings.ledger_url) as ledger:
            found = ledger.attempts.of_run(f"{PIPELINE}/backfill__{date}T00:00:00+00:00")
        return sorted((one for one in found if one.started_at >= since), key=lambda one: one.started_at)

    def published(self, date: str) -> list[tuple[int, object, int]]:
        rows = DeltaTable(f"{self._lake}/marts/{PIPELINE}").to_pyarrow_table(filters=[("_interval", "=", date)])
        return sorted((row["custkey"], row["spent"], row["orders"]) for row in rows.to_pylist())

    def expected(self, date: str) -> list[tuple[int, object, int]]:
        """As DuckDB computes it from the files of all days until then."""
        with duckdb.connect() as connection:
            return connection.execute(EXPECTED, [f"{self._lake}/accrued/*.parquet", date]).fetchall()


def cells(shown: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """How many partitions of each stage are to run, by date."""
    found = {
        interval["interval"]: {cell["stage"]: cell["runs"] for cell in interval["cells"] if cell["runs"]}
        for interval in shown["intervals"]
    }
    return {date: stages for date, stages in found.items() if stages}


def assert_as_shown(backfill: AccruedBackfill, wanted: dict[str, dict[str, int]]) -> None:
    """What is shown is computed, date by date, and every date then has what DuckDB computes."""
    shown = backfill.shown()
    assert cells(shown) == wanted
    began = datetime.now().astimezone()
    told = backfill.run(shown["token"])
    assert [(interval["interval"], interval["state"]) for interval in told["intervals"]] == [
        (date, "success") for date in wanted
    ]
    assert {interval["interval"]: interval["computed"] for interval in told["intervals"]} == {
        date: sum(stages.values()) for date, stages in wanted.items()
    }
    assert backfill.computed(began) == wanted
    by_date = [backfill.attempts(date, began) for date in wanted]
    for before, after in pairwise(by_date):
        assert max(one.ended_at for one in before if one.ended_at) <= after[0].started_at
    assert {date: backfill.published(date) for date in DATES} == {date: backfill.expected(date) for date in DATES}


def test_dates_that_keep_state_run_one_after_the_other_as_shown_and_again_when_the_first_one_changes(
    stack: Stack,
) -> None:
    backfill = AccruedBackfill(stack)
    for date in DATES:
        backfill.bring(date)
    assert_as_shown(backfill, {date: {**SPLITS, **TOTALS} for date in DATES})
    assert backfill.shown()["refusal"] == "There is nothing to run."
    backfill.bring(FIRST, more=1)
    assert_as_shown(backfill, {date: {"daily_orders": 1, **TOTALS} for date in DATES})
    assert backfill.shown()["refusal"] == "There is nothing to run."
