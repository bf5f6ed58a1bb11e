"""What runs did about stages, by attempts on a real ledger and a real lake, one run after the other."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import event
from tests.run.protocol.stepper import Stepper
from tests.run.protocol.world import INTERVAL, PARTITIONS, PIPELINE, STAGES, World

from stagehold.checkpoints.releasing import as_released, released_at_end
from stagehold.cli.running.runs_command import _row
from stagehold.errors import UnknownName
from stagehold.ledger.partitions import Partitions
from stagehold.model.records import Run, RunState
from stagehold.model.standing import StageOutcome
from stagehold.model.states import RUN as RUN_LIFE
from stagehold.model.states import RunEvent
from stagehold.plan.split.regions import stage_regions
from stagehold.run.here.region import work_on
from stagehold.run.intervals.run_matrix import RunsAsked, run_matrix
from stagehold.run.lease.lost_attempts import NOT_RENEWED
from stagehold.run.planning.planning import RunRequest
from stagehold.run.planning.task import RegionTask

pytestmark = pytest.mark.slow

RAN, HEALED, REUSED, RELEASED = StageOutcome.RAN, StageOutcome.HEALED, StageOutcome.REUSED, StageOutcome.RELEASED
BLOCKED, JUDGED, FAILED, NONE = StageOutcome.BLOCKED, StageOutcome.JUDGED, StageOutcome.FAILED, StageOutcome.NONE


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def go(world, run_id, *, stages=STAGES, ends=RunEvent.ALL_FINISHED):
    """A run whose tasks go to their end, one after the other, as far as they come."""
    pipeline = world.pipelines[1]
    world.ledger.runs.start(Run(run_id, PIPELINE, INTERVAL, "cli", RunState.RUNNING, datetime.now(UTC)))
    for stage in stages:
        (own,) = (one for one in stage_regions(pipeline) if one.name == stage)
        task = RegionTask(RunRequest(pipeline, run_id, INTERVAL, {}), own, f"cli/{run_id}/{stage}", "cli")
        attempt = Stepper(lambda task=task: work_on(task, world.workplace))
        world.attempts.append(attempt)
        attempt.go_to("its end", most=1000)
        assert attempt.ended
        if attempt.error is not None:
            world.ledger.runs.apply(run_id, RunEvent.FAIL, RunEvent.ALL_ENDED)
            return
    world.ledger.runs.apply(run_id, ends)


def release(world, stage):
    """As when the run's outputs go that only stages read."""
    pipeline = world.pipelines[1]
    lease = world.ledger.leases.get(f"{PIPELINE}/{INTERVAL}/{stage}")
    gone = [
        one
        for one in released_at_end(pipeline, {name: world.consumable(name) for name in STAGES})
        if one.cell.stage == pipeline.stage(stage).id
    ]
    assert gone
    marked = [as_released(one, datetime.now(UTC)) for one in gone]
    Partitions(world.ledger._database).record(marked, lease)  # the judge knows attempts only


def lines(world, **asked):
    found = matrix(world, **asked)
    return {line.run.run_id: {one.stage: one for one in line.squares} for line in found.lines}


def matrix(world, limit=20, reaches=None, **asked):
    wanted = RunsAsked(limit, **asked)
    return run_matrix(
        world.pipelines[1], world.ledger, wanted, lambda run: not RUN_LIFE.is_terminal(run.state), reaches
    )


def test_a_run_that_finds_all_done_reuses_it_and_says_what_that_spared(world):
    go(world, "first")
    go(world, "second")
    found = lines(world)
    assert list(found) == ["second", "first"]
    for stage in STAGES:
        first, second = found["first"][stage], found["second"][stage]
        assert (first.outcome, first.counts, first.spared, first.attempts) == (RAN, {RAN: PARTITIONS}, 0.0, 1)
        assert (second.outcome, second.counts, second.seconds) == (REUSED, {REUSED: PARTITIONS}, 0.0)
        spent = sum(one.seconds for one in world.consumable(stage))
        assert second.spared == round(spent, 1)


def test_what_was_released_is_no_work_of_a_run_that_does_not_need_it_and_healed_by_one_that_does(world):
    go(world, "first")
    release(world, "drafts")
    go(world, "idle")
    world.lose("prints", 1)
    go(world, "mends")
    found = lines(world)
    assert found["idle"]["drafts"].outcome is RELEASED
    assert found["idle"]["prints"].counts == {REUSED: PARTITIONS}
    mended = found["mends"]
    assert (mended["drafts"].outcome, mended["drafts"].counts[HEALED]) == (HEALED, 1)
    assert mended["prints"].counts == {HEALED: 1, RAN: 1, REUSED: PARTITIONS - 1}
    assert found["first"]["drafts"].counts == {RAN: PARTITIONS}


