"""What axe finds on a page, in light and dark and with text at 200 %, and what a screen reader is told."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from uuid import uuid4

import pytest
from playwright.sync_api import Page, Route, expect
from tests.airflow.made_runs import fail_attempt, make_half_done, observe, spoil
from tests.airflow.overview.conftest import stopped
from tests.airflow.pipeline_page.made_checkpoints import make_checkpoints
from tests.airflow.pipeline_page.made_intervals import FAILED, PIPELINE, REUSED, WARNED, day, made_weeks

from stagehold.airflow.telling.untold import note_untold, untold
from stagehold.ledger.ledger import Ledger
from stagehold.model.standing import PipelineStanding, RunWord
from stagehold.settings import load_settings

__all__ = ["stopped"]

pytestmark = [pytest.mark.airflow, pytest.mark.browser]

AXE = (Path(__file__).parent / "vendor" / "axe-core-4.14.1.min.js").read_text(encoding="utf-8")
FOUND = """async () => (await axe.run('#stagehold-page')).violations.flatMap(
    (rule) => rule.nodes.map((node) => `${rule.id}: ${node.target}: ${node.failureSummary}`))"""
LOOKS, PAUSE_MILLISECONDS = 20, 500  # a page takes a moment to see what does not fit any more
WIDE = "(panel) => panel.scrollWidth - panel.clientWidth"


def violations(page: Page) -> list[str]:
    """Those that are still there when the page has come to rest."""
    for _ in range(LOOKS):
        told = page.evaluate(FOUND)
        if not told:
            break
        page.wait_for_timeout(PAUSE_MILLISECONDS)
    return told


def found_by_axe(page: Page) -> list[str]:
    """On the page as it is, in both of Airflow's themes, with its letters and with letters twice as large."""
    page.evaluate(AXE)
    panel = page.get_by_role("region", name=re.compile("^Stagehold"))
    found = []
    for scheme, size in product(("light", "dark"), ("100%", "200%")):
        page.emulate_media(color_scheme=scheme)
        expect(page.locator("html")).to_have_class(re.compile(rf"\b{scheme}\b"))
        page.evaluate("(size) => { document.documentElement.style.fontSize = size; }", size)
        told = violations(page)
        wider = panel.evaluate(WIDE)
        told += [f"{wider} pixels are beside the page"] if wider > 0 else []
        found += [f"{scheme}, {size}: {violation}" for violation in told]
    return found


def test_axe_finds_nothing_on_the_page_of_all_pipelines(page, own_ledger, stopped):
    page.goto("/plugin/stagehold-pipelines")
    expect(page.get_by_test_id(f"need-{PIPELINE}-{stopped}")).to_be_visible()
    expect(page.get_by_test_id("storage")).to_contain_text("iB")
    found = found_by_axe(page)
    assert not found, "\n".join(found)


def however_it_stands(route: Route) -> None:
    """The first pipeline's row once for each way to stand, with a mark for each word of a run."""
    headers = {name: text for name, text in route.request.headers.items() if name != "if-none-match"}
    answer = route.fetch(headers=headers)
    told = answer.json()
    row = next(row for row in told["pipelines"] if row["marks"])
    marks = [{**row["marks"][0], "word": word, "interval": f"of {word}"} for word in RunWord]
    told["pipelines"] = [
        {**row, "name": f"stands_{standing}", "standing": standing, "marks": marks} for standing in PipelineStanding
    ]
    route.fulfill(response=answer, json=told)


def test_axe_finds_nothing_however_a_pipeline_stands(page, own_ledger, stopped):
    page.route("**/stagehold/api/overview?*", however_it_stands)
    page.goto("/plugin/stagehold-pipelines")
    expect(page.get_by_test_id(f"pipeline-stands_{PipelineStanding.RUNNING}")).to_be_visible()
    found = found_by_axe(page)
    assert not found, "\n".join(found)


def test_axe_finds_nothing_on_the_page_of_a_run_with_all_of_it_open(page, refused_run):
    """Its forms and questions, too."""
    spoil(refused_run, "shipping_priority", [0, 1])  # so that more runs again than what failed, which is asked about
    for before, value in ((1, "41"), (0, "99")):
        observe(refused_run, "shipping_priority", value, before)
    fail_attempt(refused_run, "top_orders", "A long story.\n" * 60)
    with Ledger.open(load_settings().ledger_url) as ledger:
        failed = untold("notifier pager:Pager of on_failure", ConnectionError("nobody answers"))
        note_untold(f"{refused_run.dag_id}/{refused_run.run_id}", [failed], ledger)
    page.goto(f"/dags/{refused_run.dag_id}/runs/{refused_run.run_id}/plugin/stagehold")
    for name in ("attempts", "history"):
        page.get_by_test_id(name).locator("summary").click()
    lines = page.get_by_test_id("gate-shipping_priority").get_by_test_id("verdicts")
    for number in (0, 2):
        lines.nth(number).get_by_role("button").click()
    expect(page.get_by_test_id("history")).to_contain_text("running to finished")
    expect(page.get_by_test_id("chart")).to_be_visible()
    page.get_by_test_id("cell-shipping_priority-3").click()
    page.get_by_role("button", name="Run shipping_priority again, even if nothing changed").click()
    page.get_by_test_id("unmet").get_by_role("button", name="Waive").first.click()
    page.get_by_test_id("resume").click()
    expect(page.get_by_role("alertdialog")).to_be_visible()
    found = found_by_axe(page)
    assert not found, "\n".join(found)


def test_axe_finds_nothing_on_the_tab_of_a_pipeline_with_all_of_it_open(page, api, bearer):
    """Each of its cards, with its form or the facts of one of its lines."""
    with made_weeks():
        run = make_half_done(PIPELINE, f"manual__{uuid4()}")
        make_checkpoints(run)
        api.post(f"{run.url}/savepoints", headers=bearer("admin"), json={"name": f"kept-{uuid4().hex[:8]}"})
        page.goto(f"/dags/{PIPELINE}/plugin/stagehold-intervals")
        page.get_by_test_id(f"interval-{day(WARNED)}").click()
        page.get_by_test_id(f"interval-{day(REUSED)}").click(modifiers=["Shift"])
        page.get_by_test_id("comparison").locator("summary").click()
        page.get_by_test_id(f"cell-{day(FAILED)}-orders_by_customer").click()
        page.get_by_test_id("checkpoint").last.get_by_role("button").click()
        page.get_by_test_id("backfill").get_by_role("button", name="Show the plan").click()
        page.get_by_role("button", name="Create savepoint").first.click()
        for shown in ("facts", "compared", "parts", "backfill-start", "create", "growth", "recoveries", "gate-rates"):
            expect(page.get_by_test_id(shown)).to_be_visible()
        found = found_by_axe(page)
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


def test_a_screen_reader_is_told_the_intervals_and_runs_of_a_pipeline_by_role_and_name(page, half_done):
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
    runs = page.get_by_role("table", name="Runs by stages; arrow keys go from one to the next")
    expect(runs).to_match_aria_snapshot(rf"""
      - rowgroup:
        - row:
          - columnheader "Run"
          - columnheader "customer"
          - columnheader "top_orders"
      - rowgroup:
        - 'row /{run}/':
          - 'rowheader /{run}/':
            - link "{run}"
          - 'cell /customer in {run} for {run}: ran/':
            - 'link /customer in {run} for {run}: ran · 16 ran/'
          - 'cell /orders_by_customer in {run} for {run}: failed/':
            - 'link /orders_by_customer in {run} for {run}: failed/'
    """)
