"""How quick the page of a run is: its API, and in Chromium its headline, its longest freeze and its number of nodes.

    python bench/page.py [REPETITIONS]

Runs of 81, 12,016 and 100,024 partitions stopped half-way. Airflow's own app serves them from this process, over HTTP.
Of the API: the first answer, which of a large run has no plan yet; the answer that has one, when it is first made, and
when it is kept; its bytes; and a poll that names what it has. Of the page: from the press of its tab to its headline;
the longest task of the browser's main thread from then on, until a stage's squares and the attempts have been opened
and closed; and the elements that it has. Airflow's own start comes before that and is not counted. For comparison, the
same is measured of a tab of Airflow's own, in a page of its own. Prints a table, writes results/page.json, and ends
with 1 if a limit is missed: the headline within 1 s, an answer of the API within 300 ms and 100 KB, no task above
50 ms, 304 for a run that has not changed. The default is 5 repetitions.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "include"), str(HERE.parent)]

import httpx  # noqa: E402
from worlds.half_done_runs import SAMPLE, airflow_server, data_is_there, make_runs, prepare, token  # noqa: E402
from worlds.results import write_results  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page
    from tests.airflow.made_runs import HalfDone

RESULTS = HERE / "results" / "page.json"
CHROMIUM = Path("/usr/bin/chromium")
SIZES = {"wide_12016": (3_000, 16), "wide_100024": (25_000, 24)}  # partitions of each of four stages, and of the last
HEADLINE_SECONDS, ANSWER_SECONDS, ANSWER_BYTES, FREEZE_MILLISECONDS = 1.0, 0.3, 100_000, 50.0
POLLS = 10
POLL_SECONDS = 1.5  # as the page asks while something is about to change
SETTLE_MILLISECONDS = 3_000  # until Airflow's own page has come to rest
PATIENCE = 180_000  # milliseconds until the browser gives up
WATCH = """
window.longTasks = [];
new PerformanceObserver((list) => list.getEntries().forEach((one) => window.longTasks.push(one.duration)))
  .observe({ type: "longtask" });
"""
LONGEST = "() => Math.max(0, ...window.longTasks)"
AIRFLOWS_OWN = "Details"  # a tab


def main() -> int:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    before = os.getloadavg()
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder), SIZES)
        runs = make_runs(SIZES)
        print(f"made {len(runs)} runs", flush=True)
        with data_is_there(), airflow_server() as url:
            answers = {name: _api(run, url) for name, run in runs.items()}
            pages = dict(_pages(runs, url, repetitions))
    measured = [{**answers[name], **pages[name]} for name in (SAMPLE, *SIZES)]
    write_results(RESULTS, before, repetitions=repetitions, sizes=measured)
    return 0 if _report(measured) else 1


def _api(run: HalfDone, url: str) -> dict[str, Any]:
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token()}"}, timeout=600) as client:
        began = time.perf_counter()
        first, seconds = _timed(lambda: client.get(f"{run.url}/grid"))
        planned = first
        while not planned.json()["planned"]:
            time.sleep(POLL_SECONDS)
            planned = client.get(f"{run.url}/grid")
        with_plan = time.perf_counter() - began
        kept = [_timed(lambda: client.get(f"{run.url}/grid")) for _ in range(POLLS)]
        known = {"If-None-Match": kept[-1][0].headers["etag"]}
        polls = [_timed(lambda: client.get(f"{run.url}/grid", headers=known)) for _ in range(POLLS)]
    print(f"{run.dag_id}: its plan after {with_plan:.1f} s", flush=True)
    return {
        "partitions": planned.json()["partitions"],
        "first_answer_seconds": seconds,
        "first_answer_has_a_plan": first.json()["planned"],
        "first_plan_seconds": with_plan,
        "kept_plan_seconds": [one for _, one in kept],
        "bytes": max(len(answer.content) for answer, _ in kept),
        "poll_seconds": [one for _, one in polls],
        "poll_statuses": [answer.status_code for answer, _ in polls],
    }


def _timed(ask: Callable[[], httpx.Response]) -> tuple[httpx.Response, float]:
    began = time.perf_counter()
    answer = ask()
    answer.raise_for_status() if answer.is_error else None
    return answer, time.perf_counter() - began


def _pages(runs: dict[str, HalfDone], url: str, repetitions: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each in turn, so that what else the machine does meets all sizes alike."""
    from playwright.sync_api import sync_playwright

    found: dict[str, list[dict[str, float]]] = {name: [] for name in runs}
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for _ in range(repetitions):
            for name, run in runs.items():
                found[name].append(_page(browser, run, url))
            print(f"opened {len(runs)} pages", flush=True)
        browser.close()
    for name, some in found.items():
        yield name, {field: [one[field] for one in some] for field in some[0]}