def test_changed_data_is_run_and_not_healed(world):
    go(world, "first")
    world.write_source(2, (70, 80))
    go(world, "second")
    assert lines(world)["second"]["drafts"].counts == {RAN: 1, REUSED: PARTITIONS - 1}


def test_a_run_whose_gate_refuses_is_blocked_and_the_one_that_judges_by_other_words_computes_nothing(world):
    world.write_suite(15)
    world.write_source(3, (1000, 2000))
    go(world, "refused")
    world.write_suite(5000)
    go(world, "let")
    found = lines(world)
    refused = found["refused"]
    assert refused["drafts"].outcome is BLOCKED
    assert refused["drafts"].counts[BLOCKED] == 1
    assert refused["prints"].outcome in (NONE, FAILED)
    assert found["let"]["drafts"].outcome is JUDGED
    assert found["let"]["drafts"].counts[JUDGED] >= 1
    assert RAN not in found["let"]["drafts"].counts
    assert found["let"]["prints"].counts[RAN] == PARTITIONS


def begin(world, run_id):
    """A run whose first attempt is right before its commit."""
    pipeline = world.pipelines[1]
    world.ledger.runs.start(Run(run_id, PIPELINE, INTERVAL, "cli", RunState.RUNNING, datetime.now(UTC)))
    (own,) = (one for one in stage_regions(pipeline) if one.name == "drafts")
    task = RegionTask(RunRequest(pipeline, run_id, INTERVAL, {}), own, f"cli/{run_id}", "cli")
    attempt = Stepper(lambda: work_on(task, world.workplace))
    assert attempt.go_to("before its commit")
    return attempt


def test_a_run_that_was_killed_says_who_noticed_as_soon_as_its_lease_is_over(world):
    attempt = begin(world, "killed")
    assert lines(world)["killed"]["drafts"].lost is None
    attempt.kill()
    world.end_leases()
    drafts = lines(world)["killed"]["drafts"]
    assert (drafts.outcome, drafts.lost.noticed) == (FAILED, NOT_RENEWED)
    (line,) = matrix(world).lines
    assert "lost, noticed by its lease, which nobody renewed, 20" in _row(replace(line, active=False))[1]


def test_a_run_that_was_killed_lacks_what_it_never_came_to(world):
    go(world, "whole")
    for partition in range(PARTITIONS):
        world.write_source(partition, (partition + 50,))
    attempt = begin(world, "killed")
    at_work = lines(world)["killed"]["drafts"]
    assert at_work.outcome is StageOutcome.RUNNING
    attempt.kill()
    world.end_leases()
    lost = lines(world)["killed"]["drafts"]
    assert lost.outcome in (FAILED, REUSED)


def test_filters_take_the_runs_that_have_such_a_square_and_pages_go_on_behind_what_was_looked_at(world):
    go(world, "1")
    release(world, "drafts")
    world.lose("prints", 0)
    go(world, "2 heals")
    for name in "345":
        go(world, name)
    assert list(lines(world, outcome=HEALED)) == ["2 heals"]
    assert list(lines(world, outcome=RAN, stage="prints")) == ["2 heals", "1"]
    assert list(lines(world, outcome=BLOCKED)) == []
    assert list(lines(world, reaches=lambda interval: interval != INTERVAL)) == []
    page = matrix(world, limit=2)
    assert ([line.run.run_id for line in page.lines], page.following) == (["5", "4"], "4")
    page = matrix(world, limit=3, before="4")
    assert ([line.run.run_id for line in page.lines], page.following) == (["3", "2 heals", "1"], None)
    page = matrix(world, limit=1, outcome=HEALED, most=2)
    assert (page.lines, page.following, page.looked_at) == ((), "4", 2)
    page = matrix(world, limit=2, outcome=HEALED, before=page.following, most=2)
    assert [line.run.run_id for line in page.lines] == ["2 heals"]


def test_what_nobody_knows_is_refused_by_name(world):
    go(world, "1")
    with pytest.raises(UnknownName, match="nowhere"):
        matrix(world, stage="nowhere", outcome=RAN)
    with pytest.raises(UnknownName, match="never"):
        matrix(world, before="never")


def test_a_page_costs_as_many_queries_however_many_runs_are_on_it(world):
    def queries(limit):
        count = 0

        def counted(*_):
            nonlocal count
            count += 1

        engine = world.ledger._database._engine()
        event.listen(engine, "before_cursor_execute", counted)
        matrix(world, limit=limit)
        event.remove(engine, "before_cursor_execute", counted)
        return count

    for name in "12345":
        go(world, name)
    assert queries(2) == queries(4) < 15
