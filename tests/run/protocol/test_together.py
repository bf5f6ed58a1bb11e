"""Attempts of a stage whose partitions are judged together die at every step: nothing of it is ever seen in part, and
the next attempts bring it to its end.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.made_up import TIMES, some
from tests.run.protocol.world import MOST, PARTITIONS, World

from stagehold.errors import GateBlocked
from stagehold.model.standing import PartitionState

pytestmark = pytest.mark.slow

SUITE = f"""suite: sound
expectations:
  - {{type: expect_column_values_to_be_between, column: amount, min_value: 0, max_value: {MOST}}}
  - {{type: expect_column_values_to_be_unique, column: amount, scope: stage}}
"""
ALL = [(n, amount) for n in range(PARTITIONS) for amount in (n + 1, n + 11)]


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    Path(world.settings.suites, "sound.yaml").write_text(SUITE)
    return world


def published(world: World) -> list[tuple[int, int]]:
    try:
        rows = DeltaTable(world.table("drafts")).to_pyarrow_table().to_pylist()
    except Exception:  # noqa: BLE001 - there is no table yet
        return []
    return sorted((row["_partition"], row["amount"]) for row in rows)


def states(world: World) -> set[PartitionState]:
    found = world.ledger.partitions.newest_of("paper", "2026-11-20")
    return {one.state for one in found.get("drafts", ())}


def ended(world: World) -> BaseException | None:
    attempt = world.begin("drafts")
    attempt.go_to("its end", most=1000)
    assert attempt.ended, attempt.at
    world.check()
    return attempt.error


@pytest.mark.parametrize("killed_after", some(upto=80, apart=4))
def test_who_dies_at_any_step_leaves_all_or_nothing_and_the_next_goes_on(world, killed_after):
    first = world.begin("drafts")
    for _ in range(killed_after):
        first.step()
        world.check()
        assert published(world) in ([], ALL)
    first.kill()
    world.end_leases()
    assert ended(world) is None
    assert (published(world), states(world)) == (ALL, {PartitionState.CONSUMABLE})
    world.bring_to_an_end()


@pytest.mark.parametrize("asleep_after", range(10, 56, 7 if TIMES == 1 else 1))
def test_a_zombie_publishes_nothing_beside_its_successor(world, asleep_after):
    zombie = world.begin("drafts")
    for _ in range(asleep_after):
        zombie.step()
    assert not zombie.ended
    world.end_leases()
    assert ended(world) is None
    zombie.go_to("its end", most=1000)
    world.check()
    assert published(world) == ALL
    world.bring_to_an_end()


def test_what_is_refused_stays_held_until_it_is_mended(world):
    world.write_source(3, (1, 99))  # which is in the first one as well
    assert isinstance(ended(world), GateBlocked)
    assert (published(world), states(world)) == ([], {PartitionState.HELD})
    staged = dict(world.staged)
    assert isinstance(ended(world), GateBlocked)
    assert world.staged == staged
    world.write_source(3, (4, 14))
    assert ended(world) is None
    assert published(world) == ALL
    assert len({partition for _, _, partition in world.staged.keys() - staged.keys()}) == 1
    world.bring_to_an_end()


def test_a_lost_ledger_is_no_reason_to_publish_what_was_held(world):
    world.write_source(3, (1, 99))
    ended(world)
    world.lose_ledger()
    assert published(world) == []
    world.write_source(3, (4, 14))
    assert ended(world) is None
    assert published(world) == ALL
