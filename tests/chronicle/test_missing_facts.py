"""What a ledger lacks that the lake knows, as tables of cases and over random histories."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from tests.ledger.samples import CELL, START, attempt, gate_result, pin, record, run
from tests.made_records import acceptance

from stagehold.chronicle.missing_facts import (
    LakeKnowledge,
    missing_in_chronicle,
    missing_in_ledger,
    newest_records,
    still_told,
    uncommitted,
    unrecorded,
)
from stagehold.model.checkpoint_records import CheckpointRecord, CheckpointState, CheckpointTrigger
from stagehold.model.records import (
    AttemptState,
    Cell,
    Fact,
    GateResult,
    PartitionCount,
    PartitionRecord,
    Restore,
    RunState,
    TakenPosition,
)
from stagehold.model.source_position import VersionsRead
from stagehold.model.standing import PartitionState

NOTHING = LakeKnowledge((), {})
OTHER = Cell("sales", "other", "2024-01-01")
CREATED = replace(run(), state=RunState.CREATED)
ENDED = replace(run(), state=RunState.FAILED, ended_at=START + timedelta(hours=1))
BEGUN, FAILED = attempt(), replace(attempt(), state=AttemptState.FAILED, ended_at=START + timedelta(hours=1))
WAITING = replace(attempt(), epoch=0, state=AttemptState.SCHEDULED)
ASKED = Restore("run-1", "asked", "joined", START)


def missing(known: list[Fact], told: list[Fact], published: dict[Cell, tuple[PartitionRecord, ...]] | None = None):
    return list(missing_in_ledger(known, LakeKnowledge(tuple(told), published or {})))


def at(minutes: int, **facts) -> PartitionRecord:
    return record(0, recorded_at=START + timedelta(minutes=minutes), **facts)


def taken(minutes: int, version: int, cell: Cell = CELL) -> TakenPosition:
    return TakenPosition(cell, "run-1", VersionsRead(None, version), START + timedelta(minutes=minutes))


def test_an_empty_ledger_gets_everything_once():
    told: list[Fact] = [ENDED, FAILED, at(1), gate_result(0, passed=True), taken(1, 3), ASKED]
    assert sorted(map(repr, missing([], [*told, *told]))) == sorted(map(repr, told))


def test_a_ledger_that_knows_it_gets_nothing():
    told: list[Fact] = [CREATED, BEGUN, at(1), FAILED, ENDED, taken(1, 3), ASKED]
    assert missing([ENDED, FAILED, at(1), taken(1, 3), ASKED], told) == []


def test_what_changes_in_its_life_is_taken_as_it_was_told_last():
    fulfilled = replace(ASKED, fulfilled_at=START + timedelta(hours=2))
    told: list[Fact] = [CREATED, BEGUN, ASKED, FAILED, ENDED, fulfilled]
    assert missing([], told) == [ENDED, FAILED, fulfilled]
    assert missing([run(), BEGUN, ASKED], told) == [ENDED, FAILED, fulfilled]


def test_a_restore_that_knows_its_checkpoint_is_further_than_one_that_does_not():
    unsettled = replace(ASKED, stage=None, life=START)
    settled = replace(unsettled, snapshot="/lake/checkpoints/0000000001.json")
    fulfilled = replace(settled, fulfilled_at=START)
    assert missing([], [unsettled, settled]) == [settled]
    assert missing([unsettled], [unsettled, settled]) == [settled]
    assert missing([settled], [unsettled, settled, fulfilled]) == [fulfilled]
    assert missing([settled], [unsettled]) == []


def test_a_run_that_had_begun_and_not_ended_was_running():
    assert missing([], [CREATED, BEGUN]) == [run(), BEGUN]
    assert missing([], [CREATED]) == [CREATED]


def test_a_run_that_began_anew_after_its_end_is_running():
    assert missing([], [CREATED, BEGUN, FAILED, ENDED, CREATED]) == [run(), FAILED]


def test_an_older_record_is_never_written_behind_a_newer_one():
    old, new = at(1, epoch=1), at(0, epoch=2)  # by a clock that is behind
    assert missing([new], [old, new]) == []
    assert missing([old], [new, old]) == [new]
    assert missing([], [new, old]) == [old, new]


def test_a_mark_counts_behind_the_record_that_it_is_about():
    damaged = at(5, state=PartitionState.DAMAGED)
    assert missing([at(1)], [at(1), damaged]) == [damaged]
    assert newest_records([damaged, at(1)])[CELL, 0] == damaged


def test_of_what_was_told_again_the_last_time_counts_in_the_order_of_time():
    damaged = at(3, state=PartitionState.DAMAGED)
    assert missing([], [at(1), damaged, at(5)]) == [damaged, at(5)]


def judged(minutes: int, attempt_id: str) -> GateResult:
    return replace(gate_result(0, passed=True, attempt_id=attempt_id), recorded_at=START + timedelta(minutes=minutes))


def numbered(number: int, **facts) -> CheckpointRecord:
    trigger, state = CheckpointTrigger.END_OF_RUN, CheckpointState.COMPLETED
    return replace(CheckpointRecord("run-1", number, "sales", "2024-01-01", trigger, state, START), **facts)


def test_an_older_judgement_is_never_written_behind_a_newer_one():
    old, new = judged(1, "attempt-1"), judged(2, "attempt-2")
    assert missing([new], [old, new]) == []  # the ledger has forgotten the old one
    assert missing([old], [old, new]) == [new]
    assert missing([], [new, old]) == [old, new]


def test_a_checkpoint_that_the_ledger_has_forgotten_is_not_missing_and_a_later_one_is():
    discarded = numbered(1, discarded_at=START + timedelta(hours=1))
    assert missing([numbered(2)], [numbered(1), numbered(2), discarded]) == []
    assert missing([numbered(1)], [numbered(1), numbered(2), discarded]) == [discarded, numbered(2)]
    assert missing([replace(numbered(2), run_id="run-2")], [discarded]) == [discarded]
    assert missing([], [numbered(1), discarded, numbered(2)]) == [discarded, numbered(2)]


def test_what_is_still_told_is_what_the_ledger_has_where_it_was_told_last():
    first: list[Fact] = [CREATED, BEGUN, at(1, epoch=1), judged(1, "attempt-1"), numbered(1), ENDED]
    second: list[Fact] = [CREATED, at(2, epoch=2), judged(2, "attempt-2"), numbered(2)]
    known = [run(), BEGUN, at(2, epoch=2), judged(2, "attempt-2"), numbered(2)]
    assert still_told(known, {"one": first, "two": second}) == {"one": (BEGUN,), "two": tuple(second)}
    assert still_told([], {"one": first}) == {"one": ()}


def test_positions_are_added_behind_those_that_are_known():
    assert missing([taken(1, 3)], [taken(1, 3), taken(2, 4), taken(1, 7, OTHER)]) == [taken(2, 4), taken(1, 7, OTHER)]
    assert missing([taken(5, 9)], [taken(1, 3)]) == []


def test_what_is_published_and_recorded_nowhere_is_adopted():
    commit = at(9, epoch=3, reason="adopted")
    assert missing([at(1, epoch=2)], [], {CELL: (commit,)}) == [commit]
    assert missing([], [at(1, epoch=3)], {CELL: (commit,)}) == [at(1, epoch=3)]
    assert unrecorded([at(1, epoch=4)], {CELL: (commit,)}) == ()


def test_what_its_gate_said_is_adopted_with_it_and_nothing_else():
    commit, said, other = at(9, epoch=3), gate_result(0, passed=False), gate_result(1, passed=True)
    lake = LakeKnowledge((), {CELL: (commit,)}, (said, other))
    assert missing_in_ledger([], lake) == (commit, said)
    assert missing_in_ledger([commit], lake) == ()
    assert missing_in_ledger([at(1, epoch=4)], lake) == ()


def test_a_record_whose_commit_is_not_in_the_log_is_told():
    assert uncommitted([at(1)], {CELL: ()}) == (at(1),)
    assert uncommitted([at(1)], {CELL: (at(2),)}) == ()
    assert uncommitted([at(1)], {}) == ()  # nobody could look
    assert uncommitted([at(1, state=PartitionState.BLOCKED)], {CELL: ()}) == ()


def test_a_record_that_was_only_judged_again_has_the_commit_of_the_same_files():
    commit = at(1, epoch=1)
    assert uncommitted([replace(commit, epoch=2, judged="new")], {CELL: (commit,)}) == ()
    made_anew = at(2, epoch=2, files=())
    assert uncommitted([made_anew], {CELL: (commit,)}) == (made_anew,)


def test_a_chronicle_gets_what_only_the_ledger_knows():
    assert missing_in_chronicle([ENDED, FAILED, at(1), taken(1, 3)], []) == (ENDED, FAILED, at(1), taken(1, 3))
    assert missing_in_chronicle([ENDED, FAILED, at(1)], [CREATED, BEGUN, at(1), FAILED, ENDED, CREATED]) == ()
    assert missing_in_chronicle([WAITING], []) == ()


moments = st.integers(0, 5).map(lambda minutes: START + timedelta(minutes=minutes))
records = st.builds(
    lambda partition, epoch, wave, moment, state: record(
        partition, epoch=epoch, wave=wave, recorded_at=moment, state=state
    ),
    st.integers(0, 2),
    st.integers(1, 3),
    st.integers(1, 2),
    moments,
    st.sampled_from([PartitionState.CONSUMABLE, PartitionState.BLOCKED, PartitionState.DAMAGED]),
)
counts = st.builds(PartitionCount, st.sampled_from([CELL, OTHER]), st.integers(1, 9), st.just(100), st.just(START))
histories = st.lists(st.one_of(records, counts, st.builds(taken, st.integers(0, 5), st.integers(1, 9))), max_size=12)


@given(histories, histories)
def test_after_the_repair_nothing_is_missing_and_the_newest_is_what_either_knew(known: list[Fact], told: list[Fact]):
    added = missing(known, told)
    after = [*known, *added]
    assert missing(after, told) == []
    assert newest_records(after) == newest_records([*known, *told]) or _same_age(after, [*known, *told])
    for fact in added:
        assert fact in told


@given(histories)
def test_a_ledger_that_is_lost_counts_as_it_did(history: list[Fact]):
    rebuilt = missing([], history)
    assert _same_age(rebuilt, history)
    written = {}  # as the table has it: of a partition the row that was written last counts
    for fact in rebuilt:
        if isinstance(fact, PartitionRecord):
            written[fact.cell, fact.partition] = fact
    assert _ages(written.values()) == _ages(newest_records(history).values())


def _same_age(some: list[Fact], others: list[Fact]) -> bool:
    """Two records of the same moment are equally new."""
    return _ages(newest_records(some).values()) == _ages(newest_records(others).values())


def _ages(some) -> dict[tuple[Cell, int], tuple[int, int, object]]:
    return {(record.cell, record.partition): (record.epoch, record.wave, record.recorded_at) for record in some}


def test_a_run_that_began_anew_after_an_old_ledger_says_that_it_ended_goes_on():
    again = replace(attempt(2), started_at=START + timedelta(hours=2))
    gone_on = [replace(CREATED, state=RunState.RUNNING), again]
    assert missing([ENDED, FAILED], [ENDED, FAILED, CREATED, again]) == gone_on
    assert missing([ENDED, FAILED], [FAILED, CREATED, again]) == gone_on
    later = replace(ENDED, ended_at=START + timedelta(hours=3))
    assert missing([ENDED, FAILED], [ENDED, FAILED, CREATED, again, later]) == [later, again]
    assert missing([later, FAILED, again], [CREATED, FAILED, again]) == []  # the lake was full when it ended


def test_words_of_acceptance_come_in_the_order_of_the_file_that_replaced_others():
    """A compaction that dies may leave any of the files that it replaced; they are told before its own."""
    first, second = (acceptance(accepted=code) for code in ("4", "5"))
    assert missing([], [second, first, second]) == [first, second]
    assert missing([], [first, first, second]) == [first, second]


def test_of_the_words_on_an_interval_none_is_written_behind_a_newer_one():
    pinned, let_go, again = pin(), pin(pinned=False, minutes=1), pin(minutes=2)
    elsewhere = pin("2024-01-02")
    assert missing([], [pinned, let_go, elsewhere]) == [pinned, elsewhere, let_go]
    assert missing([let_go], [pinned, let_go]) == []
    assert missing([pinned], [pinned, let_go, again]) == [let_go, again]
    assert missing_in_chronicle([pinned, let_go], [pinned]) == (let_go,)
