"""When a word ends, what was let through by it leaves all tables, whoever dies on the way, and nothing else does."""

from __future__ import annotations

from functools import lru_cache, partial
from itertools import cycle, product
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.made_up import TIMES, some
from tests.run.protocol.world import INTERVAL, PARTITIONS, PIPELINE, RUN, STAGES, World

from stagehold.errors import GateBlocked
from stagehold.lake.commit.table_marks import outstaying
from stagehold.model.standing import PartitionState
from stagehold.run.attempt.retraction import ENDED
from stagehold.run.planning.planning import IntervalView, RunRequest
from stagehold.spec.settings.output_settings import OnWaiverEnd

GOOD = [(n, amount) for n in range(PARTITIONS - 1) for amount in (n + 1, n + 11)]
LAST = PARTITIONS - 1
BAD = 600


@pytest.fixture
def world(tmp_path: Path) -> World:
    """All is published, the last partition by somebody's word."""
    world = World(tmp_path)
    world.write_suite(500)
    world.write_source(LAST, (BAD,))
    for stage in STAGES:
        assert isinstance(ended(world, stage), GateBlocked)
        world.waive(ends=False)
        assert ended(world, stage) is None
    assert published(world, "prints") == doubled([*GOOD, (LAST, BAD)])
    return world


def ended(world: World, stage: str) -> BaseException | None:
    world.end_leases()
    attempt = world.begin(stage)
    attempt.go_to("its end", most=1000)
    assert attempt.ended, attempt.at
    world.check()
    return attempt.error


