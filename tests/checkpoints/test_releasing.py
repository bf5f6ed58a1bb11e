"""Which intervals' outputs go when a run has ended, as `retain` says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from stagehold.checkpoints.releasing import intervals_over
from stagehold.model.records import RunState
from stagehold.spec.settings.run_settings import RetentionSettings

NOW = datetime(2026, 11, 20, 8, tzinfo=UTC)
# The newest first: one a day, each of 10 bytes; the third may still be resumed.
INTERVALS = ("a", "b", "c", "d", "e")
SIZES = dict.fromkeys(INTERVALS, 10)
RUNS = [
    SimpleNamespace(
        interval=interval,
        state=RunState.FAILED if interval == "c" else RunState.FINISHED,
        ended_at=None if interval == "c" else NOW - timedelta(days=place),
        started_at=NOW - timedelta(days=place),
    )
    for place, interval in enumerate(INTERVALS)
]


@pytest.mark.parametrize(
    ("retain", "over"),
    [
        pytest.param({}, "", id="thirty by default"),
        pytest.param({"intervals": 5}, "", id="as many as there are"),
        pytest.param({"intervals": 4}, "e", id="the oldest"),
        pytest.param({"intervals": 1}, "bde", id="one that failed keeps what it has"),
        pytest.param({"intervals": 0}, "abde", id="none"),
        pytest.param({"age": "2d"}, "de", id="older than two days"),
        pytest.param({"age": "3d"}, "e", id="older than three days"),
        pytest.param({"bytes": "20B"}, "de", id="what does not fit, the failed one counted"),
        pytest.param({"bytes": "19B"}, "bde", id="no half of an interval"),
        pytest.param({"bytes": "1B"}, "abde", id="not even the newest fits"),
        pytest.param({"intervals": 4, "age": "2d", "bytes": "1TB"}, "de", id="whichever limit is reached first"),
    ],
)
def test_outputs_of_intervals_go_once_a_limit_is_reached(retain, over):
    assert intervals_over(RUNS, RetentionSettings.model_validate(retain), SIZES, NOW) == tuple(over)


def test_what_was_released_takes_no_room():
    retained = RetentionSettings.model_validate({"bytes": "20B"})
    assert intervals_over(RUNS, retained, {**SIZES, "b": 0}, NOW) == ("d", "e")
