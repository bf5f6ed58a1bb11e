"""When outputs are released, and that nobody misses them."""

from __future__ import annotations

import pytest
from tests.made_records import savepoint_request
from tests.run.clearing.nights import STAGES, Nights
from tests.run.protocol.stepper import Stepper

from stagehold.model.standing import PartitionState
from stagehold.run.checkpoints.discarding import dispose_of
from stagehold.run.checkpoints.savepoint_creation import create_savepoint
from stagehold.run.faults import ClearingPoint
from stagehold.spec.settings.run_settings import ReleasePolicy

pytestmark = pytest.mark.slow

CONSUMABLE, RELEASED = {PartitionState.CONSUMABLE}, {PartitionState.RELEASED}
ALL_THERE = dict.fromkeys(STAGES, CONSUMABLE)
ONLY_RESULTS = {"drafts": RELEASED, "edits": RELEASED, "prints": CONSUMABLE}
DAYS = [f"2026-11-{day}" for day in range(20, 26)]


@pytest.fixture
def nights(tmp_path):
    return Nights(tmp_path)


def run_all(nights: Nights, *days: str) -> None:
    for day in days:
        nights.run(day)


def test_the_three_intervals_that_ran_last_keep_their_outputs(nights):
    run_all(nights, *DAYS[:5])
    assert [nights.states(day) for day in DAYS[:5]] == [ONLY_RESULTS] * 2 + [ALL_THERE] * 3
    assert [any(nights.files(day).values()) for day in DAYS[:5]] == [False] * 2 + [True] * 3
    assert nights.published(DAYS[0]) == nights.expected
    assert [list(nights.kept(day)) == [] for day in DAYS[:5]] == [True] * 2 + [False] * 3
    nights.check()


def test_it_counts_when_an_interval_ran_and_not_which_it_is_for(nights):
    run_all(nights, DAYS[5], DAYS[0], DAYS[1], DAYS[2])
    assert [nights.states(day) for day in (DAYS[5], *DAYS[:3])] == [ONLY_RESULTS, ALL_THERE, ALL_THERE, ALL_THERE]


def test_a_run_that_has_not_finished_keeps_its_outputs(nights):
    attempt = nights.begin(DAYS[0], "drafts")
    attempt.go_to("its end")
    run_all(nights, *DAYS[1:5])
    assert nights.states(DAYS[0])["drafts"] == CONSUMABLE
    nights.run(DAYS[0])  # ran last now
    assert nights.states(DAYS[0]) == ALL_THERE
    assert nights.states(DAYS[2]) == ONLY_RESULTS


def test_a_late_run_of_what_was_released_computes_nothing(nights):
    run_all(nights, *DAYS[:4])
    nights.said.clear()
    nights.run(DAYS[0], run="late")
    assert nights.states(DAYS[0]) == ONLY_RESULTS
    assert [line for line in nights.said if "wave" in line] == []


def test_what_a_late_run_needs_of_it_is_healed_and_nothing_else(nights):
    run_all(nights, *DAYS[:4])
    nights.write_source(1, 70)
    nights.said.clear()
    nights.run(DAYS[0], run="late")
    assert nights.published(DAYS[0]) == nights.expected
    states = [[record.state for record in nights.records(DAYS[0], stage)] for stage in STAGES]
    one = [PartitionState.RELEASED, PartitionState.CONSUMABLE, PartitionState.RELEASED]
    assert states == [one, one, [PartitionState.CONSUMABLE] * 3]
    nights.check()


def test_a_restore_of_what_was_released_heals_what_it_reads(nights):
    run_all(nights, *DAYS[:4])
    nights.run(DAYS[0], run="again", restore="prints")
    assert nights.states(DAYS[0]) == ALL_THERE
    assert nights.published(DAYS[0]) == nights.expected


def test_keep_keeps_everything(tmp_path):
    nights = Nights(tmp_path, ReleasePolicy.KEEP)
    run_all(nights, *DAYS)
    assert [nights.states(day) for day in DAYS] == [ALL_THERE] * 6
    nights.collect()
    assert [nights.states(day) for day in DAYS] == [ALL_THERE] * 6


def test_at_once_an_output_goes_as_soon_as_its_readers_have_finished(tmp_path):
    nights = Nights(tmp_path, ReleasePolicy.AT_ONCE)
    nights.begin(DAYS[0], "drafts").go_to("its end")
    assert nights.states(DAYS[0])["drafts"] == CONSUMABLE
    nights.begin(DAYS[0], "edits").go_to("its end")
    assert nights.states(DAYS[0]) == {"drafts": RELEASED, "edits": CONSUMABLE, "prints": set()}
    assert nights.files(DAYS[0])["drafts"] == []
    nights.begin(DAYS[0], "prints").go_to("its end")
    assert nights.states(DAYS[0]) == ONLY_RESULTS
    assert nights.published(DAYS[0]) == nights.expected
    nights.check()


