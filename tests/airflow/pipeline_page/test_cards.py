"""The tab's cards of checkpoints, savepoints and gate rates in a real browser, on Airflow's own api-server."""

from __future__ import annotations

from uuid import uuid4

import pytest
from playwright.sync_api import expect
from tests.airflow.made_runs import NULLS, make_half_done, observe
from tests.airflow.pipeline_page.made_checkpoints import FAILURE, make_checkpoints, take_checkpoint

from stagehold.lake.checkpoints.savepoints import Savepoints
from stagehold.ledger.ledger import Ledger
from stagehold.settings import load_settings

pytestmark = [pytest.mark.airflow, pytest.mark.browser]

COLOUR = "(card) => getComputedStyle(card).backgroundColor"


def open_cards(page) -> None:
    page.goto("/dags/shipping_priority/plugin/stagehold-intervals")


def test_checkpoints_are_told_as_flink_tells_them(page, half_done):
    make_checkpoints(half_done)
    open_cards(page)
    rows = page.get_by_test_id("checkpoint")
    expect(rows.nth(0)).to_contain_text("in progress")
    expect(rows.nth(1)).to_contain_text("failed")
    expect(rows.nth(2)).to_contain_text("2.0 KiB")
    expect(rows.nth(2)).to_contain_text("5.0 KiB in full")
    expect(rows.nth(2)).to_contain_text("2/2")
    summary = page.get_by_test_id("checkpoint-summary").get_by_role("row")
    expect(summary.nth(1)).to_contain_text("Duration")
    expect(summary.nth(2)).to_contain_text("Waited for waves to end")
    answer = page.request.get("/stagehold/api/dags/shipping_priority/checkpoints").json()
    middle = answer["summary"]["bytes_written"]["p50"]  # of this test's checkpoints, and those of tests before it
    expect(summary.nth(3)).to_contain_text(f"{middle / 1024:.1f} KiB")
    with Ledger.open(load_settings().ledger_url) as ledger:
        take_checkpoint(half_done, ledger, 4, ledger.pipelines.changed(0, 0)[1])
    page.reload()
    rows.nth(0).get_by_role("button").click()
    held = page.get_by_test_id("stage-parts").get_by_role("row", name="orders_by_customer")
    expect(held).to_contain_text("5")
    rows.nth(0).get_by_role("button").click()
    rows = page.locator("[data-testid=checkpoint]:not(:first-child)")
    rows.nth(1).get_by_role("button").click()
    parts = page.get_by_test_id("parts")
    expect(parts).to_contain_text(FAILURE)
    expect(parts).to_contain_text("declined: checkpoint declined task closing")
    rows.nth(2).get_by_role("button").click()
    expect(parts).to_have_count(1)
    expect(parts).not_to_contain_text(FAILURE)


def test_older_checkpoints_are_a_page_away(page, half_done):
    for run in (make_half_done(half_done.dag_id, f"manual__{uuid4()}") for _ in range(4)):
        make_checkpoints(run)
    open_cards(page)
    card = page.get_by_test_id("checkpoints")
    expect(card.get_by_test_id("checkpoint")).to_have_count(10)
    expect(card.get_by_role("button", name="Newer")).to_be_disabled()
    card.get_by_role("button", name="Older").click()
    expect(card).to_contain_text("11\u2013")
    expect(card.get_by_role("button", name="Newer")).to_be_enabled()


def test_a_savepoint_from_making_it_to_throwing_it_away(page, half_done):
    name = f"kept-{uuid4().hex[:8]}"
    open_cards(page)
    card = page.get_by_test_id("savepoints")
    card.get_by_role("button", name="Create savepoint").click()
    form = page.get_by_test_id("create")
    expect(form.get_by_role("button", name="Create savepoint")).to_be_disabled()
    form.get_by_label("Name").fill(name)
    form.get_by_label("What for?").fill("before the fix")
    form.get_by_role("button", name="Create savepoint").click()
    expect(page.get_by_test_id("savepoint-done")).to_have_text(f"Savepoint {name} is made.")
    row = card.get_by_role("row").filter(has_text=name)
    expect(row).to_contain_text("before the fix")
    expect(row).to_contain_text("admin user")
    row.get_by_role("button", name="Dispose").click()
    page.get_by_test_id("dispose").get_by_role("button", name="Not now").click()
    assert Savepoints(load_settings().lake_uri).find(name)
    row.get_by_role("button", name="Dispose").click()
    page.get_by_test_id("dispose").get_by_role("button", name=f"Dispose of {name}").click()
    expect(page.get_by_test_id("savepoint-done")).to_contain_text(f"Savepoint {name} is gone.")
    assert Savepoints(load_settings().lake_uri).find(name) is None


