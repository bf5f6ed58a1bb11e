"""Makes the pictures of the pages in the documents, of real runs: one that failed and is resumed, and one of which a
gate refused some.

    python tools/screenshots.py [FOLDER]

The default folder is docs/images. It starts Airflow and Spark of its own, in a home that goes again, and takes some
minutes of a machine that has little else to do. Look at the pictures before they are committed.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "include"), str(HERE.parent)]

from playwright.sync_api import Page, expect  # noqa: E402
from tests.conftest import free_port  # noqa: E402
from tests.e2e.browser import log_in, new_page  # noqa: E402
from tests.e2e.driven_airflow import DrivenAirflow  # noqa: E402
from tests.e2e.stack import RUN_SECONDS, SAMPLE, Stack  # noqa: E402

from stagehold.local.control import start_supervisor, stop_supervisor  # noqa: E402
from stagehold.local.demo.sample import bring_day, make_sample  # noqa: E402
from stagehold.run.faults import FaultAction, Point  # noqa: E402
from stagehold.settings import Settings  # noqa: E402

if TYPE_CHECKING:
    from stagehold.local.airflow_client import DagRun

IMAGES = HERE.parent / "docs" / "images"
SCALE = 0.01
STAGE = "shipping_priority"  # that fails, and that a gate refuses
GOOD, REFUSED, FAILED = ("2026-11-22", "2026-11-23"), "2026-11-24", "2026-11-25"
TOTALS = "customer_totals"
MOST = {"default": 10_000_000, "refused": 250_000}  # that an order may be worth
LIMIT = """\
  - {type: expect_column_values_to_be_between, column: revenue, max_value: {$PARAMETER: most}}
samples: {keys: [l_orderkey]}
"""
SIZE = {"width": 1280, "height": 860}


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, running(Path(home)) as stack, new_page(stack) as page:
        for interval in GOOD:
            stack.run_here(interval)
        replace(stack, pipeline=TOTALS).run_here(GOOD[0])
        refused = stack.run(REFUSED, expected="failed", most=MOST["refused"])
        stack.inject(Point.AFTER_RECORD, STAGE, 1, FaultAction.FAIL)
        failed = stack.run(FAILED, expected="failed")
        log_in(page, stack)
        page.set_viewport_size(SIZE)
        shoot_run_that_failed(page, failed, folder)
        shoot_run_that_was_refused(page, refused, folder)
        shoot_pipelines(page, folder)
        shoot_pipeline(page, folder)
        shoot_run_that_was_resumed(page, failed, folder)
    for picture in sorted(folder.glob("*.png")):
        print(f"{picture.name}: {picture.stat().st_size // 1000} kB")


@contextmanager
def running(home: Path) -> Iterator[Stack]:
    sample = Settings()
    for name in ("pipelines", "suites"):
        shutil.copytree(getattr(sample, name), home / name)
    add(home / "pipelines" / f"{SAMPLE}.yaml", f"params: {{most: {MOST['default']}}}\n")
    add(home / "suites" / f"{STAGE}.yaml", LIMIT)
    settings = Settings(
        home=str(home / "home"),
        pipelines=str(home / "pipelines"),
        suites=str(home / "suites"),
        spark_port=free_port(),
        airflow_port=free_port(),
    )
    make_sample(Path(settings.lake_uri), SCALE)
    bring_day(Path(settings.lake_uri), date.fromisoformat(GOOD[0]))
    start_supervisor(settings, print)
    try:
        with DrivenAirflow.local(settings) as airflow:
            airflow.await_dag(SAMPLE)
            yield Stack(settings, airflow, SAMPLE)
    finally:
        stop_supervisor(settings)


def add(file: Path, text: str) -> None:
    file.write_text(file.read_text() + text)


def open_run(page: Page, run: DagRun) -> None:
    page.goto(f"/dags/{run.dag_id}/runs/{quote(run.run_id, safe='')}/plugin/stagehold")
    expect(page.get_by_test_id("preview")).to_be_visible()


def shoot_run_that_failed(page: Page, run: DagRun, folder: Path) -> None:
    open_run(page, run)
    page.screenshot(path=folder / "failed-run.png")


def shoot_run_that_was_refused(page: Page, run: DagRun, folder: Path) -> None:
    open_run(page, run)
    page.get_by_test_id("unmet").get_by_role("button", name="Waive").first.click()
    page.get_by_label("Why?").fill("a large order that the customer has confirmed")
    page.get_by_test_id("failures").screenshot(path=folder / "refused-run.png")
    gates = page.get_by_test_id("gates")
    gates.get_by_role("button", name="not met").click()
    expect(gates.get_by_test_id("samples").first).to_be_visible()
    gates.screenshot(path=folder / "gates.png")


def shoot_run_that_was_resumed(page: Page, run: DagRun, folder: Path) -> None:
    open_run(page, run)
    page.get_by_test_id("resume").click()
    expect(page.get_by_test_id("header")).to_have_attribute("data-state", "success", timeout=RUN_SECONDS * 1000)
    page.get_by_test_id("attempts").locator("summary").click()
    page.screenshot(path=folder / "resumed-run.png")


def shoot_pipelines(page: Page, folder: Path) -> None:
    page.goto("/plugin/stagehold-pipelines")
    expect(page.get_by_test_id("storage")).to_contain_text("iB")
    page.screenshot(path=folder / "overview-page.png")


def shoot_pipeline(page: Page, folder: Path) -> None:
    page.goto(f"/dags/{SAMPLE}/plugin/stagehold-intervals")
    expect(page.get_by_test_id("growth")).to_be_visible()
    page.get_by_test_id(f"cell-{FAILED}-{STAGE}").click()
    page.screenshot(path=folder / "pipeline-page.png")
    page.get_by_test_id("run-matrix").screenshot(path=folder / "runs.png")
    plan = page.get_by_test_id("backfill")
    plan.get_by_label("From", exact=True).fill(REFUSED)
    plan.get_by_label("To", exact=True).fill("2026-11-26")
    plan.get_by_role("button", name="Show the plan").click()
    expect(plan.get_by_test_id("backfill-totals")).to_be_visible()
    plan.screenshot(path=folder / "backfill.png")
    page.get_by_test_id("checkpoint").first.get_by_role("button").click()
    expect(page.get_by_test_id("stage-parts")).to_be_visible()
    page.get_by_test_id("checkpoints").screenshot(path=folder / "checkpoints.png")
    page.get_by_test_id("growth").screenshot(path=folder / "growth.png")


if __name__ == "__main__":
    main()
