"""What runs did about partitions, and what they found: the same of every back end."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import update
from tests.ledger.samples import START, attempt, record, run

from stagehold.ledger.across.run_outcomes import LeftBehind, OwnWork
from stagehold.ledger.database.schema import runs
from stagehold.model.records import DataFile, Run, RunState
from stagehold.model.standing import PartitionState
from stagehold.model.states import UNTIL_RUNNING, RunEvent

CONSUMABLE, RELEASED, BLOCKED = PartitionState.CONSUMABLE, PartitionState.RELEASED, PartitionState.BLOCKED
FIRST, SECOND, THIRD = "run-1", "run-2", "run-3"
NOTE = "run é"  # JSON writes it otherwise than SQL


@pytest.fixture
def lease(ledger):
    return ledger.leases.acquire("sales/2024-01-01/joined", "me", 60)


def made(partition, *, by=FIRST, of=None, minutes=0, **facts):
    """One that a run recorded; the files are those that ``of`` wrote, which is itself unless it is told."""
    files = (DataFile(f"_data/{of or by}.1/0/{partition}.parquet", 1000, 10),)
    at = START + timedelta(minutes=minutes)
    given = {"run_id": by, "attempt_id": f"{by}.1", "files": files, "seconds": 2.0, "recorded_at": at}
    return record(partition, **{**given, **facts})


def gone(one):
    return replace(one, state=RELEASED, files=(), recorded_at=one.recorded_at + timedelta(minutes=1))


@pytest.mark.parametrize("by", [SECOND, NOTE], ids=["plain", "with a letter that JSON escapes"])
def test_what_a_run_computed_is_told_from_what_it_healed_and_what_it_took_over(ledger, lease, by):
    before = [made(number) for number in range(5)]
    ledger.partitions.record(before, lease)
    ledger.partitions.record([gone(before[1])], lease)
    ledger.partitions.record(
        [
            made(0, by=by, compute_key="another"),  # its code changed
            made(1, by=by),  # its data had been released
            made(2, by=by),  # nobody had said that its data was gone
            made(3, by=by, of=FIRST),  # judged again: the files are those of the first run
        ],
        lease,
    )
    work = ledger.run_outcomes.own_work([FIRST, by])
    assert work[FIRST, "joined"] == OwnWork(5, 0, 0, 0, seconds=10.0, spared=0.0)
    assert work[by, "joined"] == OwnWork(3, 2, 1, 0, seconds=6.0, spared=2.0)


def test_a_partition_that_a_run_computed_twice_counts_once_with_the_time_of_both(ledger, lease):
    ledger.partitions.record([made(0, state=BLOCKED), made(1)], lease)
    ledger.partitions.record([made(0, of="other", attempt_id="other.1")], lease)
    assert ledger.run_outcomes.own_work([FIRST])[FIRST, "joined"] == OwnWork(2, 0, 0, 0, seconds=6.0, spared=0.0)


@pytest.mark.parametrize("restore", [None, "asked"])
def test_what_a_restore_computes_anew_is_not_healed_and_what_it_puts_in_place_is_restored(ledger, lease, restore):
    of_restore = replace(attempt(1, run_id=SECOND), attempt_id=f"{SECOND}.1", restore=restore)
    ledger.attempts.create(of_restore, *UNTIL_RUNNING)
    ledger.partitions.record([made(0), made(1)], lease)
    ledger.partitions.record([made(0, by=SECOND), made(1, by=SECOND, of="the checkpoint's")], lease)
    work = ledger.run_outcomes.own_work([SECOND])[SECOND, "joined"]
    told = (work.computed, work.healed, work.judged, work.restored)
    assert told == ((1, 1, 1, 0) if restore is None else (1, 0, 0, 1))


def test_each_run_is_told_what_was_there_at_its_own_end(ledger, lease):
    for number, run_id in enumerate((FIRST, SECOND, THIRD)):
        ledger.runs.start(run(run_id, minutes=60 * number))
    ended(ledger, FIRST, 30)
    ended(ledger, THIRD, 150)
    first = [made(number) for number in range(4)]
    ledger.partitions.record(first, lease)
    ledger.partitions.record([replace(gone(first[3]), recorded_at=START + timedelta(minutes=40))], lease)
    ledger.partitions.record([made(0, by=SECOND, minutes=70, state=BLOCKED)], lease)
    ledger.partitions.record([made(0, by=THIRD, minutes=130)], lease)
    found = ledger.run_outcomes.left_behind([FIRST, SECOND, THIRD], active=())
    assert set(found[FIRST, "joined"]) == {LeftBehind(CONSUMABLE, True, 3, 6.0), LeftBehind(RELEASED, True, 1, 2.0)}
    # It was killed: the next one began when it was over.
    own, others = LeftBehind(BLOCKED, True, 1, 2.0), LeftBehind(CONSUMABLE, False, 2, 4.0)
    assert set(found[SECOND, "joined"]) == {own, others, LeftBehind(RELEASED, False, 1, 2.0)}
    going = ledger.run_outcomes.left_behind([SECOND], active=[SECOND])[SECOND, "joined"]
    assert set(going) == {LeftBehind(CONSUMABLE, False, 3, 6.0), LeftBehind(RELEASED, False, 1, 2.0)}
    last = LeftBehind(CONSUMABLE, True, 1, 2.0)
    assert set(found[THIRD, "joined"]) == {last, others, LeftBehind(RELEASED, False, 1, 2.0)}


def test_runs_are_read_page_by_page_the_last_first(ledger):
    for number, run_id in enumerate("abcde"):
        ledger.runs.start(run(run_id, minutes=number // 2))
    ledger.runs.start(run("of another", pipeline="costs"))
    last: Run | None = None
    pages = []
    while page := ledger.runs.before("sales", last, 2):
        pages.append([one.run_id for one in page])
        last = page[-1]
    assert pages == [["e", "d"], ["c", "b"], ["a"]]


def test_tries_of_all_shares_are_counted_together(ledger):
    for epoch in (1, 2):
        ledger.attempts.create(attempt(epoch), *UNTIL_RUNNING)
    ledger.attempts.create(attempt(3, region="orders"), *UNTIL_RUNNING)
    assert ledger.run_outcomes.tries([FIRST]) == {(FIRST, "joined"): 2, (FIRST, "orders"): 1}


def ended(ledger, run_id, minutes):
    ledger.runs.apply(run_id, RunEvent.ALL_FINISHED)
    assert ledger.runs.get(run_id).state is RunState.FINISHED
    with ledger._database.writing() as connection:
        at = START + timedelta(minutes=minutes)
        connection.execute(update(runs).where(runs.c.run_id == run_id).values(ended_at=at))
