"""The pages by keyboard alone, in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.airflow, pytest.mark.browser]

MOST = 5  # presses of Tab from the page's tab to its button


def open_run(page, run) -> None:
    page.goto(f"/dags/{run.dag_id}/runs/{run.run_id}/plugin/stagehold")


def presses_to(page, goal, most: int = 100) -> int:
    for presses in range(1, most + 1):
        page.keyboard.press("Tab")
        if goal.evaluate("(element) => element === document.activeElement"):
            return presses
    raise AssertionError(f"not within {most} presses")


def test_the_first_press_of_tab_shows_the_way_to_the_page_and_the_next_one_leads_to_resume(page, half_done):
    open_run(page, half_done)
    expect(page.get_by_test_id("resume")).to_be_enabled()
    page.keyboard.press("Tab")
    link = page.get_by_role("link", name="Skip to Stagehold")
    expect(link).to_be_focused()
    assert link.bounding_box()["y"] >= 0
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Stagehold", exact=True)).to_be_focused()
    assert page.url.endswith("/plugin/stagehold")
    assert presses_to(page, page.get_by_test_id("resume"), MOST) <= MOST
    page.goto("/")
    expect(page.get_by_role("link", name="Skip to Stagehold")).to_have_count(0)


def test_resume_is_a_few_presses_from_the_tab(page, half_done):
    open_run(page, half_done)
    expect(page.get_by_test_id("resume")).to_be_enabled()
    page.get_by_role("link", name="Stagehold", exact=True).focus()
    assert presses_to(page, page.get_by_test_id("resume")) <= MOST


def test_forms_of_a_run_give_the_focus_back(page, refused_run):
    open_run(page, refused_run)
    button = page.get_by_test_id("unmet").get_by_role("button", name="Waive").first
    for leave in ("Escape", "Cancel"):
        button.focus()
        page.keyboard.press("Enter")
        expect(page.get_by_label("Why?")).to_be_focused()
        if leave == "Escape":
            page.keyboard.press("Escape")
        else:
            page.get_by_role("button", name="Cancel").press("Enter")
        expect(page.get_by_test_id("waive")).to_have_count(0)
        expect(button).to_be_focused()
    button.press("Enter")
    page.keyboard.type("known returns")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("waived")).to_be_visible()
    assert page.evaluate("document.activeElement !== document.body")


def test_the_question_of_a_stage_gives_the_focus_back(page, half_done):
    open_run(page, half_done)
    page.get_by_test_id("cell-customer-5").press("Enter")
    again = page.get_by_role("button", name="Run customer again, even if nothing changed")
    again.press("Enter")
    expect(page.get_by_role("button", name="Run it again")).to_be_focused()
    page.keyboard.press("Escape")
    expect(again).to_be_focused()
    again.press("Enter")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("cleared")).to_be_visible()
    expect(page.get_by_role("region", name="Stagehold", exact=True)).to_be_focused()


def test_forms_of_savepoints_give_the_focus_back(page, half_done):
    page.goto(f"/dags/{half_done.dag_id}/plugin/stagehold-intervals")
    create = page.get_by_role("button", name="Create savepoint").first
    create.press("Enter")
    expect(page.get_by_test_id("create").get_by_label("Name")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("create")).to_have_count(0)
    expect(create).to_be_focused()
