"""The texts of messages, from facts alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

pytestmark = pytest.mark.airflow

from stagehold.airflow.telling.news import LONGEST, Progressed, Remaining, RunNews, gate_cause, was_resumed  # noqa: E402  # noqa: E402
from stagehold.model.choices import Severity  # noqa: E402
from stagehold.model.records import Cell, GateResult, RunState  # noqa: E402
from stagehold.model.standing import (  # noqa: E402
    DeclaredStage,
    PartitionState,
    Standing,
)
from stagehold.model.states import RunEvent, Transition  # noqa: E402
from stagehold.spec.settings.airflow_settings import Hook  # noqa: E402

LINK = "http://localhost:8080/dags/sales/runs/scheduled__2026-11-20T02%3A00%3A00%2B00%3A00/plugin/stagehold"
NOW = datetime(2026, 11, 20, 3, tzinfo=UTC)


def news(hook: Hook, cause: str = "KeyError: 'x'", **facts: object) -> RunNews:
    known = {
        "progressed": Progressed(
            "totals", Standing.of(DeclaredStage("totals", 16, result=True), {PartitionState.CONSUMABLE: 5})
        ),
        "remaining": Remaining(11, 37),
        "link": LINK,
        "pipeline": "sales",
        "interval": "2026-11-20",
        "run_id": "sales/scheduled__1",
        **facts,
    }
    return RunNews(hook=hook, cause=cause, **known)


@pytest.mark.parametrize(
    ("told", "text"),
    [
        (
            news(Hook.ON_FAILURE),
            "sales 2026-11-20 failed at totals, 5 of 16 consumable: KeyError: 'x'. Resume runs 11 and reuses 37 "
            "partitions.",
        ),
        (
            news(Hook.ON_FAILURE, "Is it lost?", remaining=Remaining(0, 37, 2)),
            "sales 2026-11-20 failed at totals, 5 of 16 consumable: Is it lost? Resume runs 0 and reuses 37 "
            "partitions, 2 stay blocked.",
        ),
        (news(Hook.ON_FAILURE, progressed=None, remaining=None), "sales 2026-11-20 failed: KeyError: 'x'."),
        (
            news(Hook.ON_GATE_WARNING, "warning few(rows) not met by partition(s) 3-7: 12"),
            "sales 2026-11-20, gate at totals, 5 of 16 consumable: warning few(rows) not met by partition(s) 3-7: 12. "
            "A resume now runs 11 and reuses 37 partitions.",
        ),
        (
            news(Hook.ON_RESUME),
            "sales 2026-11-20 goes on at totals, 5 of 16 consumable, runs 11 and reuses 37 partitions. "
            "Before: KeyError: 'x'.",
        ),
        (news(Hook.ON_RESUME, progressed=None, remaining=None), "sales 2026-11-20 goes on. Before: KeyError: 'x'."),
        (
            news(Hook.ON_FAILURE, "two\n  lines", remaining=None),
            "sales 2026-11-20 failed at totals, 5 of 16 consumable: two lines.",
        ),
    ],
)
def test_a_message_has_all_facts_and_ends_with_the_link(told, text):
    assert told.message == f"{text} {LINK}"


@pytest.mark.parametrize("hook", Hook)
@pytest.mark.parametrize("cause", ["", "x" * 5000, "word " * 900, "ä\n" * 300])
@pytest.mark.parametrize("link", ["", LINK, LINK + "x" * 100])
def test_a_message_fits_a_phone_whatever_the_cause_is(hook, cause, link):
    message = news(hook, cause, link=link).message
    assert len(message) <= LONGEST
    assert message.endswith(link)
    assert "\n" not in message
    assert message.startswith("sales 2026-11-20")


def test_a_link_is_never_cut():
    link = LINK + "x" * 400
    assert news(Hook.ON_FAILURE, link=link).message.endswith(f" {link}")


def verdict(partition: int, expectation: str, severity: Severity, observed: str = "3 unexpected") -> GateResult:
    cell = Cell("sales", "totals", "2026-11-20")
    return GateResult(cell, partition, "a", "totals", expectation, False, observed, NOW, severity)


def test_a_message_names_critical_expectations_first_and_each_once():
    said = [
        verdict(9, "few(rows)", Severity.WARNING, "12"),
        *(verdict(number, "not_null(price)", Severity.CRITICAL) for number in (3, 4, 5, 8)),
    ]
    assert gate_cause(said) == (
        "critical not_null(price) not met by partition(s) 3-5, 8: 3 unexpected; "
        "warning few(rows) not met by partition(s) 9: 12"
    )


def moved(after: RunState, minutes: int, attempt: str | None = None) -> Transition:
    return Transition("r", attempt, RunState.RUNNING, after, RunEvent.FAIL, NOW + timedelta(minutes=minutes))


@pytest.mark.parametrize(
    ("history", "resumed"),
    [
        ((), False),
        ((moved(RunState.FAILED, -1),), True),
        ((moved(RunState.CANCELED, -1),), True),
        ((moved(RunState.RUNNING, -1),), True),  # all its processes were killed
        ((moved(RunState.FAILED, -2), moved(RunState.FINISHED, -1)), False),
        ((moved(RunState.FAILING, 1),), False),  # in this start: other tasks go on
        ((moved(RunState.FINISHED, -2), moved(RunState.FAILED, -1, "an attempt")), False),
    ],
)
def test_a_start_of_a_run_is_a_resume_if_the_one_before_did_not_finish(history, resumed):
    assert was_resumed(history, NOW) is resumed