def _page(browser: Browser, run: HalfDone, url: str) -> dict[str, float]:
    with _at_rest(browser, run, url) as page:
        measured = _opened(page)
    with _at_rest(browser, run, url) as page:
        page.get_by_role("link", name=AIRFLOWS_OWN, exact=True).evaluate("(tab) => tab.click()")
        page.wait_for_timeout(SETTLE_MILLISECONDS)
        measured["longest_task_of_airflows_own_milliseconds"] = page.evaluate(LONGEST)
    return measured


@contextmanager
def _at_rest(browser: Browser, run: HalfDone, url: str) -> Iterator[Page]:
    """Airflow's page of the run, with what its start took forgotten."""
    context = browser.new_context(viewport={"width": 1440, "height": 1000}, base_url=url)
    context.set_default_timeout(PATIENCE)
    context.add_cookies([{"name": "_token", "value": token(), "url": url}])
    context.add_init_script(WATCH)
    page = context.new_page()
    page.goto(f"/dags/{run.dag_id}/runs/{run.run_id}")
    page.get_by_role("link", name="Stagehold", exact=True).wait_for()
    page.wait_for_timeout(SETTLE_MILLISECONDS)
    page.evaluate("() => { window.longTasks = []; }")
    yield page
    context.close()


def _opened(page: Page) -> dict[str, float]:
    """In the page itself, so that the way to it does not count."""
    headline = page.evaluate(
        """async () => {
          const began = performance.now();
          [...document.querySelectorAll("a")].find((one) => one.textContent.trim() === "Stagehold").click();
          while (!document.querySelector("[data-testid=headline]")) await new Promise(requestAnimationFrame);
          return performance.now() - began;
        }"""
    )
    page.get_by_test_id("grid").wait_for()
    part = page.locator("[data-testid^=part-]").first
    if part.count():
        part.click()
        page.locator("[data-testid^=cell-]").first.wait_for()
        part.click()
    for _ in range(2):
        page.get_by_test_id("attempts").locator("summary").click()
        page.wait_for_timeout(1_000)
    return {
        "headline_seconds": headline / 1000,
        "longest_task_milliseconds": page.evaluate(LONGEST),
        "elements": page.evaluate("() => document.querySelectorAll('[data-testid=stagehold] *').length"),
    }


def _report(measured: Sequence[dict[str, Any]]) -> bool:
    """Print medians; whether every limit is kept."""
    kept = True
    for one in measured:
        headline, answer, poll = (
            statistics.median(one[field]) for field in ("headline_seconds", "kept_plan_seconds", "poll_seconds")
        )
        freeze = statistics.median(one["longest_task_milliseconds"])
        own = statistics.median(one["longest_task_of_airflows_own_milliseconds"])
        print(
            f"{one['partitions']:>9,} partitions: first answer {one['first_answer_seconds']:.3f} s, plan after "
            f"{one['first_plan_seconds']:.2f} s, kept {answer:.3f} s, {one['bytes'] / 1000:.1f} KB, poll {poll:.3f} s; "
            f"headline {headline:.2f} s, longest task {freeze:.0f} ms "
            f"(Airflow's own tab {own:.0f} ms), {max(one['elements']):,} elements"
        )
        kept = kept and headline < HEADLINE_SECONDS and max(one["first_answer_seconds"], answer) < ANSWER_SECONDS
        kept = kept and one["bytes"] < ANSWER_BYTES and freeze <= FREEZE_MILLISECONDS
        kept = kept and set(one["poll_statuses"]) == {304}
    return kept


if __name__ == "__main__":
    sys.exit(main())
