"""What axe finds on a page, in light and dark and with text at 200 %, and what a screen reader is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.airflow, pytest.mark.browser]

AXE = (Path(__file__).parent / "vendor" / "axe-core-4.14.1.min.js").read_text(encoding="utf-8")
FOUND = """async () => (await axe.run('#stagehold-page')).violations.flatMap(
    (rule) => rule.nodes.map((node) => `${rule.id}: ${node.target}: ${node.failureSummary}`))"""
TWICE = "document.documentElement.style.fontSize = '200%'"
WIDE = "(panel) => panel.scrollWidth - panel.clientWidth"


def found_by_axe(page: Page, open_page: Callable[[], None]) -> list[str]:
    found = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        open_page()
        page.evaluate(AXE)
        found += [f"{scheme}: {one}" for one in page.evaluate(FOUND)]
        page.evaluate(TWICE)
        found += [f"{scheme}, 200 %: {one}" for one in page.evaluate(FOUND)]
        wider = page.get_by_role("region", name="Stagehold").first.evaluate(WIDE)
        found += [f"{scheme}, 200 %: {wider} pixels are beside the page"] if wider > 0 else []
    return found


def test_axe_finds_nothing_on_the_page_of_all_pipelines(page, half_done):
    def open_page() -> None:
        page.goto("/plugin/stagehold-pipelines")
        expect(page.get_by_test_id("pipeline-shipping_priority")).to_be_visible()
        expect(page.get_by_test_id("storage")).to_contain_text("iB")

    found = found_by_axe(page, open_page)
    assert not found, "\n".join(found)


def test_a_screen_reader_is_told_the_partitions_of_a_run_by_role_and_name(page, half_done):
    page.goto(f"/dags/{half_done.dag_id}/runs/{half_done.run_id}/plugin/stagehold")
    page.get_by_test_id("cell-customer-0").click()
    expect(page.get_by_role("region", name="Stagehold", exact=True)).to_match_aria_snapshot(r"""
      - region "Stagehold":
        - 'heading "Failed at orders_by_customer: 53 of 81 partitions are consumable" [level=2]'
        - button "Resume"
        - progressbar "partitions that are done"
        - 'group "customer: 16 of 16 consumable"':
          - 'button /^customer\[0\]: consumable · .* · 100 rows/ [pressed]'
          - 'button /^customer\[15\]: consumable · .* · 115 rows/'
        - 'group "orders_by_customer: 5 of 16 consumable"':
          - 'button /^orders_by_customer\[4\]: consumable/'
          - 'button /^orders_by_customer\[5\]: failed · never computed for this interval/'
        - 'group "top_orders: 0 of 1 consumable"':
          - 'button /^top_orders\[0\]: waiting/'
    """)


def test_a_screen_reader_is_told_the_intervals_of_a_pipeline_by_role_and_name(page, half_done):
    page.goto(f"/dags/{half_done.dag_id}/plugin/stagehold-intervals")
    run = half_done.run_id
    table = page.get_by_role("table", name="Intervals by stages; arrow keys go from one to the next")
    expect(table).to_match_aria_snapshot(rf"""
      - rowgroup:
        - row:
          - columnheader "Interval"
          - columnheader "customer"
          - columnheader "top_orders gate top_orders"
      - rowgroup:
        - 'row /{run}/':
          - 'rowheader /{run}/':
            - 'button "{run}: choose for a backfill"'
            - link
          - 'cell /customer for {run}/':
            - 'button /customer for {run}: consumable · 16 partitions/'
          - 'cell /orders_by_customer for {run}/':
            - 'button /orders_by_customer for {run}: failed · 5\/16 partitions/'
    """)
