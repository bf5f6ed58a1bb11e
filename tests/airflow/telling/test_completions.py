"""Which of a region's tasks ended last, as each of them sees it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.airflow

from stagehold.airflow.telling.task_work import BEFORE_ALL, complete_before  # noqa: E402
from stagehold.model.records import Attempt, AttemptState  # noqa: E402

START = datetime(2026, 11, 20, 3, tzinfo=UTC)
F, X = AttemptState.FINISHED, AttemptState.FAILED


def at(minute: int) -> datetime:
    return START + timedelta(minutes=minute)


def tried(name: str, begin: int, end: int | None, state: AttemptState = F) -> Attempt:
    """``name`` is the share's letter and a number; an attempt without an end still runs."""
    ended, now = (None, AttemptState.RUNNING) if end is None else (at(end), state)
    return Attempt(name, "r", "p", "i", "region", 1, now, at(begin), ended, share=name[0])


def told(*attempts: Attempt) -> dict[str, int | None]:
    """Since when each share's newest attempt tells, for those that do."""
    found = {share: complete_before(share, attempts, ["a", "b"]) for share in ("a", "b")}
    return {
        share: None if since == BEFORE_ALL else int((since - START).total_seconds() // 60)
        for share, since in found.items()
        if since is not None
    }


@pytest.mark.parametrize(
    ("attempts", "expected"),
    [
        ([tried("a1", 0, 1)], {}),
        ([tried("a1", 0, 1), tried("b1", 0, None)], {}),
        ([tried("a1", 0, 1), tried("b1", 0, 2)], {"b": None}),
        ([tried("a1", 0, 2), tried("b1", 0, 2)], {"b": None}),  # in the same moment
        ([tried("a1", 0, 1), tried("b1", 2, 3)], {"b": None}),  # one after the other
        ([tried("a1", 0, 1), tried("b1", 0, 2, X)], {}),
        ([tried("a1", 0, 1), tried("b1", 0, 2, X), tried("b2", 3, 4)], {"b": None}),
        ([tried("a1", 0, 1), tried("b1", 0, None), tried("b2", 3, 4)], {"b": None}),  # killed without a word
        ([tried("a1", 0, 1), tried("b1", 0, 2), tried("b2", 3, 4)], {"b": 2}),
        ([tried("a1", 0, 1), tried("b1", 0, 2), tried("a2", 3, 5), tried("b2", 4, 6)], {"b": 2}),
        ([tried("a1", 0, 1), tried("b1", 0, 2), tried("a2", 3, 4), tried("b2", 5, 6)], {"a": 2, "b": 4}),
    ],
)
def test_the_task_that_ends_last_reports_all_work_since_the_region_was_complete_before(attempts, expected):
    assert told(*attempts) == expected


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 5)), min_size=1, max_size=6))
def test_of_tasks_that_all_start_before_any_ends_exactly_one_reports(times):
    names = [chr(ord("a") + place) for place in range(len(times))]
    attempts = [tried(f"{name}1", begin, 6 + length) for name, (begin, length) in zip(names, times, strict=True)]
    assert sum(complete_before(name, attempts, names) is not None for name in names) == 1


def test_a_region_that_is_not_split_is_complete_with_its_one_task():
    alone = [
        Attempt("x", "r", "p", "i", "region", 1, F, at(0), at(1)),
        Attempt("y", "r", "p", "i", "region", 2, F, at(2), at(3)),
    ]
    assert complete_before(None, alone, [None]) == at(1)
