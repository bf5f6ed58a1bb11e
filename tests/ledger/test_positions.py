from __future__ import annotations

from dataclasses import replace

import pytest
from tests.ledger.samples import CELL, in_processes, run

from stagehold.ledger import Ledger
from stagehold.model.source_position import FilesRead, SourceFile, VersionsRead
from stagehold.model.states import RunEvent
from stagehold.plan.sources.incremental_positions import new_files

FILES = tuple(SourceFile(f"/raw/{number}", number, str(number)) for number in range(6))
OTHER = replace(CELL, interval="2024-01-02")


@pytest.mark.parametrize("position", [FilesRead(FILES), FilesRead(()), VersionsRead(None, 7), VersionsRead(7, 9)])
def test_what_an_interval_took_stays_whatever_it_would_choose_later(ledger, position):
    assert ledger.positions.take(CELL, "run-1", lambda _: position) == position
    assert ledger.positions.take(CELL, "run-2", lambda _: VersionsRead(1, 2)) == position
    assert ledger.positions.taken(CELL.pipeline, CELL.stage) == {CELL.interval: position}


def test_who_chooses_knows_what_all_other_intervals_took(ledger):
    first = ledger.positions.take(CELL, "run-1", lambda _: FilesRead(FILES[:2]))
    known = []
    ledger.positions.take(OTHER, "run-2", lambda taken: known.append(taken) or FilesRead(()))
    assert known == [{CELL.interval: first}]


def test_a_run_takes_something_of_its_own_once(ledger):
    ledger.positions.take_for_run(CELL, "run-1", FilesRead(FILES[:1]))
    assert ledger.positions.take_for_run(CELL, "run-1", FilesRead(FILES)) == FilesRead(FILES[:1])
    assert ledger.positions.take_for_run(CELL, "run-2", FilesRead(FILES)) == FilesRead(FILES)
    assert ledger.positions.taken_by(CELL) == FilesRead(FILES)
    assert ledger.positions.taken_by(OTHER) is None


def test_a_run_has_seen_what_another_run_of_its_interval_saw_later(ledger):
    assert ledger.positions.seen_by(CELL, "run-1") is None
    ledger.positions.take_for_run(CELL, "run-1", FilesRead(FILES[:1]))
    ledger.positions.take_for_run(OTHER, "run-1", FilesRead(FILES[:3]))
    assert ledger.positions.seen_by(CELL, "run-2") is None
    ledger.positions.take_for_run(CELL, "run-2", FilesRead(FILES))
    assert ledger.positions.seen_by(CELL, "run-1") == ledger.positions.seen_by(CELL, "run-2") == FilesRead(FILES)


def test_a_run_that_goes_on_after_it_has_finished_has_seen_nothing_yet(ledger):
    made = run("run-1", pipeline=CELL.pipeline, interval=CELL.interval)
    ledger.runs.start(made)
    ledger.positions.take_for_run(CELL, "run-1", FilesRead(FILES[:1]))
    ledger.runs.apply("run-1", RunEvent.ALL_FINISHED)
    assert ledger.positions.seen_by(CELL, "run-1") is None
    ledger.runs.start(made)
    assert ledger.positions.take_for_run(CELL, "run-1", FilesRead(FILES)) == FilesRead(FILES)
    ledger.runs.apply("run-1", RunEvent.FAIL, RunEvent.ALL_ENDED)
    ledger.runs.start(made)
    assert ledger.positions.seen_by(CELL, "run-1") == FilesRead(FILES)


def test_positions_of_other_stages_and_pipelines_do_not_mix(ledger):
    ledger.positions.take(CELL, "run-1", lambda _: FilesRead(FILES))
    assert ledger.positions.taken(CELL.pipeline, "another") == {}
    assert ledger.positions.taken("another", CELL.stage) == {}


def test_intervals_that_take_at_once_take_each_file_once(ledger_url):
    def take(number):
        with Ledger.open(ledger_url) as own:
            listed = FILES[: number + 3]  # each of them sees another state of the folder
            cell = replace(CELL, interval=str(number))
            return own.positions.take(cell, "run", lambda taken: new_files(listed, taken.values())).files

    with Ledger.open(ledger_url):
        pass
    taken = [file for files in in_processes(4, take) for file in files]
    assert sorted(taken) == list(FILES)
