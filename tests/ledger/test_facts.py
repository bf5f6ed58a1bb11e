"""Facts written back are those that were read, whatever the ledger is kept in."""

from __future__ import annotations

from dataclasses import replace

from tests.ledger.samples import CELL, START, attempt, gate_result, pin, record, run, stage_verdict, waiver
from tests.made_records import acceptance

from stagehold.ledger import Ledger
from stagehold.model.backfill import Backfill, BackfillChoice, Only, OrderedInterval, PlannedCell, WorkOrder
from stagehold.model.records import Fact, PartitionCount, Restore, TakenPosition
from stagehold.model.source_position import VersionsRead
from stagehold.model.states import UNTIL_RUNNING, AttemptEvent

ORDER = WorkOrder(("joined", "total"), anew=("total",), backfill="b1")
BACKFILL = Backfill(
    backfill_id="b1",
    pipeline="sales",
    asked_by="me",
    requested_at=START,
    choice=BackfillChoice("2024-01-01", "2024-01-02", ("joined",), Only.ALL),
    intervals=(OrderedInterval("2024-01-01", ORDER),),
    cells=(PlannedCell("2024-01-01", "joined", ((0, 3), (7, 7))),),
)
WORD = acceptance()


def fill(ledger: Ledger) -> None:
    """One of everything."""
    ledger.runs.start(run())
    ledger.attempts.create(attempt(), *UNTIL_RUNNING)
    ledger.attempts.apply(attempt().attempt_id, AttemptEvent.FAIL)
    lease = ledger.leases.take("sales/2024-01-01/joined", None, "me", 60, lambda _: False)
    with ledger.together():
        ledger.partitions.record([record(0), record(1)], lease)
        ledger.gates.record([gate_result(0, passed=True), gate_result(1, passed=False)])
    ledger.partition_counts.decide(PartitionCount(CELL, 2, 100, START))
    ledger.positions.take_again(CELL, "run-1", lambda _: VersionsRead(None, 3))
    ledger.acceptances.record([WORD])
    ledger.waivers.record([waiver()])
    ledger.pins.record([pin()])
    ledger.stage_verdicts.record(stage_verdict(refused=("unique",), reason="unique: got 2"))
    ledger.restores.ask(Restore("run-1", "asked", "joined", START))
    ledger.restores.ask(Restore("run-1", "told", None, START, work_order=ORDER))
    ledger.backfills.record(BACKFILL)


def test_what_is_read_as_a_whole_can_be_written_into_an_empty_ledger(ledger, tmp_path):
    fill(ledger)
    known = ledger.facts.all()
    assert len(known) == 15
    with Ledger.open(f"sqlite:///{tmp_path}/other.db") as other:
        assert other.facts.mend(lambda facts: known) == known
        assert other.facts.all() == known
        assert other.partitions.newest(CELL) == ledger.partitions.newest(CELL)


def test_who_mends_is_told_all_that_is_there_and_replaces_what_has_a_key(ledger):
    fill(ledger)
    known = ledger.facts.all()
    seen: list[tuple[Fact, ...]] = []

    def choose(facts: tuple[Fact, ...]) -> tuple[Fact, ...]:
        seen.append(facts)
        return (PartitionCount(CELL, 9, 900, START),)

    ledger.facts.mend(choose)
    assert seen == [known]
    assert ledger.partition_counts.decided("sales", "2024-01-01") == {"joined": PartitionCount(CELL, 9, 900, START)}
    assert len(ledger.facts.all()) == len(known)


def test_every_fact_is_told_before_it_is_there(ledger_url):
    told: list[Fact] = []
    with Ledger.open(ledger_url, chronicle=told.extend) as ledger:
        fill(ledger)
        ledger.positions.take_again(CELL, "run-1", lambda _: VersionsRead(3, 5))
        known = ledger.facts.all()
    said = {repr(fact) for fact in told}
    assert [fact for fact in known if repr(fact) not in said] == [ledger.runs.get("run-1")]  # told as CREATED
    assert any(isinstance(fact, TakenPosition) for fact in told)


def test_epochs_are_raised_and_never_lowered(ledger):
    lease = ledger.leases.take("sales/2024-01-01/joined", None, "me", 60, lambda _: False)
    ledger.facts.raise_epochs({"sales/2024-01-01/joined": 7, "other": 2})
    assert ledger.facts.epochs() == {"sales/2024-01-01/joined": 7, "other": 2}
    assert not ledger.leases.holds(lease)
    ledger.facts.raise_epochs({"sales/2024-01-01/joined": 3})
    assert ledger.leases.take("sales/2024-01-01/joined", None, "me", 60, lambda _: False).epoch == 8


def test_text_that_a_database_refuses_is_told_as_it_is_stored(ledger_url):
    told: list[Fact] = []
    odd = "a zero \x00 and a lone \udc80"
    with Ledger.open(ledger_url, chronicle=told.extend) as ledger:
        ledger.gates.record([replace(gate_result(0, passed=True), expectation=odd, observed=odd)])
        ledger.acceptances.record([replace(WORD, reason=odd)])
        assert sorted(map(repr, ledger.facts.all())) == sorted(map(repr, told))
