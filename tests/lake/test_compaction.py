"""A chronicle that is compacted rebuilds the same ledger, whoever died on the way, and however often."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import TypeAlias

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lake.ledger_histories import Step, begin, checkpoint, compute, drop, end, facts_in, steps
from tests.ledger.samples import CELL, START, gate_result, record, run
from tests.ledger.test_history import DisturbedDatabase

from stagehold.lake.chronicle import LakeChronicle, read_chronicle, read_from, to_lines
from stagehold.lake.compaction import Compaction, NotCompacted, compact
from stagehold.lake.files import FileFacts, Files, files_at
from stagehold.ledger.history import History
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import (
    Acceptance,
    Fact,
    GateResult,
    PartitionRecord,
    PartitionState,
    Restore,
    Run,
    RunState,
)
from stagehold.model.states import AttemptEvent, RunEvent
from stagehold.plan.reconcile.comparison import LakeKnowledge, missing_in_ledger

CONSUMABLE = PartitionState.CONSUMABLE
LATER = datetime.now(UTC) + timedelta(days=99)
WORD = Acceptance("sales", None, "joined", "old", "new", "me", "why", START)


class Died(Exception):
    """Whoever worked is gone."""


@dataclass
class DyingFiles:
    """Files that can be changed ``steps`` times, where each deleted one counts; then whoever changes them dies."""

    files: Files
    steps: int
    oldest_first: bool = False

    def sizes(self, folder: str) -> Mapping[str, int]:
        return self.files.sizes(folder)

    def folders(self, folder: str) -> Collection[str]:
        return self.files.folders(folder)

    def facts(self, path: str) -> Mapping[str, FileFacts]:
        return self.files.facts(path)

    def tail(self, path: str, length: int) -> bytes:
        return self.files.tail(path, length)

    def read(self, path: str) -> bytes:
        return self.files.read(path)

    def create(self, path: str, content: bytes) -> bool:
        self._step()
        return self.files.create(path, content)

    def delete(self, folder: str) -> None:
        raise AssertionError("nobody deletes a whole folder of the chronicle")

    def remove(self, paths: Collection[str]) -> None:
        """A request deletes many files in any order."""
        for path in sorted(paths, reverse=not self.oldest_first):
            self._step()
            self.files.remove([path])

    def _step(self) -> None:
        if self.steps == 0:
            raise Died
        self.steps -= 1


@dataclass
class DaysAgo:
    """Keeps the facts of each transaction in the folder of some day."""

    lake: str
    told: int = 0
    of_a_day: int = 2

    def __call__(self, facts: Sequence[Fact]) -> None:
        self.told += 1
        day = START + timedelta(days=self.told // self.of_a_day)
        path = f"ledger/{day:%Y-%m-%d}/{self.told:06}.000000-x.jsonl"
        assert files_at(self.lake).create(path, to_lines(facts))


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
    ledger.acceptances.record([WORD])


def whole(lake: str, ledger: Ledger, older_than: datetime = LATER) -> Compaction:
    """The dry run says what will be done, and once done there is no more to do."""
    files, before = files_at(lake), files_at(lake).sizes("ledger")
    foreseen = compact(files, ledger, older_than, dry_run=True)
    assert files.sizes("ledger") == before
    assert compact(files, ledger, older_than, dry_run=False) == foreseen
    after = files.sizes("ledger")
    assert sum(before.values()) - sum(after.values()) == foreseen.bytes_freed
    assert len(before) - len(after) == foreseen.files_before - foreseen.files_after
    again = compact(files, ledger, older_than, dry_run=False)
    assert (again.files_before, again.files_after, again.bytes_freed) == (foreseen.files_after,) * 2 + (0,)
    return foreseen


def told(lake: str) -> tuple[Fact, ...]:
    return read_chronicle(lake).facts


def test_an_empty_chronicle_stays_empty(ledger, lake):
    assert whole(lake, ledger) == Compaction(0, 0, 0)


def test_of_each_day_one_file_is_left_with_what_the_ledger_still_has(ledger, lake):
    work(ledger)
    before = told(lake)
    ledger.history.forget(LATER, dry_run=False)
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
    ledger.history.forget(LATER, dry_run=False)
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
    assert [one.path for one in found.torn] == [path]
    assert path in files_at(lake).sizes("ledger")
    assert [one.path for one in read_chronicle(lake).torn] == [path]


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
    assert read_from(files).facts == expected


def test_duckdb_reads_a_compacted_chronicle(tmp_path):
    lake = str(tmp_path / "lake")
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db", chronicle=DaysAgo(lake)) as ledger:
        work(ledger)
        whole(lake, ledger)
    query = f"SELECT kind, count(*) FROM read_json('{lake}/ledger/*/*.jsonl', union_by_name = true) GROUP BY ALL"
    kinds = dict(duckdb.sql(query).fetchall())
    assert (kinds["run"], kinds["partition"], kinds["gate_result"], kinds["acceptance"]) == (1, 3, 3, 1)


@dataclass
class Home:
    """A ledger and its lake; each use of the ledger is a process of its own."""

    folder: Path
    told: int = 0
    of_a_day: int = 3

    @property
    def file(self) -> Path:
        return self.folder / "ledger.db"

    @property
    def lake(self) -> str:
        return str(self.folder / "lake")

    def does(self, work: Callable[[Ledger], object]) -> None:
        chronicle = DaysAgo(self.lake, self.told, self.of_a_day)
        with Ledger.open(f"sqlite:///{self.file}", chronicle=chronicle) as ledger:
            work(ledger)
        self.told = chronicle.told

    def reconcile(self) -> None:
        facts = LakeKnowledge(read_chronicle(self.lake).facts, {})
        self.does(lambda ledger: ledger.facts.mend(lambda known: missing_in_ledger(known, facts)))

    def decides(self) -> list[object]:
        """What plans, gates and numbers follow from."""
        with Ledger.open(f"sqlite:///{self.file}") as ledger:
            numbers = {
                name: [one.number for one in ledger.checkpoints.of_run(name)][-1:] for name in ("run-1", "run-2")
            }
            computed = [ledger.restores.computed(Restore(name, "asked", "", START)) for name in ("run-1", "run-2")]
            newest = [ledger.partitions.newest(CELL), ledger.gates.newest(CELL), ledger.positions.taken_by(CELL)]
            return [*newest, numbers, computed, ledger.acceptances.of("sales")]


def live(home: Home) -> None:
    """A run from its beginning to its end, with things that were told again and again, or were replaced."""
    happened = [begin("run-1"), compute(0, CONSUMABLE, True), checkpoint("run-1", True), drop("run-1", False)]
    happened += [compute(0, CONSUMABLE, False), checkpoint("run-1", True), begin("run-1"), compute(0, CONSUMABLE, True)]
    for number, step in enumerate([*happened, end(AttemptEvent.REPORTED_FINISHED, RunEvent.ALL_FINISHED)], 1):
        home.does(lambda ledger, step=step, number=number: step(ledger, number))


@pytest.mark.parametrize("oldest_first", [True, False])
@pytest.mark.parametrize("of_a_day", [3, 99])
def test_wherever_a_compaction_dies_the_same_ledger_comes_back(tmp_path, of_a_day, oldest_first):
    origin = Home(tmp_path / "origin", of_a_day=of_a_day)
    live(origin)
    forgets(10**6)(origin)
    lost, decided, dies_after = facts_in(origin.file), origin.decides(), 0
    while True:
        home = Home(Path(shutil.copytree(origin.folder, tmp_path / str(dies_after))), of_a_day=of_a_day)
        with Ledger.open(f"sqlite:///{home.file}") as ledger, suppress(Died):
            compact(DyingFiles(files_at(home.lake), dies_after, oldest_first), ledger, LATER, dry_run=False)
            break
        _lose_and_rebuild(home, lost, decided)
        dies_after += 1
    assert dies_after > 10
    home.file.unlink()
    home.reconcile()
    assert (facts_in(home.file), home.decides()) == (lost, decided)


def _lose_and_rebuild(home: Home, lost: list[str], decided: list[object]) -> None:
    """Whoever compacts next ends what was begun, and leaves nothing that is forgotten."""
    copy = home.folder / "copy"
    shutil.copy(home.file, copy)
    home.file.unlink()
    home.reconcile()
    assert home.decides() == decided
    assert set(facts_in(home.file)) >= set(lost)
    copy.rename(home.file)
    home.does(lambda ledger: whole(home.lake, ledger))
    home.file.unlink()
    home.reconcile()
    assert (facts_in(home.file), home.decides()) == (lost, decided)


Upkeep: TypeAlias = Callable[[Home], object]


def forgets(dies_after: int) -> Upkeep:
    def upkeep(home: Home) -> None:
        database = DisturbedDatabase(f"sqlite:///{home.file}", lambda number: _die_behind(number, dies_after))
        with suppress(Died):
            History(database, at_once=1).forget(LATER, dry_run=False)

    return upkeep


def compacts(dies_after: int) -> Upkeep:
    def upkeep(home: Home) -> None:
        def work(ledger: Ledger) -> None:
            with suppress(Died):
                found = compact(
                    DyingFiles(files_at(home.lake), dies_after, dies_after % 2 == 0), ledger, LATER, dry_run=False
                )
                assert found.why_not is None

        home.does(work)

    return upkeep


def _die_behind(number: int, last: int) -> None:
    if number > last:
        raise Died


def goes_on(step: Step) -> Upkeep:
    return lambda home: home.does(lambda ledger: step(ledger, home.told + 1))


DIES_AFTER = st.one_of(st.integers(0, 9), st.just(10**6))
happenings = st.one_of(
    steps.map(goes_on), steps.map(goes_on), st.builds(forgets, DIES_AFTER), st.builds(compacts, DIES_AFTER)
)


@settings(max_examples=40, deadline=None)
@given(st.lists(happenings, min_size=2, max_size=24), st.integers(0, 24), st.sampled_from(["lost", "old", "tidy"]))
def test_a_ledger_that_is_lost_comes_back_from_a_compacted_chronicle(history: list[Upkeep], copied_at: int, then: str):
    """``old``: a copy is put back, and the chronicle compacted beside it. ``tidy``: the last upkeep came to its end."""
    with tempfile.TemporaryDirectory() as folder:
        home, copy = Home(Path(folder)), Path(folder, "copy")
        goes_on(begin("run-1"))(home)
        for number, happens in enumerate(history):
            if number == copied_at or number == 0:
                shutil.copy(home.file, copy)
            happens(home)
        if then == "tidy":
            forgets(10**6)(home)
            compacts(10**6)(home)
        lost, decided = facts_in(home.file), home.decides()
        home.file.unlink()
        if then == "old":
            copy.rename(home.file)
        home.does(lambda ledger: compact(files_at(home.lake), ledger, LATER, dry_run=False))
        home.reconcile()
        assert home.decides() == decided
        rebuilt = facts_in(home.file)
        if then == "tidy":
            assert rebuilt == lost
        assert set(rebuilt) >= set(lost)
        forgets(10**6)(home)
        forgotten = facts_in(home.file)
        assert set(forgotten) <= set(lost)
        home.reconcile()
        assert facts_in(home.file) == forgotten
