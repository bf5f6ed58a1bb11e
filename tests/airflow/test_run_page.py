"""The run page in a real browser, on Airflow's own api-server; what attempts and scheduler do is played by hand."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright
from tests.airflow.made_runs import FAILURE, SPLITS, end_dag_run, fill_ledger

pytestmark = [pytest.mark.airflow, pytest.mark.browser]

CHROMIUM = Path("/usr/bin/chromium")
START_SECONDS = 30
# Airflow's own page is large, and the machine may be busy.
expect.set_options(timeout=30_000)
COLOUR = "(square) => getComputedStyle(square).backgroundColor"


@pytest.fixture(scope="module")
def server(api):
    """The app of the ``api`` fixture, behind a port; in this process, so that tests can stand in for the lake."""
    import uvicorn

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        running = uvicorn.Server(uvicorn.Config(api.app, log_level="warning", lifespan="off"))
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
        thread.start()
        deadline = time.monotonic() + START_SECONDS
        while not running.started and time.monotonic() < deadline:
            time.sleep(0.05)
        assert running.started
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        running.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-background-networking"]
        )
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser, server, bearer, request):
    """A page whose user has the role of ``@pytest.mark.parametrize("page", [role], indirect=True)``,
    by default admin.
    """
    token = bearer(getattr(request, "param", "admin"))["Authorization"].removeprefix("Bearer ")
    context = browser.new_context(viewport={"width": 1440, "height": 1000}, base_url=server)
    context.add_cookies([{"name": "_token", "value": token, "url": server}])
    yield context.new_page()
    context.close()


def open_run(page, half_done) -> None:
    page.goto(f"/dags/{half_done.dag_id}/runs/{half_done.run_id}/plugin/stagehold")


def test_the_page_shows_what_is_consumable_and_what_went_wrong(page, half_done):
    open_run(page, half_done)
    expect(page.get_by_test_id("headline")).to_have_text(
        "Failed at orders_by_customer: 53 of 81 partitions are consumable"
    )
    expect(page.get_by_test_id("failure-orders_by_customer")).to_have_text(FAILURE)
    expect(page.get_by_test_id("cause-orders_by_customer")).to_have_text("recoverable failure, rule anything_else")
    expect(page.get_by_test_id("tally-orders_by_customer")).to_have_text("5 / 16")
    expect(page.locator("[data-testid^=cell-][data-state=consumable]")).to_have_count(53)
    expect(page.locator("[data-testid^=cell-][data-state=missing]")).to_have_count(28)


def test_each_square_says_what_it_is_without_its_colour(page, half_done):
    open_run(page, half_done)
    done = page.get_by_role("button", name="orders_by_customer[4]: consumable")
    expect(done).to_have_attribute(
        "title",
        "orders_by_customer[4]: consumable · consumable, and nothing it follows from changed · 104 rows · "
        "attempt epoch 1, wave 1",
    )
    missing = page.get_by_role("button", name="orders_by_customer[5]: missing")
    assert done.inner_text() != missing.inner_text()


def test_a_click_keeps_the_facts_of_a_partition_in_view(page, half_done):
    open_run(page, half_done)
    page.get_by_test_id("cell-customer-3").click()
    expect(page.get_by_test_id("chosen")).to_contain_text("customer[3]")
    expect(page.get_by_test_id("chosen")).to_contain_text("103")
    page.get_by_test_id("cell-customer-3").click()
    expect(page.get_by_test_id("chosen")).to_have_count(0)


def test_the_preview_says_what_runs_again_and_why(page, half_done):
    open_run(page, half_done)
    expect(page.get_by_test_id("preview")).to_contain_text("reuses 53 partitions, runs 28, clears 3 tasks in this run")
    expect(page.get_by_test_id("preview")).to_contain_text("never computed for this interval (5\u201315)")


def test_pressing_resume_clears_the_tasks_and_the_page_turns_green_when_the_run_ends(page, half_done):
    open_run(page, half_done)
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_test_id("cleared")).to_contain_text("cleared 3 tasks in this run")
    expect(page.get_by_test_id("headline")).to_have_text("Running: 53 of 81 partitions are consumable")
    expect(page.get_by_test_id("resume")).to_be_disabled()
    fill_ledger(half_done.dag_id, half_done.run_id, {"orders_by_customer": SPLITS})
    expect(page.get_by_test_id("tally-orders_by_customer")).to_have_text("16 / 16")
    fill_ledger(half_done.dag_id, half_done.run_id, {"shipping_priority": SPLITS, "top_orders": 1})
    end_dag_run(half_done.dag_id, half_done.run_id)
    expect(page.get_by_test_id("headline")).to_have_text("Success: 81 of 81 partitions are consumable")
    expect(page.get_by_test_id("header")).to_have_attribute("data-state", "success")
    expect(page.get_by_test_id("resume")).to_have_count(0)


@pytest.mark.parametrize("page", ["viewer"], indirect=True)
def test_a_viewer_sees_everything_and_is_told_who_may_resume(page, half_done):
    open_run(page, half_done)
    expect(page.get_by_test_id("resume")).to_be_disabled()
    expect(page.get_by_test_id("explanation")).to_contain_text("cannot resume it")
    expect(page.get_by_test_id("preview")).to_contain_text("runs 28")


def test_a_refusal_that_comes_after_pressing_is_shown(page, half_done, api, bearer):
    open_run(page, half_done)
    button = page.get_by_role("button", name="Resume")
    expect(button).to_be_enabled()
    api.post(half_done.url + "/resume", headers=bearer("admin"), json={})
    button.click()
    expect(page.get_by_test_id("refused")).to_contain_text("is still queued")


def test_the_page_follows_airflows_dark_mode(page, half_done):
    page.emulate_media(color_scheme="dark")
    open_run(page, half_done)
    header = page.get_by_test_id("header")
    expect(header).to_be_visible()
    dark = header.evaluate(COLOUR)
    page.emulate_media(color_scheme="light")
    page.reload()
    expect(header).to_be_visible()
    assert header.evaluate(COLOUR) != dark


def test_a_dag_that_is_not_ours_is_told_apart_politely(page, half_done, monkeypatch):
    monkeypatch.setattr("stagehold.airflow.dag_runs.RegionOperator", type("OtherOperator", (), {}))
    open_run(page, half_done)
    expect(page.get_by_test_id("nothing")).to_contain_text("Nothing of Stagehold here")


def test_the_tab_is_reached_from_the_runs_own_page(page, half_done):
    page.goto(f"/dags/{half_done.dag_id}/runs/{half_done.run_id}")
    page.get_by_role("link", name="Stagehold").click()
    expect(page.get_by_test_id("tally-customer")).to_have_text("16 / 16")