def doubled(rows: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [(partition, 2 * amount) for partition, amount in rows]


def published(world: World, stage: str) -> list[tuple[int, int]]:
    log = Path(world.table(stage), "_delta_log")
    return list(_rows(world.table(stage), frozenset(file.name for file in log.iterdir())))


@lru_cache(maxsize=8)
def _rows(uri: str, log: frozenset[str]) -> tuple[tuple[int, int], ...]:
    """Read again only after something was committed: most steps commit nothing."""
    rows = DeltaTable(uri).to_pyarrow_table().to_pylist()
    return tuple(sorted((row["_partition"], row["amount"]) for row in rows))


def states(world: World, stage: str) -> list[str]:
    return [str(partition.state) for partition in world.ledger.partitions.newest_of(PIPELINE, INTERVAL)[stage]]


def plan(world: World) -> str:
    found = IntervalView.of_run(
        RunRequest(world.pipelines[1], "preview", INTERVAL, {}), world.ledger, world.settings
    ).plan
    return str(found.counts)


def test_the_attempt_that_finds_out_takes_the_rows_out_of_all_tables(world):
    staged = dict(world.staged)
    world.waive(ends=True, stages=STAGES[:1])
    assert plan(world) == "6 partitions reused, 0 run, 2 blocked, 2 taken out of their tables"
    error = ended(world, "drafts")
    assert isinstance(error, GateBlocked)
    assert "is not met; the word of ann has ended (known)" in str(error)
    assert (published(world, "drafts"), published(world, "prints")) == (GOOD, doubled(GOOD))
    assert states(world, "drafts") == [*["consumable"] * LAST, "blocked"]
    assert states(world, "prints") == [*["consumable"] * LAST, "blocked"]  # its own gate refuses it as well
    assert plan(world) == "6 partitions reused, 0 run, 2 blocked"
    world.waive(ends=False)
    assert [ended(world, stage) for stage in STAGES] == [None, None]
    assert published(world, "prints") == doubled([*GOOD, (LAST, BAD)])
    assert world.staged == staged
    world.bring_to_an_end()


def test_one_table_loses_all_that_it_loses_in_one_commit(world):
    world.write_source(0, (BAD + 1,))
    for stage in STAGES:
        assert isinstance(ended(world, stage), GateBlocked)
        world.waive(ends=False)
        assert ended(world, stage) is None
    before = DeltaTable(world.table("prints")).version()
    world.waive(ends=True)
    ended(world, "drafts")
    operations = [one.retracted for one in world.judge._logs["prints"].entries[before + 1 :] if one.retracted]
    assert operations == [(0, LAST)]
    assert published(world, "prints") == doubled(GOOD)[2:]


def test_only_a_word_for_the_reader_ends(world):
    world.waive(ends=True, stages=STAGES[1:])
    assert ended(world, "drafts") is None
    assert published(world, "prints") == doubled(GOOD)
    assert published(world, "drafts") == [*GOOD, (LAST, BAD)]
    assert isinstance(ended(world, "prints"), GateBlocked)


def test_other_data_in_its_place_is_published_and_the_old_is_not_seen_meanwhile(world):
    world.waive(ends=True)
    world.write_source(LAST, (5,))
    assert ended(world, "drafts") is None
    assert (published(world, "drafts"), published(world, "prints")) == ([*GOOD, (LAST, 5)], doubled(GOOD))
    assert ended(world, "prints") is None
    assert published(world, "prints") == doubled([*GOOD, (LAST, 5)])


def test_a_gate_that_lets_it_by_now_has_it_published_again(world):
    staged = dict(world.staged)
    world.waive(ends=True)
    world.write_suite(5000)
    assert [ended(world, stage) for stage in STAGES] == [None, None]
    assert published(world, "prints") == doubled([*GOOD, (LAST, BAD)])
    assert world.staged == staged


AGAIN = (False, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("killed_after", "again"),
    [*zip(some(upto=60, apart=3), cycle(AGAIN), strict=False)] if TIMES == 1 else [*product(some(60, 1), AGAIN)],
)
def test_whoever_dies_at_any_step_leaves_the_rest_to_the_next(world, killed_after, again):
    """Unless the word is said again meanwhile: that counts."""
    world.waive(ends=True)
    world.end_leases()
    first = world.begin("drafts")
    for _ in range(killed_after):
        first.step()
        assert set(doubled(GOOD)) <= set(published(world, "prints"))
        assert set(GOOD) <= set(published(world, "drafts"))
    first.kill()
    world.check()
    if not again:
        assert isinstance(ended(world, "drafts"), GateBlocked)
        assert (published(world, "drafts"), published(world, "prints")) == (GOOD, doubled(GOOD))
        assert set(states(world, "drafts")) == {"consumable", "blocked"} == set(states(world, "prints"))
    world.waive(ends=False)
    assert [ended(world, stage) for stage in STAGES] == [None, None]
    assert published(world, "prints") == doubled([*GOOD, (LAST, BAD)])
    assert published(world, "drafts") == [*GOOD, (LAST, BAD)]
    assert states(world, "prints") == [str(PartitionState.CONSUMABLE)] * PARTITIONS
    world.bring_to_an_end()


def test_a_zombie_takes_out_nothing_that_was_let_again(world):
    world.waive(ends=True)
    world.end_leases()
    zombie = world.begin("drafts")
    zombie.go_to("before its commit")
    world.end_leases()
    world.waive(ends=False)
    assert [ended(world, stage) for stage in STAGES] == [None, None]
    zombie.go_to("its end", most=1000)
    world.check()
    assert published(world, "drafts") == [*GOOD, (LAST, BAD)]
    assert published(world, "prints") == doubled([*GOOD, (LAST, BAD)])


def keep(world: World) -> None:
    """From now on prints stay, whatever they were made from."""
    for cut, pipeline in world.pipelines.items():
        prints = pipeline.stage("prints")
        output = prints.output.model_copy(update={"on_waiver_end": OnWaiverEnd.KEEP})
        stages = (pipeline.stage("drafts"), prints.model_copy(update={"output": output}))
        world.pipelines[cut] = pipeline.model_copy(update={"stages": stages})


def test_an_output_that_keeps_its_rows_says_which_ones_stay(world):
    keep(world)
    marks, all_prints = partial(outstaying, world.table("prints"), INTERVAL), doubled([*GOOD, (LAST, BAD)])
    world.waive(ends=True, stages=STAGES[:1])
    assert plan(world) == "6 partitions reused, 0 run, 2 blocked, 1 taken out of their tables"
    assert isinstance(ended(world, "drafts"), GateBlocked)
    assert (published(world, "drafts"), published(world, "prints"), marks()) == (GOOD, all_prints, (LAST,))
    told = [event.text for event in world.ledger.events.of_run(RUN) if event.kind == ENDED]
    assert told[-1].startswith(f"prints[{LAST}] stays in marts.prints, marked, though a waiver has ended")
    world.waive(ends=False)
    assert [ended(world, stage) for stage in STAGES] == [None, None]
    assert (published(world, "prints"), marks()) == (all_prints, ())
    world.waive(ends=True, stages=STAGES[1:])
    assert ended(world, "drafts") is None
    assert isinstance(ended(world, "prints"), GateBlocked)
    assert (published(world, "prints"), marks()) == (all_prints, (LAST,))
    assert states(world, "prints") == [*["consumable"] * LAST, "blocked"]
    world.write_source(LAST, (5,))
    assert [ended(world, stage) for stage in STAGES] == [None, None]
    assert (published(world, "prints"), marks()) == (doubled([*GOOD, (LAST, 5)]), ())
    world.bring_to_an_end()
