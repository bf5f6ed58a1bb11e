"""The tabs in a real browser, on Airflow's own api-server in this process, so that tests can stand in for the lake."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from fastapi.testclient import TestClient
    from playwright.sync_api import Browser, BrowserContext, Page

CHROMIUM = Path("/usr/bin/chromium")
START_SECONDS = 30


@pytest.fixture(scope="session")
def server(api: TestClient) -> Iterator[str]:
    """The app of the ``api`` fixture, behind a port."""
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
def browser() -> Iterator[Browser]:
    """Not for the session: while Playwright runs, nothing else in its thread may have an event loop."""
    from playwright.sync_api import expect, sync_playwright

    # Airflow's own page is large, and the machine may be busy.
    expect.set_options(timeout=30_000)
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-background-networking"]
        )
        yield chromium
        chromium.close()


@pytest.fixture
def other_page(
    browser: Browser, server: str, bearer: Callable[[str], dict[str, str]]
) -> Iterator[Callable[[str], Page]]:
    """Makes a page of a user with a role."""
    contexts: list[BrowserContext] = []

    def opened(role: str) -> Page:
        token = bearer(role)["Authorization"].removeprefix("Bearer ")
        contexts.append(browser.new_context(viewport={"width": 1440, "height": 1000}, base_url=server))
        contexts[-1].add_cookies([{"name": "_token", "value": token, "url": server}])
        return contexts[-1].new_page()

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture
def page(other_page: Callable[[str], Page], request: pytest.FixtureRequest) -> Page:
    """A page whose user has the role of ``@pytest.mark.parametrize("page", [role], indirect=True)``,
    by default admin.
    """
    return other_page(getattr(request, "param", "admin"))
