"""A chronicle that is compacted says what the ledger still has, and is left alone where that is not known."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Lock

import duckdb
import pytest
from tests.chronicle.compacting import LATER, DaysAgo, DyingFiles, whole
from tests.ledger.samples import START, everywhere, gate_result, pin, record, run, waiver
from tests.made_records import acceptance

from stagehold.chronicle.chronicle import LakeChronicle, read_chronicle, read_from
from stagehold.chronicle.compaction import Compaction, NotCompacted, compact
from stagehold.chronicle.missing_facts import LakeKnowledge, missing_in_ledger
from stagehold.lake.store.files import files_at
from stagehold.ledger.fact_lines import to_lines
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Fact, GateResult, PartitionRecord, Run, RunState

pytestmark = pytest.mark.slow

WORD = acceptance()


@pytest.fixture(params=["tmp_path", "s3_lake"])
def lake(request) -> str:
    return str(request.getfixturevalue(request.param))


@pytest.fixture
def ledger(tmp_path, lake) -> Iterator[Ledger]:
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db", chronicle=DaysAgo(lake)) as opened:
        yield opened


def work(ledger: Ledger) -> None:
    """Three attempts, one after the other, at the same partition."""
    ledger.runs.start(run())
    for epoch in (1, 2, 3):
        lease = ledger.leases.take("lease", None, f"attempt-{epoch}", 60, lambda _: True)
        with ledger.together():
            ledger.partitions.record([record(0, epoch=epoch)], lease)
            said = gate_result(0, passed=True, attempt_id=f"attempt-{epoch}")
            ledger.gates.record([replace(said, recorded_at=START + timedelta(seconds=epoch))])
    with ledger.together():
        ledger.acceptances.record([WORD])
        ledger.waivers.record([waiver()])
        ledger.pins.record([pin()])


def told(lake: str) -> tuple[Fact, ...]:
    return read_chronicle(lake)[0]


def test_an_empty_chronicle_stays_empty(ledger, lake):
    assert whole(lake, ledger) == Compaction(0, 0, 0)


def test_of_each_day_one_file_is_left_with_what_the_ledger_still_has(ledger, lake):
    work(ledger)
    before = told(lake)
    ledger.history.forget(LATER, everywhere(ledger), dry_run=False)
    found = whole(lake, ledger)
    assert (found.files_before, found.files_after, found.why_not) == (5, 2, None)
    assert found.bytes_freed > 0
    gone = [fact for fact in before if fact not in told(lake)]
    assert [(type(fact), fact.attempt_id) for fact in gone if isinstance(fact, PartitionRecord | GateResult)] == [
        (PartitionRecord, "run-1.joined.1"),
        (GateResult, "attempt-1"),
        (PartitionRecord, "run-1.joined.2"),
        (GateResult, "attempt-2"),
    ]
    assert told(lake) == tuple(fact for fact in before if fact not in gone)


def test_a_day_of_which_nothing_is_needed_leaves_no_file(ledger, lake):
    work(ledger)
    ledger.history.forget(LATER, everywhere(ledger), dry_run=False)
    whole(lake, ledger)
    assert sorted(path.split("/")[1] for path in files_at(lake).sizes("ledger")) == ["2024-01-02", "2024-01-04"]


def test_only_days_before_that_of_the_limit_are_touched(ledger, lake):
    work(ledger)
    found = whole(lake, ledger, START.replace(day=3, hour=23))
    assert (found.files_before, found.files_after) == (1, 1)
    assert whole(lake, ledger, START.replace(day=4, hour=0)).files_before == 3


def test_today_and_yesterday_are_never_touched(tmp_path, lake):
    now = datetime.now(UTC)
    days = [f"{now - timedelta(days=days):%Y-%m-%d}" for days in (0, 1, 2)]
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db", chronicle=LakeChronicle(lake)) as ledger:
        ledger.acceptances.record([WORD])
        for day in days:
            for name in ("000000.000001-x", "000000.000002-x"):
                files_at(lake).create(f"ledger/{day}/{name}.jsonl", to_lines([WORD]))
        assert compact(files_at(lake), ledger, LATER, dry_run=False).files_before == 2
    left = [path.split("/")[1] for path in files_at(lake).sizes("ledger")]
    assert [left.count(day) for day in days] == [3, 2, 1]


def test_a_torn_file_is_told_and_stays(ledger, lake):
    work(ledger)
    path = "ledger/2024-01-03/000003.500000-x.jsonl"
    files_at(lake).create(path, to_lines([WORD])[:-3])
    found = whole(lake, ledger)
    assert [file.path for file in found.torn] == [path]
    assert path in files_at(lake).sizes("ledger")
    assert [file.path for file in read_chronicle(lake)[1]] == [path]


@pytest.mark.parametrize("lost", ["all", "the last word", "a run's end"])
def test_beside_a_ledger_that_was_lost_or_is_old_nothing_is_done(tmp_path, lake, lost):
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db", chronicle=DaysAgo(lake)) as ledger:
        work(ledger)
    if lost == "all":
        Path(tmp_path, "ledger.db").unlink()
    else:
        newer = replace(WORD, accepted_code="newest") if lost == "the last word" else replace(run(), ended_at=LATER)
        files_at(lake).create("ledger/2024-02-01/000001.000000-x.jsonl", to_lines([newer]))
    before = files_at(lake).sizes("ledger")
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        found = compact(files_at(lake), ledger, LATER, dry_run=False)
    assert found.why_not is NotCompacted.LEDGER_BEHIND
    assert (found.missing > 0, found.files_before, found.bytes_freed) == (True, found.files_after, 0)
    assert files_at(lake).sizes("ledger") == before


@dataclass
class DisturbedFiles(DyingFiles):
    """``disturb`` is called once, before any file is read; whoever reads waits for it."""

    disturb: Callable[[], object] | None = None
    lock: Lock = field(default_factory=Lock)

    def read(self, path: str) -> bytes:
        with self.lock:
            disturb, self.disturb = self.disturb, None
            if disturb:
                disturb()
        return self.files.read(path)


def test_who_is_overtaken_while_reading_does_nothing(ledger, lake):
    work(ledger)
    files = DisturbedFiles(files_at(lake), 0, disturb=lambda: compact(files_at(lake), ledger, LATER, dry_run=False))
    found = compact(files, ledger, LATER, dry_run=False)
    assert (found.why_not, found.files_before, found.files_after) == (NotCompacted.OVERTAKEN, 5, 5)
    assert whole(lake, ledger) == Compaction(3, 3, 0)


def test_two_that_compact_at_once_lose_nothing_and_what_both_wrote_counts_once(ledger, lake, tmp_path):
    """The second one begins when the first has read everything."""
    work(ledger)
    expected = set(map(repr, told(lake)))

    @dataclass
    class Second(DyingFiles):
        def create(self, path: str, content: bytes) -> bool:
            if self.steps:
                self.steps = 0
                compact(files_at(lake), ledger, LATER, dry_run=False)
            return self.files.create(path, content)

        def remove(self, paths: Collection[str]) -> None:
            self.files.remove(paths)

    assert compact(Second(files_at(lake), 1), ledger, LATER, dry_run=False).why_not is None
    assert set(map(repr, told(lake))) == expected
    with Ledger.open(f"sqlite:///{tmp_path}/other.db") as other:
        facts = LakeKnowledge(told(lake), {})
        other.facts.mend(lambda known: missing_in_ledger(known, facts))
        assert sorted(map(repr, other.facts.all())) == sorted(map(repr, as_told(ledger)))


def as_told(ledger: Ledger) -> tuple[Fact, ...]:
    """Of a run that goes on the ledger says so, and its chronicle only that it was made."""
    return tuple(
        replace(fact, state=RunState.CREATED) if isinstance(fact, Run) else fact for fact in ledger.facts.all()
    )


def test_the_chronicle_is_read_anew_when_it_is_compacted_meanwhile(ledger, lake):
    work(ledger)
    expected = told(lake)
    files = DisturbedFiles(files_at(lake), 0, disturb=lambda: compact(files_at(lake), ledger, LATER, dry_run=False))
    assert read_from(files)[0] == expected


def test_duckdb_reads_a_compacted_chronicle(tmp_path):
    lake = str(tmp_path / "lake")
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db", chronicle=DaysAgo(lake)) as ledger:
        work(ledger)
        whole(lake, ledger)
    query = f"SELECT kind, count(*) FROM read_json('{lake}/ledger/*/*.jsonl', union_by_name = true) GROUP BY ALL"
    kinds = dict(duckdb.sql(query).fetchall())
    assert (kinds["run"], kinds["partition"], kinds["gate_result"], kinds["acceptance"]) == (1, 3, 3, 1)
    assert (kinds["waiver"], kinds["pin"]) == (1, 1)
