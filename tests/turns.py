"""`make test` keeps to its minutes: tests that take less than a fifth of a second always run, the others take turns.

A turn is a share of them that takes as long as any other turn. Which one it is follows from the commit, so that a
commit's verdict is the same wherever it is tested, and each commit tries another share. A test that `seconds.json` does
not know, as a new one, runs always. The tests of a file that go on from each other (`pytest.mark.one_story`) are dealt
as one. `make test-all` runs all of them, and writes anew what each took.
"""

from __future__ import annotations

import heapq
import json
import math
import os
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

KNOWN = Path(__file__).with_name("seconds.json")
QUICK = 0.2  # of these there are too many to be worth a turn, and each is
ALL, COMMIT = "all", "commit"
CHOSEN = "STAGEHOLD_TEST_TURN"  # the processes of pytest-xdist have it from the first one, and agree


class Record:
    """What each test took, with the fixtures that were made for it, kept for the next turns."""

    def __init__(self) -> None:
        self.took: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.took[report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        there = {name: took for name, took in _known().items() if Path(KNOWN.parents[1], name.split("::")[0]).exists()}
        seconds = {**there, **{name: round(took, 1) for name, took in self.took.items()}}
        long = {name: took for name, took in sorted(seconds.items()) if took >= QUICK}
        KNOWN.write_text(json.dumps(long, indent=0) + "\n")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("turns")
    group.addoption("--within", type=float, default=600.0, help="seconds of a turn, in all processes together")
    group.addoption("--turn", default=COMMIT, help=f"its number, {COMMIT!r} (that of the commit) or {ALL!r}")


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        return
    if config.option.turn == ALL:
        config.pluginmanager.register(Record())
    else:
        os.environ[CHOSEN] = _chosen(config.option.turn)


@pytest.hookimpl(trylast=True)  # marks have been asked for by then
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.turn == ALL:
        return
    known = _known()
    names = {item.nodeid: _dealt_as(item) for item in items if not _is_in_each(item)}
    long = together(names, known)
    turns = dealt(long, config.option.within)
    left_out = long.keys() - turns[int(os.environ[CHOSEN]) % len(turns)]
    others = [item for item in items if names.get(item.nodeid) in left_out]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if names.get(item.nodeid) not in left_out]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.option.turn != ALL:
        terminalreporter.write_line(f"Long tests take turns: this was TURN={os.environ[CHOSEN]}; TURN={ALL} runs all.")


def together(dealt_as: Mapping[str, str], known: Mapping[str, float]) -> dict[str, float]:
    """What is dealt as one, with its seconds: the same to the last bit in each process, or they would not agree."""
    parts: dict[str, list[float]] = {}
    for test in dealt_as.keys() & known.keys():
        parts.setdefault(dealt_as[test], []).append(known[test])
    return {name: math.fsum(seconds) for name, seconds in parts.items()}


def dealt(seconds: Mapping[str, float], within: float) -> list[set[str]]:
    """Each test is in one turn, and the longest are dealt first, each to the turn that has least."""
    turns: list[set[str]] = [set() for _ in range(max(1, math.ceil(math.fsum(seconds.values()) / within)))]
    lightest = [(0.0, number) for number in range(len(turns))]
    for name in sorted(seconds, key=lambda one: (-seconds[one], one)):
        taken, number = lightest[0]
        turns[number].add(name)
        heapq.heapreplace(lightest, (taken + seconds[name], number))
    return turns


def _known() -> dict[str, float]:
    return json.loads(KNOWN.read_text())


def _dealt_as(item: pytest.Item) -> str:
    return item.nodeid.split("::")[0] if item.get_closest_marker("one_story") else item.nodeid


def _is_in_each(item: pytest.Item) -> bool:
    return item.get_closest_marker("in_each_turn") is not None


def _chosen(turn: str) -> str:
    if turn != COMMIT:
        return str(int(turn))
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False, cwd=KNOWN.parent)
    return str(int(head.stdout.strip()[:8] or "0", 16) % 1000)