def test_a_run_is_started_that_begins_with_a_savepoint(page, half_done, api, bearer):
    name = f"kept-{uuid4().hex[:8]}"
    api.post(f"{half_done.url}/savepoints", headers=bearer("admin"), json={"name": name})
    open_cards(page)
    row = page.get_by_test_id("savepoints").get_by_role("row").filter(has_text=name)
    row.get_by_role("button", name="Restore").click()
    form = page.get_by_test_id("restore")
    expect(form.get_by_label("For the interval")).to_have_value(half_done.run_id)
    form.get_by_role("button", name="Start the run").click()
    expect(page.get_by_test_id("savepoint-done")).to_contain_text(f"it begins with {name}, for {half_done.run_id}")
    newest = {"order_by": "-id", "limit": 1}
    (run,) = api.get("/api/v2/dags/shipping_priority/dagRuns", headers=bearer("admin"), params=newest).json()[
        "dag_runs"
    ]
    assert (run["conf"]["restore"], run["conf"]["interval"]) == (name, half_done.run_id)


def test_what_cannot_be_made_says_why(page, half_done):
    open_cards(page)
    page.get_by_role("button", name="Create savepoint").click()
    form = page.get_by_test_id("create")
    form.get_by_label("Name").fill("a b")
    form.get_by_role("button", name="Create savepoint").click()
    expect(form.get_by_role("alert")).to_contain_text("No savepoint can be called 'a b'")


@pytest.mark.parametrize("page", ["viewer"], indirect=True)
def test_a_viewer_is_told_why_the_buttons_do_nothing(page, half_done, api, bearer):
    name = f"kept-{uuid4().hex[:8]}"
    api.post(f"{half_done.url}/savepoints", headers=bearer("admin"), json={"name": name})
    open_cards(page)
    row = page.get_by_test_id("savepoints").get_by_role("row").filter(has_text=name)
    for button in (
        page.get_by_role("button", name="Create savepoint"),
        row.get_by_role("button", name="Restore"),
        row.get_by_role("button", name="Dispose"),
    ):
        expect(button).to_be_disabled()
    expect(page.get_by_test_id("savepoint-refusal")).to_contain_text("Ask somebody who may edit it")


def test_gate_rates_are_a_bar_for_each_interval(page, refused_run):
    for before, value in ((2, "40.5"), (1, "41"), (0, "99")):
        observe(refused_run, "shipping_priority", value, before)
    open_cards(page)
    stage = page.get_by_test_id("rates-shipping_priority")
    nulls = stage.get_by_test_id("rates").filter(has_text=NULLS)
    bar = nulls.get_by_role("img", name=f"{refused_run.run_id}: 5 not met: blocks")
    expect(bar.locator("[data-outcome=failed]")).to_have_count(1)
    mean = stage.get_by_test_id("rates").filter(has_text="expect_column_mean_to_be_between")
    expect(mean.get_by_role("img")).to_have_count(3)


def test_the_cards_follow_airflows_dark_mode(page, half_done):
    colours = set()
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        open_cards(page)
        card = page.get_by_test_id("savepoints")
        expect(card).to_be_visible()
        colours.add(card.evaluate(COLOUR))
    assert len(colours) == 2


def test_nothing_is_cut_off_at_700_pixels(page, refused_run):
    make_checkpoints(refused_run)
    open_cards(page)
    panel = page.get_by_test_id("stagehold-intervals")
    expect(page.get_by_test_id("gate-rates")).to_be_visible()
    panel.evaluate("(panel) => { panel.style.width = '700px'; }")
    page.get_by_test_id("checkpoint").first.get_by_role("button").click()
    page.get_by_role("button", name="Create savepoint").click()
    for name in ("checkpoints", "savepoints", "gate-rates"):
        wide = page.get_by_test_id(name).evaluate("(card) => [card.scrollWidth, card.clientWidth]")
        assert wide[0] <= wide[1], name
    assert panel.evaluate("(panel) => panel.scrollWidth <= panel.clientWidth")
