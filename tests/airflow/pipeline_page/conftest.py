"""The tab of a pipeline, with intervals that were written into the ledger by hand."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from tests.airflow.pipeline_page.made_intervals import TAB, made_weeks


@pytest.fixture(scope="module")
def made(synced_airflow):
    """Four weeks in which some nights went wrong; tests read them only."""
    with made_weeks() as ledger:
        yield ledger


@pytest.fixture
def tab(page, made):
    page.goto(TAB)
    expect(page.get_by_test_id("headline")).to_be_visible()
    return page
