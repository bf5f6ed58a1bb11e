"""Chromium on the pages of a running stack."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright
from tests.e2e.stack import Stack

from stagehold.local.airflow_configuration import USER, admin_password, airflow_url

CHROMIUM = Path("/usr/bin/chromium")
PATIENCE = 30_000  # ms: Airflow's page is large, and Spark has the other core
expect.set_options(timeout=PATIENCE)


@contextmanager
def new_page(stack: Stack) -> Iterator[Page]:
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-background-networking"]
        )
        made = chromium.new_page(base_url=airflow_url(stack.settings), viewport={"width": 1440, "height": 1100})
        made.set_default_timeout(PATIENCE)
        yield made
        chromium.close()


def log_in(page: Page, stack: Stack) -> None:
    page.goto("/auth/login")
    page.locator("input[name=username]").fill(USER)
    password = page.locator("input[name=password]")
    password.fill(admin_password(stack.settings))
    password.press("Enter")
    page.wait_for_url(lambda url: "/login" not in url)
