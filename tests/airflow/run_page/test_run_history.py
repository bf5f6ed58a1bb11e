"""What happened to a run, told from a report made by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from stagehold.airflow.run_page.run_grid import MOST_LINES, run_history
from stagehold.airflow.run_page.run_responses import HistoryLine
from stagehold.model.records import Attempt, AttemptState, Event, Run, RunState
from stagehold.model.states import AttemptEvent, RunEvent, Transition
from stagehold.run.upkeep.run_archive import RunReport

NOW, RUN = datetime(2026, 11, 21, 3, tzinfo=UTC), "pipe/manual"
LATER = NOW + timedelta(seconds=5)

REPORT = RunReport(
    run=Run(RUN, "pipe", "day", "airflow", RunState.RUNNING, NOW),
    stages=(),
    attempts=(Attempt("one", RUN, "pipe", "day", "joined", 3, AttemptState.RUNNING, NOW),),
    traces={},
    failures=(),
    events=(Event(RUN, "resumed", "ann", "runs 3", NOW + timedelta(seconds=2)),),
    restores=(),
    history=(
        Transition(RUN, None, None, RunState.CREATED, None, NOW),
        Transition(RUN, "one", AttemptState.RUNNING, AttemptState.FAILED, AttemptEvent.FAIL, LATER),
        Transition(RUN, None, RunState.RUNNING, RunState.FAILING, RunEvent.FAIL, LATER),
    ),
)


def test_changes_and_events_are_in_the_order_of_time():
    told = run_history(REPORT, [])
    assert told.lines == (
        HistoryLine(at=NOW, of="run", text="created"),
        HistoryLine(at=NOW + timedelta(seconds=2), of="ann", text="resumed: runs 3"),
        HistoryLine(at=LATER, of="joined, epoch 3", text="running to failed: fail"),
        HistoryLine(at=LATER, of="run", text="running to failing: fail"),
    )
    assert (told.earlier, told.archived) == (0, False)


def test_a_long_history_shows_its_newest_lines():
    events = tuple(Event(RUN, "finished", str(number), "", LATER) for number in range(MOST_LINES))
    told = run_history(replace(REPORT, events=events), [], archived=True)
    assert (len(told.lines), told.earlier, told.lines[-1].of) == (MOST_LINES, 3, str(MOST_LINES - 1))
