"""How many intervals are stale, on the page of all pipelines in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from tests.airflow.pipeline_page.made_intervals import PIPELINE, day
from tests.airflow.pipeline_page.made_stale import make_interval, nothing_on_record, write_orders_anew

pytestmark = [pytest.mark.airflow, pytest.mark.browser]


def test_a_pipeline_says_how_many_of_its_last_intervals_are_stale_and_why(page, synced_airflow):
    with nothing_on_record():
        make_interval(day(0))
        write_orders_anew()
        make_interval(day(1))
        page.goto("/plugin/stagehold-pipelines")
        told = page.get_by_test_id(f"pipeline-{PIPELINE}").get_by_test_id("stale")
        expect(told).to_contain_text(f"1 of the last 2 stale: {day(0)}, orders: its source changed")
        expect(page.get_by_test_id("pipeline-customer_totals").get_by_test_id("stale")).to_have_count(0)
