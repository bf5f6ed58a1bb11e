"""A compacted chronicle rebuilds the same ledger, whoever died on the way, and however often."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.chronicle.compacting import LATER, DaysAgo, Died, DyingFiles, whole
from tests.chronicle.ledger_histories import Step, begin, checkpoint, compute, drop, end, facts_in, steps
from tests.ledger.blank import lay_blank_ledger
from tests.ledger.samples import CELL, START, everywhere
from tests.ledger.test_history import DisturbedDatabase

from stagehold.chronicle.chronicle import read_chronicle
from stagehold.chronicle.compaction import compact
from stagehold.chronicle.missing_facts import LakeKnowledge, missing_in_ledger
from stagehold.lake.store.files import files_at
from stagehold.ledger.history import History
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Restore
from stagehold.model.standing import PartitionState
from stagehold.model.states import AttemptEvent, RunEvent

pytestmark = pytest.mark.slow

CONSUMABLE = PartitionState.CONSUMABLE


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
        with Ledger.open(f"sqlite:///{lay_blank_ledger(self.file)}", chronicle=chronicle) as ledger:
            work(ledger)
        self.told = chronicle.told

    def next_day(self) -> None:
        """Of days that are compacted nothing new is told."""
        self.told += -(self.told + 1) % self.of_a_day

    def reconcile(self) -> None:
        facts = LakeKnowledge(read_chronicle(self.lake)[0], {})
        self.does(lambda ledger: ledger.facts.mend(lambda known: missing_in_ledger(known, facts)))

    def decides(self) -> list[object]:
        """What plans, gates and numbers follow from."""
        with Ledger.open(f"sqlite:///{self.file}") as ledger:
            numbers = {
                name: [checkpoint.number for checkpoint in ledger.checkpoints.of_run(name)][-1:]
                for name in ("run-1", "run-2")
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
            History(database, at_once=1).forget(LATER, everywhere(Ledger(database)), dry_run=False)

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
        home.next_day()

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