def test_at_once_what_a_checkpoint_pointed_to_goes_when_that_is_gone(tmp_path):
    nights = Nights(tmp_path, ReleasePolicy.AT_ONCE)
    nights.begin(DAYS[0], "drafts").go_to("its end")
    asked = savepoint_request("early", f"r.{DAYS[0]}")
    made = create_savepoint(asked, nights.pipeline, nights.workplace)
    nights.begin(DAYS[0], "edits").go_to("its end")
    assert nights.states(DAYS[0])["drafts"] == RELEASED
    assert nights.files(DAYS[0])["drafts"] != [], "the savepoint needs them"
    nights.check()
    dispose_of(made, nights.workplace)
    nights.begin(DAYS[0], "prints").go_to("its end")
    assert nights.files(DAYS[0]) == {"drafts": [], "edits": []}
    nights.check()


@pytest.mark.parametrize("place", range(1, 5))
def test_at_once_what_is_released_while_garbage_is_collected_stays_for_its_savepoint(tmp_path, place):
    nights = Nights(tmp_path, ReleasePolicy.AT_ONCE)
    nights.run(DAYS[1])  # something to forget
    nights.begin(DAYS[0], "drafts").go_to("its end")
    asked = savepoint_request("early", f"r.{DAYS[0]}")
    create_savepoint(asked, nights.pipeline, nights.workplace)
    collecting = Stepper(nights.collect)
    for _ in range(place):
        collecting.go_to("before a row")
    nights.begin(DAYS[0], "edits").go_to("its end")
    collecting.go_to("its end")
    assert (collecting.ended, collecting.error) == (True, None)
    assert nights.states(DAYS[0])["drafts"] == RELEASED
    nights.collect()
    assert nights.files(DAYS[0])["drafts"] != [], "the savepoint needs them"


def test_at_once_checkpoints_go_with_the_intervals_that_are_over(tmp_path):
    nights = Nights(tmp_path, ReleasePolicy.AT_ONCE)
    run_all(nights, *DAYS[:5])
    assert [list(nights.kept(day)) == [] for day in DAYS[:5]] == [True] * 2 + [False] * 3
    nights.check()


def test_an_attempt_that_reads_holds_a_release_up(tmp_path):
    nights = Nights(tmp_path, ReleasePolicy.AT_ONCE)
    nights.begin(DAYS[0], "drafts").go_to("its end")
    nights.begin(DAYS[0], "edits").go_to("its end")
    nights.run(DAYS[0])
    nights.write_source(0, 50)
    nights.begin(DAYS[0], "drafts", run="second").go_to("its end")
    reader = nights.begin(DAYS[0], "edits", run="second")
    assert reader.go_to("session")
    nights.begin(DAYS[0], "prints").go_to("waiting")
    assert PartitionState.CONSUMABLE in nights.states(DAYS[0])["drafts"]
    reader.go_to("its end")
    assert reader.error is None


@pytest.mark.parametrize("place", [str(ClearingPoint.RELEASED), "before a row"])
def test_whoever_releases_may_die_anywhere(nights, place):
    run_all(nights, *DAYS[:3])
    for stage in STAGES[:2]:
        nights.begin(DAYS[3], stage).go_to("its end")
    last = nights.begin(DAYS[3], "prints")
    last.go_to(str(ClearingPoint.RELEASED))
    if place != last.at:
        last.go_to(place)
    last.kill()
    nights.end_leases()
    nights.check()
    nights.collect()
    assert nights.states(DAYS[0]) == ONLY_RESULTS
    assert nights.files(DAYS[0]) == {"drafts": [], "edits": []}
    nights.run(DAYS[0], run="late", restore="edits")
    assert nights.published(DAYS[0]) == nights.expected


def test_what_is_healed_for_a_reader_is_not_released_before_it_is_read(tmp_path):
    nights = Nights(tmp_path, ReleasePolicy.AT_ONCE)
    nights.run(DAYS[0])
    assert nights.states(DAYS[0]) == ONLY_RESULTS
    nights.run(DAYS[0], run="again", restore="prints")
    assert nights.states(DAYS[0]) == ONLY_RESULTS
    assert len([line for line in nights.said if line.startswith("drafts: heal 3 of 3")]) == 1
    nights.check()
