"""The overview in a real browser, on Airflow's own api-server."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect
from tests.airflow.made_runs import end_dag_run, make_half_done
from tests.airflow.pipeline_page.made_intervals import PIPELINE
from tests.airflow.pipeline_page.made_stale import nothing_on_record

from stagehold.ledger.ledger import Ledger
from stagehold.settings import load_settings

pytestmark = [pytest.mark.airflow, pytest.mark.browser]

URL = "/plugin/stagehold-pipelines"
LOOK = """async () => (await import('/stagehold/static/overview_page/overview_texts.js')).lookPage(
    {name: 'one', place: 'one', standing: 'failing'}, {interval: '2026-11-20', run_id: 'of-a-command'})"""
COLOUR = "(card) => getComputedStyle(card).backgroundColor"


def test_each_pipeline_says_how_it_stands_and_leads_to_its_pages(page, stopped):
    page.goto(URL)
    row = page.get_by_test_id("pipeline-shipping_priority")
    need = page.get_by_test_id(f"need-shipping_priority-{stopped}")
    expect(need).to_contain_text("the newest run has ended without a word")
    expect(need.get_by_role("button", name=f"Run it: shipping_priority for {stopped}")).to_be_enabled()
    expect(row.locator("[data-word=silent]").last).to_have_attribute(
        "title", re.compile(f"{stopped}: the newest run has ended without a word")
    )
    failed = row.locator("a[data-word=failed]").first
    assert "/dags/shipping_priority/runs/" in (failed.get_attribute("href") or "")
    row.get_by_role("link", name="shipping_priority", exact=True).click()
    page.wait_for_url("**/dags/shipping_priority/plugin/stagehold-intervals")
    assert page.evaluate(LOOK).endswith("/dags/one/plugin/stagehold-intervals?first=2026-11-20&last=2026-11-20")


def test_a_tile_shows_only_the_pipelines_that_it_counts(page, stopped):
    page.goto(URL)
    expect(page.get_by_test_id("pipeline-customer_totals")).to_be_visible()
    page.get_by_test_id("tile-failing").click()
    expect(page.get_by_test_id("pipeline-customer_totals")).to_have_count(0)
    expect(page.get_by_test_id("pipeline-shipping_priority")).to_be_visible()
    expect(page.get_by_test_id("tile-failing")).to_be_focused()  # the page was not made anew
    page.get_by_test_id("tile-failing").click()
    expect(page.get_by_test_id("pipeline-customer_totals")).to_be_visible()


FAILED = "manual__what_failed"


def test_what_failed_is_found_reloaded_gone_back_to_and_resumed_from_its_button(page, synced_airflow):
    with nothing_on_record():
        make_half_done(PIPELINE, FAILED)
        page.goto(URL)
        expect(page.get_by_test_id("tile-failing")).to_contain_text(
            re.compile("[1-9]")
        )  # other tests may have left some
        page.get_by_test_id("tile-failing").click()
        page.wait_for_url("**kind=failing*")
        page.get_by_test_id("search").fill("shipping")
        page.wait_for_url("**search=shipping*")
        page.reload()
        expect(page.get_by_test_id("search")).to_have_value("shipping")
        expect(page.get_by_test_id("tile-failing")).to_have_attribute("aria-pressed", "true")
        need = page.get_by_test_id(f"need-{PIPELINE}-{FAILED}")
        expect(need).to_contain_text("Spark lost its server in the middle of orders_by_customer.")
        need.get_by_role("link", name=FAILED).click()
        page.wait_for_url("**/plugin/stagehold")
        page.go_back()
        need.get_by_role("button", name="Resume").click()
        row = page.get_by_test_id(f"pipeline-{PIPELINE}")
        expect(page.get_by_test_id(f"pipeline-{PIPELINE}")).to_have_count(0)  # nothing of it fails any more
        assert {one["state"] for one in tasks_of(page, FAILED)} == {"success", None}
        page.get_by_test_id("tile-running").click()
        expect(row).to_contain_text(re.compile(r"[1-9]\d* runs? under way"))  # other tests may have left runs
        expect(row.get_by_role("link", name=FAILED, exact=True)).to_be_visible()
        end_dag_run(PIPELINE, FAILED)


def tasks_of(page, run_id: str) -> list[dict]:
    return page.request.get(f"/api/v2/dags/{PIPELINE}/dagRuns/{run_id}/taskInstances").json()["task_instances"]


def test_the_page_is_reached_from_the_menu(page, synced_airflow):
    page.goto("/")
    page.get_by_role("link", name="Pipelines", exact=True).click()
    expect(page.get_by_test_id("stagehold-overview")).to_be_visible()


@pytest.mark.parametrize("page", ["viewer"], indirect=True)
def test_leases_sizes_and_versions_are_told(page, own_ledger, half_done):
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


def test_an_empty_airflow_says_in_three_lines_how_to_begin(page, synced_airflow, monkeypatch):
    monkeypatch.setattr("stagehold.airflow.overview.overview_routes.visible_pipelines", lambda user, session: ())
    page.goto(URL)
    none = page.get_by_test_id("none")
    expect(none).to_contain_text("There is no pipeline that you may see. To begin:")
    lines = none.get_by_role("listitem")
    expect(lines).to_have_count(3)
    expect(lines.nth(0).get_by_role("code")).to_have_text("stagehold init my_project")
    expect(lines.nth(1).get_by_role("code")).to_have_text('stagehold.dags("../my_project")')
    expect(lines.nth(2).get_by_role("code")).to_have_text("stagehold run customer_totals")
