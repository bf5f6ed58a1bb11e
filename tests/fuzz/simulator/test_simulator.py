"""Histories of the simulator: more of them by `make simulate`."""

from __future__ import annotations

import time

import pytest
from fuzz.simulator.__main__ import history_of, tally
from fuzz.simulator.effects import Effects
from fuzz.simulator.histories import replayed, shrunk
from fuzz.simulator.interleavings import explored
from fuzz.simulator.mistakes import MISTAKES
from fuzz.simulator.simulated_lake import NOWHERE
from fuzz.simulator.simulated_ledger import SimulatedDatabase
from fuzz.simulator.simulation import Move, Shape

from stagehold.ledger.ledger import Ledger

pytestmark = pytest.mark.slow

SECONDS = 30
MOST = 300  # histories in which a mistake has to be found
# The seed to begin with, near the first one that finds it, and what it is found by.
FOUND = {
    "no fence": (1, {"epochs_never_go_back", "ledger_and_log_agree"}),
    "record before publish": (1, {"ledger_and_log_agree"}),
    "retry without a second look": (20, {"no_row_twice", "epochs_never_go_back", "ledger_and_log_agree"}),
    "sweep without a lease": (15, {"none_lost_once_consumable"}),
}
ALONE = ("attempt", 1, 0, True)


def test_histories_of_half_a_minute_break_no_invariant():
    ends = time.monotonic() + SECONDS
    told = tally(1, 1, lambda so_far: so_far.by_delta_rs > 0 and time.monotonic() > ends)
    assert told.broken is None, f"python -m fuzz.simulator --seed {told.broken}"
    assert told.steps > 20 * told.histories


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_that_is_put_back_is_found(mistake):
    first, names = FOUND[mistake]
    told = tally(first, 1, lambda so_far: so_far.histories >= MOST, mistake)
    assert told.broken is not None
    print(f"{mistake}: found after {told.histories} histories, {told.steps} steps")
    with MISTAKES[mistake]():
        assert history_of(told.broken).name in names
    assert history_of(told.broken).broken is None


def test_interleavings_of_two_attempts_with_a_crash_at_any_point_break_no_invariant():
    found = explored(Shape(partitions=2), SECONDS)
    assert found.broken is None, found.broken.lines
    assert found.ends > 1
    assert found.states > found.ends
    print(found)


def test_interleavings_find_a_mistake_and_tell_how_it_came_to_it():
    with MISTAKES["record before publish"]():
        found = explored(Shape(partitions=2), 4 * SECONDS)
        assert found.broken is not None
        assert found.broken.name == "ledger_and_log_agree"
    assert found.broken.lines[0].startswith("attempt 1 begins")


@pytest.mark.parametrize("seed", [3, 20])
def test_a_seed_is_one_history_however_often_it_is_played(seed):
    first, second = history_of(seed), history_of(seed)
    assert first.moves == second.moves
    assert first.lines == second.lines


def test_what_is_broken_is_told_by_the_fewest_moves():
    with MISTAKES["record before publish"]():
        history = history_of(1)
        shorter = shrunk(history)
    assert shorter.name == history.name == "ledger_and_log_agree"
    assert len(history.moves) > 0
    assert shorter.moves == []  # the attempt that ends each history does


@pytest.mark.parametrize("asleep_after", range(1, 16))
@pytest.mark.parametrize("published", [False, True], ids=["of its own", "published"])
def test_a_deleter_that_sleeps_until_the_interval_is_there_again_takes_nothing_of_it(published, asleep_after):
    """Whoever sleeps longer than its lease deletes what it had in mind, by names that nobody else has."""
    moves = [Move("begin", 1, ALONE), *[Move("step", 1)] * 60, Move("begin", 2, ("deleter",))]
    history = replayed(Shape(2, published), [*moves, *[Move("step", 2)] * asleep_after])
    assert history.broken is None, "\n".join((*history.lines, str(history.broken)))


def test_what_a_deletion_took_out_is_not_adopted_when_the_ledger_is_lost():
    moves = [Move("begin", 1, ALONE), *[Move("step", 1)] * 60, Move("begin", 2, ("deleter",)), *[Move("step", 2)] * 60]
    history = replayed(Shape(2, published=True), [*moves, Move("lose_ledger", True)])
    assert history.broken is None, "\n".join((*history.lines, str(history.broken)))


def test_a_ledger_whose_copy_was_put_back_still_knows_what_partitions_cost():
    """`deserialize` in the place of a backup kills the process here: SQLite's own segmentation fault."""
    database = SimulatedDatabase(Effects(), NOWHERE)
    partitions = Ledger(database).partitions
    for interval in ("2026-11-20", "2026-11-21", "2026-11-22"):
        assert partitions.usual_cost("paper/drafts", [interval]) is None
        database.forget(database.copied())
        assert partitions.figures("paper", [interval]) == ()
