"""The overview in a real browser, on Airflow's own api-server."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from stagehold.ledger.ledger import Ledger
from stagehold.settings import load_settings

pytestmark = [pytest.mark.airflow, pytest.mark.browser]

URL = "/plugin/stagehold-pipelines"
COLOUR = "(card) => getComputedStyle(card).backgroundColor"


def test_each_pipeline_says_how_it_stands_and_leads_to_its_pages(page, stopped):
    page.goto(URL)
    row = page.get_by_test_id("pipeline-shipping_priority")
    expect(row).to_contain_text(f"the newest run for {stopped} has ended without a word")
    expect(row.locator("[data-word=silent]").last).to_have_attribute(
        "title", f"{stopped}: the newest run has ended without a word"
    )
    failed = row.locator("a[data-word=failed]").first
    assert "/dags/shipping_priority/runs/" in (failed.get_attribute("href") or "")
    row.get_by_role("link", name="shipping_priority", exact=True).click()
    page.wait_for_url("**/dags/shipping_priority/plugin/stagehold-intervals")


def test_a_tile_shows_only_the_pipelines_that_it_counts(page, stopped):
    page.goto(URL)
    expect(page.get_by_test_id("pipeline-customer_totals")).to_be_visible()
    page.get_by_test_id("tile-Failing").click()
    expect(page.get_by_test_id("pipeline-customer_totals")).to_have_count(0)
    expect(page.get_by_test_id("pipeline-shipping_priority")).to_be_visible()
    page.get_by_test_id("tile-Failing").click()
    expect(page.get_by_test_id("pipeline-customer_totals")).to_be_visible()


def test_the_page_is_reached_from_the_menu(page, synced_airflow):
    page.goto("/")
    page.get_by_role("link", name="Pipelines", exact=True).click()
    expect(page.get_by_test_id("stagehold-overview")).to_be_visible()


@pytest.mark.parametrize("page", ["viewer"], indirect=True)
def test_leases_sizes_and_versions_are_told(page, half_done):
    with Ledger.open(load_settings().ledger_url) as ledger:
        lease = ledger.leases.acquire("shipping_priority/day/orders", "me|host|7|1", 60)
        page.goto(URL)
        expect(page.get_by_test_id("leases")).to_contain_text("me (process 7 on host)")
        ledger.leases.release(lease)
    expect(page.get_by_test_id("storage")).to_contain_text("Ledger, SQLite, schema 00")
    expect(page.get_by_test_id("storage")).to_contain_text("iB")
    expect(page.get_by_test_id("versions")).to_contain_text("apache-airflow3.3")


def test_the_page_follows_airflows_dark_mode(page, half_done):
    colours = set()
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        page.goto(URL)
        card = page.get_by_test_id("pipelines")
        expect(card).to_be_visible()
        colours.add(card.evaluate(COLOUR))
    assert len(colours) == 2


def test_nothing_is_cut_off_at_700_pixels(page, stopped):
    page.goto(URL)
    expect(page.get_by_test_id("pipeline-shipping_priority")).to_be_visible()
    panel = page.get_by_test_id("stagehold-overview")
    panel.evaluate("(panel) => { panel.style.width = '700px'; }")
    for name in ("pipelines", "leases", "storage", "versions"):
        wide = page.get_by_test_id(name).evaluate("(card) => [card.scrollWidth, card.clientWidth]")
        assert wide[0] <= wide[1], name
    assert panel.evaluate("(panel) => panel.scrollWidth <= panel.clientWidth")
