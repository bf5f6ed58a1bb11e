"""What was asked to be computed anew, and what was."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from tests.ledger.samples import CELL, START, attempt, in_processes, record, run

from stagehold.model.choices import ClaimMode, CodeChoice, CodeHandling
from stagehold.model.records import Cell, Restore
from stagehold.model.standing import PartitionState
from stagehold.model.states import UNTIL_RUNNING, RunEvent

ASKED = Restore("run-1", "first", "joined", START, START)


def work(ledger, restore: Restore | None, partitions: list[int], epoch: int, **facts):
    """An attempt of the run that records these partitions."""
    made = replace(attempt(epoch), restore=restore.identity if restore else None)
    ledger.attempts.create(made, *UNTIL_RUNNING)
    lease = ledger.leases.acquire("lease", "me", 60)
    ledger.partitions.record(
        [record(number, epoch=epoch, attempt_id=made.attempt_id, **facts) for number in partitions], lease
    )
    return made


def test_a_request_comes_back_as_it_was_asked(ledger):
    assert ledger.restores.ask(ASKED) == ASKED
    assert ledger.restores.get("run-1", "first") == ASKED
    assert ledger.restores.of_run("run-1") == (ASKED,)
    assert ledger.restores.get("run-1", "second") is None
    assert ledger.restores.of_run("run-2") == ()


def test_what_was_decided_about_changed_code_and_ownership_comes_back(ledger):
    choices = (CodeChoice("clean", CodeHandling.KEEP, ("a", "b"), "ann", "only a log line"),)
    asked = Restore(
        "run-1", "s", None, START, snapshot="/lake/7.json", code_choices=choices, claim_mode=ClaimMode.CLAIM
    )
    ledger.restores.ask(asked)
    assert ledger.restores.get("run-1", "s") == asked


def test_a_request_that_is_asked_again_is_the_same_one_in_a_new_life(ledger):
    ledger.restores.ask(ASKED)
    resumed = replace(ASKED, requested_at=START + timedelta(hours=1), life=START + timedelta(hours=1))
    again = ledger.restores.ask(resumed)
    assert again == replace(ASKED, life=resumed.life)
    assert ledger.restores.of_life("run-1", resumed.life) == again
    assert ledger.restores.of_life("run-1", START) is None
    assert ledger.restores.ask(replace(ASKED, life=None)) == again


def test_the_newest_request_of_a_run_comes_first(ledger):
    second = replace(ASKED, identity="a second", requested_at=START + timedelta(hours=1), life=None)
    assert [ledger.restores.ask(one).identity for one in (second, ASKED)] == ["a second", "first"]
    assert ledger.restores.of_run("run-1") == (second, ASKED)


def test_tasks_that_ask_at_once_agree_on_one_request(ledger):
    answers = in_processes(
        8, lambda number: ledger.restores.ask(replace(ASKED, requested_at=START + timedelta(seconds=number)))
    )
    assert len(set(answers)) == 1
    assert len(ledger.restores.of_run("run-1")) == 1


def test_tasks_that_look_at_once_agree_on_one_checkpoint(ledger):
    unsettled = ledger.restores.ask(replace(ASKED, stage=None))
    answers = in_processes(8, lambda number: ledger.restores.settle(unsettled, f"/lake/{number}.json"))
    assert len(set(answers)) == 1
    assert ledger.restores.get("run-1", "first") == answers[0]
    assert answers[0].snapshot.startswith("/lake/")
    again = ledger.restores.ask(replace(unsettled, life=START + timedelta(hours=1)))
    assert (again.snapshot, again.life) == (answers[0].snapshot, START + timedelta(hours=1))


def test_a_restore_from_a_stage_gets_no_checkpoint(ledger):
    ledger.restores.ask(ASKED)
    assert ledger.restores.settle(ASKED, "/lake/1.json") == ASKED


def test_only_what_attempts_for_the_request_recorded_counts(ledger):
    ledger.restores.ask(ASKED)
    work(ledger, None, [0, 1, 2, 3], epoch=1)
    work(ledger, ASKED, [0], epoch=2)
    work(ledger, replace(ASKED, identity="other"), [1], epoch=3)
    work(
        ledger,
        ASKED,
        [5],
        epoch=4,
        cell=Cell("sales", "total", CELL.interval),
        state=PartitionState.BLOCKED,
        version=None,
    )
    assert ledger.restores.computed(ASKED) == {"joined": frozenset({0}), "total": frozenset({5})}
    assert ledger.restores.computed(replace(ASKED, identity="never")) == {}


def test_what_was_computed_for_a_request_stays_so_when_another_run_replaces_it(ledger):
    work(ledger, ASKED, [0], epoch=1)
    work(ledger, None, [0], epoch=2)
    assert ledger.restores.computed(ASKED) == {"joined": frozenset({0})}


def test_a_request_is_fulfilled_once(ledger):
    ledger.restores.ask(ASKED)
    assert sorted(map(str, in_processes(4, lambda number: ledger.restores.fulfil(ASKED)))) == [
        "False",
        "False",
        "False",
        "True",
    ]
    fulfilled = ledger.restores.get("run-1", "first").fulfilled_at
    assert fulfilled is not None
    assert ledger.restores.fulfil(ASKED) is False
    assert ledger.restores.get("run-1", "first").fulfilled_at == fulfilled


def test_a_snapshot_is_needed_by_runs_that_go_on_and_have_not_taken_all_of_it_over(ledger):
    manifest = "/lake/7.json"
    asked = [Restore(f"run-{number}", "asked", None, START, snapshot=manifest) for number in range(1, 5)]
    for one in asked:
        ledger.runs.start(run(run_id=one.run_id))
        ledger.restores.ask(one)
    ledger.restores.fulfil(asked[1])
    ledger.runs.apply("run-3", RunEvent.FAIL)
    ledger.runs.apply("run-3", RunEvent.ALL_ENDED)
    ledger.restores.ask(Restore("run-4", "later", None, START + timedelta(hours=1), snapshot="/lake/8.json"))
    assert ledger.restores.needing(manifest) == ("run-1",)
    assert ledger.restores.needing("/lake/8.json") == ("run-4",)
    assert ledger.restores.needing("/lake/9.json") == ()
