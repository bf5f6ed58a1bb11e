"""Who hears of a real run of a real Airflow that fails, is resumed, and is run again."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.browser import log_in
from tests.e2e.stack import Stack, until

from stagehold.local.airflow_client import DagRun
from stagehold.local.airflow_configuration import airflow_url
from stagehold.run.faults import FaultAction, Point

pytestmark = [pytest.mark.e2e, pytest.mark.browser]

TOLD = "told"


@pytest.fixture
def told(stack: Stack) -> Stack:
    return replace(stack, pipeline=TOLD, provoked="RaisingNotifier")  # it is to fail, and to fail no task


def notes(stack: Stack, interval: str) -> list[tuple[str, str]]:
    """What notifiers wrote of an interval: for which hook, and the message."""
    path = stack.settings.home_path / TOLD
    lines = path.read_text().splitlines() if path.exists() else []
    found = [line.split("|", 2) for line in lines]
    return [(hook, message) for hook, about, message in found if about == interval]


def hooks(stack: Stack, interval: str) -> Counter[str]:
    return Counter(hook for hook, _ in notes(stack, interval))


def asset_events(stack: Stack, run: DagRun) -> list[dict[str, Any]]:
    answer = stack.airflow._send("GET", f"/api/v2/assets/events?source_dag_id={TOLD}&limit=1000")
    return [event for event in answer["asset_events"] if event["source_run_id"] == run.run_id]


def tab(stack: Stack, run: DagRun) -> str:
    return f"{airflow_url(stack.settings)}/dags/{TOLD}/runs/{quote(run.run_id, safe='')}/plugin/stagehold"


def test_a_failure_a_warning_and_a_resume_are_told_once_and_an_asset_when_all_is_there(told: Stack, page: Page) -> None:
    told.inject(Point.BEFORE_PUBLISH, "customer", 1, FaultAction.FAIL)
    run = told.run("failing", expected="failed")
    until(lambda: hooks(told, "failing")["on_failure"], "the DAG processor has told of the failure", 60)
    ((_, message),) = [note for note in notes(told, "failing") if note[0] == "on_failure"]
    assert message.startswith("told failing failed at customer, 2 of 4 consumable: ")
    assert message.endswith(f" Resume runs 2 and reuses 2 partitions. {tab(told, run)}")
    assert hooks(told, "failing") == {"on_failure": 1, "on_gate_warning": 1}
    assert asset_events(told, run) == []
    failed = next(number for number in range(2) if "Failed: stage" in log(told, run, number))
    lines = log(told, run, failed).splitlines()
    (place,) = [number for number, line in enumerate(lines) if line.startswith("Failed: ")]
    assert lines[place].startswith("Failed: stage customer, wave 1, partitions ")
    assert lines[place].endswith(tab(told, run))
    assert lines[place + 1] == "::group::The whole trace"
    assert not any(line.startswith("::endgroup::") for line in lines[place:-1])
    see_one_line(told, page, run, failed)

    told.resume(run)
    assert hooks(told, "failing") == {"on_failure": 1, "on_gate_warning": 2, "on_resume": 1}
    (resumed,) = [message for hook, message in notes(told, "failing") if hook == "on_resume"]
    assert resumed.startswith("told failing goes on at customer, 2 of 4 consumable, runs 2 and reuses 2 partitions.")
    warnings = [message for hook, message in notes(told, "failing") if hook == "on_gate_warning"]
    assert all(
        "warning expect_table_row_count_to_be_between(max_value=1) not met by partition" in warning
        for warning in warnings
    )
    (event,) = asset_events(told, run)
    facts = event["extra"]
    assert (facts["interval"], facts["partitions"], facts["computed"], facts["gate"]) == ("failing", 4, 4, TOLD)
    assert facts["verdicts"] == {"passed": 4, "failed": 0, "waived": 0, "warning": 4, "info": 0}
    assert facts["not_met"] == [
        {
            "verdict": "warning",
            "expectation": "expect_table_row_count_to_be_between(max_value=1)",
            "partitions": "0-3",
        }
    ]


def test_a_run_that_reuses_everything_makes_no_event_and_tells_nobody(told: Stack) -> None:
    first = told.run("reused")
    (event,) = asset_events(told, first)
    assert (event["name"], event["extra"]["computed"]) == ("marts.told", 4)
    before = hooks(told, "reused")
    again = told.run("reused")
    assert asset_events(told, again) == []
    assert hooks(told, "reused") == before == {"on_gate_warning": 2}


def log(stack: Stack, run: DagRun, map_index: int) -> str:
    path = f"/api/v2/dags/{TOLD}/dagRuns/{quote(run.run_id, safe='')}/taskInstances/customer/logs/1"
    content = stack.airflow._send("GET", f"{path}?full_content=true&map_index={map_index}")["content"]
    return "\n".join(str(line.get("event", line)) if isinstance(line, dict) else str(line) for line in content)


def see_one_line(stack: Stack, page: Page, run: DagRun, map_index: int) -> None:
    """The log as a person sees it: the line is there, and what is folded below it is not."""
    log_in(page, stack)
    page.goto(f"/dags/{TOLD}/runs/{quote(run.run_id, safe='')}/tasks/customer/mapped/{map_index}")
    expect(page.get_by_text("Failed: stage customer, wave 1")).to_be_visible()
    expect(page.get_by_text("The whole trace")).to_be_visible()
    expect(page.get_by_text("Task failed with exception")).to_have_count(0)
