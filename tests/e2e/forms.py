"""Airflow's trigger and backfill forms, as a person fills them in."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

from playwright.sync_api import Page, expect
from playwright.sync_api import TimeoutError as PageTimeout
from tests.e2e.stack import Stack, until

from stagehold.errors import AirflowRefused

CLICK = 1000  # ms: a button of a form that closes is never still
OVERRIDE = "Override parameters on existing runs"


def open_form(page: Page, pipeline: str) -> None:
    page.goto(f"/dags/{pipeline}")
    page.get_by_role("button", name="Trigger").first.click()


def fill(page: Page, param: str, value: str) -> None:
    page.locator(f"input[name=element_{param}]").fill(value)


def end_earlier(stack: Stack, pipeline: str) -> None:
    """Airflow takes no backfill before it has noticed the end of the last one, and looks only twice a minute."""
    for one in stack.airflow._send("GET", f"/api/v2/backfills?dag_id={pipeline}")["backfills"]:
        if one["completed_at"] is None:
            with suppress(AirflowRefused):  # it has just noticed
                stack.airflow._send("PUT", f"/api/v2/backfills/{one['id']}/cancel")


def ask_for_backfill(stack: Stack, pipeline: str, body: Mapping[str, object]) -> None:
    """Through REST. Airflow allows one at a time, and on SQLite gives up when its scheduler writes meanwhile."""

    def accepted() -> bool:
        try:
            stack.airflow._send("POST", "/api/v2/backfills", {"dag_id": pipeline, "run_backwards": False, **body})
        except AirflowRefused as refused:
            if refused.status in (409, 500, 503):
                return False
            raise
        return True

    end_earlier(stack, pipeline)
    until(accepted, "Airflow takes the backfill")


def fill_moments(page: Page, *moments: str) -> None:
    """From and To. What one of them opens looks like what the other does, and is still there while it closes."""
    date, clock = page.get_by_placeholder("YYYY/MM/DD"), page.get_by_placeholder("HH:mm")
    for field, moment in zip(page.get_by_test_id("datetime-input").all(), moments, strict=True):
        day, time = moment.split()
        field.click()
        date.fill(day.replace("-", "/"))
        clock.fill(time)
        clock.press("Escape")
        expect(date).to_have_count(0)
        expect(field).to_have_text(f"{datetime.fromisoformat(moment):%b %d, %Y %H:%M}")


def press_until_accepted(page: Page) -> None:
    """On SQLite, Airflow gives up when its scheduler writes at the same moment.

    Its form may ask once more by itself, and closes once it is accepted, so what counts is what it says in the end.
    """
    button, generated = (
        page.get_by_role("button", name="Run Backfill"),
        page.get_by_text("Backfill generated", exact=True).first,
    )

    def accepted() -> bool:
        with suppress(PageTimeout):
            if button.is_visible() and button.is_enabled():
                button.click(timeout=CLICK)
        return generated.is_visible()

    until(accepted, "Airflow takes the backfill")
