"""What happened to a run, step by step, as its page tells it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from stagehold.model.states import Transition
from stagehold.run.archive.report import RunReport

MOST_LINES = 500  # the newest


@dataclass(frozen=True)
class HistoryLine:
    """A change of the run or of an attempt, or an event; ``of`` says of what."""

    at: datetime
    of: str
    text: str


@dataclass(frozen=True)
class RunHistory:
    """Oldest first. ``archived`` says that the ledger does not know all of it any more, ``earlier`` how many lines are
    left out.
    """

    lines: tuple[HistoryLine, ...]
    earlier: int
    archived: bool


def run_history(report: RunReport, *, archived: bool) -> RunHistory:
    lines = sorted((*_changes(report), *_events(report)), key=lambda line: line.at)
    return RunHistory(tuple(lines[-MOST_LINES:]), max(0, len(lines) - MOST_LINES), archived)


def _changes(report: RunReport) -> Iterator[HistoryLine]:
    names = report.attempt_names
    for one in report.history:
        of = "run" if one.attempt_id is None else names.get(one.attempt_id, one.attempt_id)
        yield HistoryLine(one.recorded_at, of, _change(one))


def _change(one: Transition) -> str:
    return str(one.after) if one.before is None else f"{one.before} to {one.after}: {one.event}"


def _events(report: RunReport) -> Iterator[HistoryLine]:
    for one in report.events:
        yield HistoryLine(one.recorded_at, one.subject, f"{one.kind}: {one.text}")
