"""Airflow's own trigger form of a pipeline's DAG, in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.airflow, pytest.mark.browser]


def test_the_form_shows_no_null(page, synced_airflow):
    page.goto("/dags/shipping_priority")
    page.get_by_role("button", name="Trigger").first.click()
    form = page.get_by_role("dialog")
    expect(form.get_by_text("Restore from stage")).to_be_visible()
    expect(form.get_by_text("No stage: only what is not consumable runs")).to_be_visible()
    expect(form.get_by_text("null", exact=True)).to_have_count(0)
    form.locator("#element_restore_from_stage input").first.focus()
    page.keyboard.press("ArrowDown")
    options = page.get_by_role("option")
    expect(options.first).to_have_text("No stage: only what is not consumable runs")
    expect(options.filter(has_text="null")).to_have_count(0)
