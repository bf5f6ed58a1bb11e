"""What is old and decides nothing leaves the ledger; whoever decides by the rest is told what they were told before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Connection
from tests.ledger.samples import CELL, START, attempt, event, everywhere, gate_result, record, run

from stagehold.ledger import Ledger
from stagehold.ledger.database.engine import Database
from stagehold.ledger.history import Forgotten, History, WithoutOldFiles
from stagehold.model.checkpoint_records import CheckpointFailure, CheckpointRecord, CheckpointState, CheckpointTrigger
from stagehold.model.records import TRACE, Lease, Restore, RunState
from stagehold.model.standing import PartitionState
from stagehold.model.states import UNTIL_RUNNING, AttemptEvent, RunEvent, newest_life

NOTHING = Forgotten(*[0] * len(fields(Forgotten)))
LATER = datetime.now(UTC) + timedelta(days=1)  # by then all that a test does is old
OLD, NEW = START, START + timedelta(days=30)
BETWEEN = START + timedelta(days=10)


class DisturbedDatabase(Database):
    """``disturb`` is called with the number of each transaction that is about to write."""

    def __init__(self, url: str, disturb: Callable[[int], object]) -> None:
        super().__init__(url)
        self._disturb, self._begun_so_far = disturb, 0

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        self._begun_so_far += 1
        self._disturb(self._begun_so_far)
        with super().writing() as connection:
            yield connection


@pytest.fixture
def lease(ledger) -> Lease:
    return ledger.leases.acquire("lease", "me", 60)


def end(ledger: Ledger, run_id: str, *, minutes: int, failed: bool = False, interval: str = "2024-01-01") -> None:
    ledger.runs.start(run(run_id, minutes=minutes, interval=interval))
    ledger.events.append(event("one", run_id))
    ledger.events.append(replace(event("Traceback ...", run_id), kind=TRACE, subject="attempt-1"))
    ledger.runs.apply(run_id, *((RunEvent.FAIL, RunEvent.ALL_ENDED) if failed else (RunEvent.ALL_FINISHED,)))


def coordinator(ledger: Ledger) -> Lease:
    return ledger.leases.acquire("run-1/coordinator", "me", 60)


def checkpoint(ledger: Ledger, number: int) -> CheckpointRecord:
    state, trigger = CheckpointState.IN_PROGRESS, CheckpointTrigger.END_OF_RUN
    return ledger.checkpoints.begin(
        CheckpointRecord("run-1", number, CELL.pipeline, CELL.interval, trigger, state, START), coordinator(ledger)
    )


def forget(ledger: Ledger, older_than: datetime = LATER) -> Forgotten:
    """The dry run says what will be done, and once done there is no more to do."""
    foreseen = ledger.history.forget(older_than, everywhere(ledger), dry_run=True)
    assert ledger.history.forget(older_than, everywhere(ledger), dry_run=False) == foreseen
    assert ledger.history.forget(older_than, everywhere(ledger), dry_run=False) == NOTHING
    return foreseen


def test_the_story_of_a_run_that_finished_goes_and_the_run_stays(ledger):
    end(ledger, "run-1", minutes=0)
    assert forget(ledger, START) == NOTHING  # it had not ended by then
    assert forget(ledger) == replace(NOTHING, events=1, traces=1, transitions=3)
    assert ledger.events.of_run("run-1") == ledger.transitions.of_run("run-1") == ()
    assert ledger.events.traces("run-1") == {}
    assert ledger.runs.get("run-1").state is RunState.FINISHED


def test_a_run_that_has_not_ended_keeps_its_story(ledger):
    ledger.runs.start(run())
    ledger.events.append(event("one"))
    end(ledger, "run-2", minutes=5)
    ledger.runs.start(run("run-3", minutes=9))
    ledger.runs.apply("run-3", RunEvent.FAIL)
    forget(ledger)
    assert ledger.events.of_run("run-1") == (event("one"),)
    assert [bool(ledger.transitions.of_run(name)) for name in ("run-1", "run-2", "run-3")] == [True, False, True]


def test_of_runs_that_failed_the_newest_of_an_interval_keeps_its_story(ledger):
    end(ledger, "run-1", minutes=0, failed=True)
    end(ledger, "run-2", minutes=5, failed=True)
    end(ledger, "run-3", minutes=0, failed=True, interval="2024-01-02")
    assert forget(ledger).traces == 1
    assert [len(ledger.events.traces(name)) for name in ("run-1", "run-2", "run-3")] == [0, 1, 1]


def test_of_two_runs_that_started_at_once_the_one_that_the_ledger_calls_newest_keeps_its_story(ledger):
    end(ledger, "run-1", minutes=0, failed=True)
    end(ledger, "run-2", minutes=0, failed=True)
    forget(ledger)
    newest = ledger.runs.newest("sales", "2024-01-01")
    assert newest is not None
    assert [name for name in ("run-1", "run-2") if ledger.events.of_run(name)] == [newest.run_id]


def test_a_run_that_is_resumed_after_its_story_went_has_a_life_of_its_own(ledger):
    end(ledger, "run-1", minutes=0)
    forget(ledger)
    ledger.runs.start(run())
    history = ledger.transitions.of_run("run-1")
    assert newest_life(history) == history
    assert [one.after for one in history] == [RunState.CREATED, RunState.RUNNING]


def test_a_run_that_begins_anew_while_its_story_goes_keeps_it(ledger, ledger_url):
    end(ledger, "run-1", minutes=0)
    told = ledger.events.of_run("run-1")
    disturbed = DisturbedDatabase(ledger_url, lambda number: ledger.runs.start(run()))
    assert History(disturbed).forget(LATER, WithoutOldFiles([], 0), dry_run=False) == NOTHING
    assert ledger.events.of_run("run-1") == told


def test_records_of_files_that_may_be_there_stay(ledger, lease):
    ledger.partitions.record([record(0, epoch=1), record(0, epoch=2)], lease)
    places = {(CELL.pipeline, "2024-01-02"), ("other", CELL.interval)}
    elsewhere = WithoutOldFiles(places, ledger.partitions.highest_id())
    assert ledger.history.forget(LATER, elsewhere, dry_run=False) == NOTHING


def test_what_is_replaced_after_somebody_looked_at_the_files_stays(ledger, lease):
    made = [record(0, epoch=epoch) for epoch in (1, 2, 3)]
    ledger.partitions.record(made[:2], lease)
    looked = everywhere(ledger)
    ledger.partitions.record(made[2:], lease)
    assert ledger.history.forget(LATER, looked, dry_run=False).partitions == 1
    assert ledger.partitions.history(CELL) == (made[1], made[2])


@pytest.mark.parametrize(
    ("states", "left"),
    [
        ("cc", [1]),  # c: consumable, b: blocked by the gate, d: damaged, r: released
        ("ccb", [1, 2]),  # retake is refused while there is a published one
        ("cbb", [0, 2]),
        ("bb", [1]),
        ("cd", [1]),
        ("ccr", [2]),
    ],
)
def test_the_newest_record_of_a_partition_stays_and_the_newest_that_was_published(ledger, lease, states, left):
    made = [record(0, epoch=epoch, **_state(letter, epoch)) for epoch, letter in enumerate(states, 1)]
    others = [record(1), record(0, cell=replace(CELL, interval="2024-01-02"))]
    ledger.partitions.record([*made, *others], lease)
    newest = ledger.partitions.newest(CELL)
    assert forget(ledger).partitions == len(made) - len(left)
    assert ledger.partitions.newest(CELL) == newest
    assert [partition for partition in ledger.partitions.history(CELL) if partition.partition == 0] == [
        made[number] for number in left
    ]
    assert ledger.partitions.intervals("sales") == ("2024-01-02", "2024-01-01")


def _state(letter: str, epoch: int) -> dict[str, object]:
    states = {"c": "consumable", "b": "blocked", "d": "damaged", "r": "released"}
    return {"state": PartitionState(states[letter]), "version": None if letter == "b" else epoch}


def test_records_that_are_replaced_but_young_stay(ledger, lease):
    made = [record(0, epoch=1, recorded_at=OLD), record(0, epoch=2, recorded_at=NEW), record(0, epoch=3)]
    ledger.partitions.record(made, lease)
    assert forget(ledger, BETWEEN).partitions == 1
    assert ledger.partitions.history(CELL) == (made[1], made[2])


def test_what_was_computed_for_a_restore_counts_for_ever(ledger, lease):
    asked = ledger.restores.ask(Restore("run-1", "asked", "joined", START))
    for_it, not_for_it = replace(attempt(1), restore="asked"), attempt(2)
    for made in (for_it, not_for_it):
        ledger.attempts.create(made, *UNTIL_RUNNING)
        ledger.attempts.apply(made.attempt_id, AttemptEvent.REPORTED_FINISHED)
        ledger.partitions.record([record(0, epoch=made.epoch, attempt_id=made.attempt_id)], lease)
    ledger.partitions.record([record(0, epoch=3)], lease)
    ledger.restores.fulfil(asked)
    assert forget(ledger).partitions == 1
    assert ledger.restores.computed(asked) == {"joined": frozenset({0})}


def test_gate_results_of_the_last_judge_stay_whatever_their_age(ledger):
    first = [gate_result(number, passed=False, attempt_id="attempt-1") for number in (0, 1)]
    again = gate_result(0, passed=True, attempt_id="attempt-2")
    ledger.gates.record([*first, again])
    newest = ledger.gates.newest(CELL)
    assert forget(ledger, START).gate_results == 0
    assert forget(ledger).gate_results == 1
    assert ledger.gates.newest(CELL) == newest == (again, first[1])


def test_checkpoints_that_are_gone_leave_and_numbers_are_never_given_again(ledger):
    made = [checkpoint(ledger, number) for number in range(1, 6)]
    for one in made:
        ledger.acknowledgements.ask(one, [attempt(1)], coordinator(ledger))
    for one in made[:2]:
        ledger.checkpoints.complete(one, coordinator(ledger), written=1, referenced=0, covers=1)
    ledger.checkpoints.discard(made[0], coordinator(ledger))
    ledger.checkpoints.fail(made[2], coordinator(ledger), CheckpointFailure.CHECKPOINT_EXPIRED, "why")
    ledger.checkpoints.fail(made[4], coordinator(ledger), CheckpointFailure.CHECKPOINT_EXPIRED, "why")
    assert forget(ledger, START).checkpoints == 0
    gone = forget(ledger)
    assert (gone.checkpoints, gone.acknowledgements) == (2, 2)
    assert [checkpoint.number for checkpoint in ledger.checkpoints.of_run("run-1")] == [2, 4, 5]  # 4 is under way


def test_what_decides_and_is_few_stays(ledger, lease):
    ledger.runs.start(run())
    ledger.attempts.create(attempt(), *UNTIL_RUNNING)
    ledger.attempts.apply(attempt().attempt_id, AttemptEvent.FAIL)
    ledger.runs.apply("run-1", RunEvent.FAIL, RunEvent.ALL_ENDED)
    known, epochs = ledger.facts.all(), ledger.facts.epochs()
    forget(ledger)
    assert (ledger.facts.all(), ledger.facts.epochs()) == (known, epochs)


def test_many_rows_go_a_few_at_a_time_and_the_next_one_goes_on_after_a_crash(ledger, ledger_url, lease):
    ledger.partitions.record([record(0, epoch=epoch) for epoch in range(1, 36)], lease)

    def die_before_the_third(number: int) -> None:
        if number == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        History(DisturbedDatabase(ledger_url, die_before_the_third), at_once=10).forget(
            LATER, everywhere(ledger), dry_run=False
        )
    assert len(ledger.partitions.history(CELL)) == 15
    assert forget(ledger).partitions == 14
    assert ledger.partitions.history(CELL) == (record(0, epoch=35),)
