"""Savepoints of runs that have ended, go on, are stopped with them, or were lost."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
from tests.made_records import savepoint_request
from tests.run.checkpoints.paper_run import INTERVAL, LEFT, PARTITIONS, PIPELINE, RIGHT, RUN, PaperRun

from stagehold.errors import InvalidArgument, NothingToSave, RunSuspended, SavepointFailed, SavepointTaken
from stagehold.lake.checkpoints.savepoints import Savepoint, Savepoints
from stagehold.model.checkpoint_records import (
    CheckpointFailure,
    CheckpointState,
    CheckpointTrigger,
    SavepointRequest,
)
from stagehold.model.records import AttemptState, RunState
from stagehold.model.standing import PartitionState
from stagehold.run.checkpoints.discarding import dispose_of, take_coordinator_lease
from stagehold.run.checkpoints.savepoint_creation import create_savepoint
from stagehold.run.faults import CheckpointPoint, FaultAction, InjectedFault, inject

pytestmark = pytest.mark.slow

NAME = "before-the-fix"


def wish(name: str = NAME, *, stop: bool = False, run_id: str = RUN) -> SavepointRequest:
    return savepoint_request(name, run_id, stop=stop)


def create(run: PaperRun, **options: object) -> Savepoint:
    with run.ledger() as ledger:
        return create_savepoint(wish(**options), run.pipeline, run.workplace(ledger))


def dispose(run: PaperRun, name: str = NAME) -> None:
    with run.ledger() as ledger:
        dispose_of(Savepoints(run.settings.lake_uri).get(name), run.workplace(ledger))


def content(run: PaperRun, savepoint: Savepoint):
    checkpoint = Savepoints(run.settings.lake_uri).stored(savepoint).read_checkpoint(savepoint.number)
    return {stage.shape.name: [partition.partition for partition in stage.partitions] for stage in checkpoint.stages}


def state(run: PaperRun) -> RunState:
    with run.ledger() as ledger:
        return ledger.runs.get(RUN).state


@contextmanager
def under_way(run: PaperRun, stages=(LEFT,), seconds: float = 0.5, **task):
    """Attempts that go on while the block works; gives what ended them, by stage."""
    ends: dict[str, BaseException | None] = {}

    def work(stage: str) -> None:
        try:
            run.work(stage, pace=lambda stage, wave: time.sleep(seconds), **task)
            ends[stage] = None
        except BaseException as error:  # noqa: BLE001 - suspended as well
            ends[stage] = error

    threads = [threading.Thread(target=work, args=(stage,)) for stage in stages]
    for thread in threads:
        thread.start()
    run.until(lambda: sum(attempt.state is AttemptState.RUNNING for attempt in run.attempts) == len(stages))
    yield ends
    for thread in threads:
        thread.join()


def test_of_a_run_that_has_ended_all_it_left_is_named_and_shared(tmp_path):
    run = PaperRun.make(tmp_path, (LEFT,))
    run.work()
    made = create(run)
    assert (made.pipeline, made.interval, made.run_id, made.number) == (PIPELINE, INTERVAL, RUN, 2)
    assert (made.created_by, made.reason) == ("ann", "to be sure")
    assert content(run, made) == {LEFT: list(range(PARTITIONS))}
    first, second = (run.stored.read_manifest(number) for number in (1, 2))
    assert second.parts == first.parts, "unchanged, so nothing was written but the manifest"
    record = run.records[-1]
    assert (record.savepoint, record.trigger, record.kept) == (NAME, CheckpointTrigger.ASKED_FOR, True)
    assert record.bytes_written == 0


def test_the_same_wish_again_gives_the_same_savepoint_and_another_is_refused(tmp_path):
    run = PaperRun.make(tmp_path, (LEFT,))
    run.work()
    made = create(run)
    assert create(run) == made
    assert len(run.records) == 2
    with run.ledger() as ledger:
        ledger.runs.create(ledger.runs.get(RUN).__class__(**{**vars(ledger.runs.get(RUN)), "run_id": "other"}))
    with pytest.raises(SavepointTaken, match=f"savepoint {NAME} already, checkpoint 2 of run {RUN}"):
        create(run, run_id="other")


def test_a_savepoint_is_not_among_the_runs_own_checkpoints(tmp_path):
    run = PaperRun.make(tmp_path, (LEFT,))
    run.work()
    made = create(run)
    run.work()  # a second life, which leaves a checkpoint of its own and drops the first
    assert [(record.number, record.kept) for record in run.records] == [(1, False), (2, True), (3, True)]
    assert content(run, made) == {LEFT: list(range(PARTITIONS))}


def test_a_run_that_goes_on_is_asked_and_goes_on(tmp_path):
    run = PaperRun.make(tmp_path)
    with under_way(run, (LEFT, RIGHT)) as ends:
        made = create(run)
        assert state(run) is RunState.RUNNING
    assert ends == {LEFT: None, RIGHT: None}
    asked = {
        acknowledgement.region for acknowledgement in run.acknowledgements if acknowledgement.number == made.number
    }
    assert asked == {LEFT, RIGHT}
    inside = content(run, made)
    assert all(0 < len(partitions) < PARTITIONS for partitions in inside.values()), inside
    assert state(run) is RunState.FINISHED


def test_whoever_takes_periodic_checkpoints_serves_the_wish(tmp_path):
    run = PaperRun.make(tmp_path, (LEFT,), interval="50ms", retained=100)
    with under_way(run):
        made = create(run)
    (record,) = [record for record in run.records if record.savepoint]
    assert record.number == made.number
    assert len([record for record in run.records if record.trigger is CheckpointTrigger.PERIODIC]) >= 2
    assert run.records[-1].trigger is CheckpointTrigger.END_OF_RUN


def test_a_run_is_stopped_behind_its_wave_and_resumed_later(tmp_path):
    run = PaperRun.make(tmp_path)
    with under_way(run, (LEFT, RIGHT)) as ends:
        made = create(run, stop=True)
    assert {type(end) for end in ends.values()} == {RunSuspended}
    assert str(ends[LEFT]).startswith(f"Run {RUN} was suspended with savepoint {NAME}.")
    assert state(run) is RunState.SUSPENDED
    assert {attempt.state for attempt in run.attempts} == {AttemptState.CANCELED}
    saved = content(run, made)
    with run.ledger() as ledger:
        found = ledger.partitions.newest_of(PIPELINE, INTERVAL)
        assert {stage: [record.partition for record in records] for stage, records in found.items()} == saved
        assert {record.state for records in found.values() for record in records} == {PartitionState.CONSUMABLE}
    assert not [record for record in run.records if record.trigger is CheckpointTrigger.END_OF_RUN]
    with run.ledger() as ledger:
        ledger.runs.begin_life(RUN)  # as `stagehold resume` does
    for stage in (LEFT, RIGHT):
        assert run.work(stage).reused == len(saved[stage])
    assert state(run) is RunState.FINISHED


def test_what_airflow_starts_after_that_waits_for_somebody_to_resume(tmp_path):
    run = PaperRun.make(tmp_path)
    run.work(LEFT, launcher="airflow")
    create(run, stop=True)
    with pytest.raises(RunSuspended, match=f"suspended with savepoint {NAME}"):
        run.work(RIGHT, launcher="airflow")
    assert state(run) is RunState.SUSPENDED
    with run.ledger() as ledger:
        ledger.runs.lift_suspension(RUN)
    run.work(RIGHT, launcher="airflow")
    assert state(run) is RunState.FINISHED


def test_what_somebody_clears_in_airflow_is_resumed_by_that(tmp_path):
    run = PaperRun.make(tmp_path, (LEFT,))
    with under_way(run, launcher="airflow") as ends:
        create(run, stop=True)
    assert isinstance(ends[LEFT], RunSuspended)
    with pytest.raises(RunSuspended):
        run.work(LEFT, launcher="airflow", again=True)
    assert run.work(LEFT, launcher="airflow").reused
    assert state(run) is RunState.FINISHED


def test_what_has_ended_cannot_be_stopped(tmp_path):
    run = PaperRun.make(tmp_path, (LEFT,))
    run.work()
    with pytest.raises(InvalidArgument, match=r"--stop.*this one is finished"):
        create(run, stop=True)
    assert Savepoints(run.settings.lake_uri).all() == ()


def test_a_run_between_two_attempts_is_stopped_at_once(tmp_path):
    run = PaperRun.make(tmp_path)
    run.work(LEFT)
    made = create(run, stop=True)
    assert state(run) is RunState.SUSPENDED
    assert content(run, made) == {LEFT: list(range(PARTITIONS)), RIGHT: []}


def test_a_wave_that_is_longer_than_the_timeout_fails_the_savepoint_and_not_the_run(tmp_path):
    run = PaperRun.make(tmp_path, (LEFT,), timeout="200ms")
    with under_way(run, seconds=1.0) as ends, pytest.raises(SavepointFailed, match="not acknowledged within 200ms"):
        create(run)
    assert ends == {LEFT: None}
    (record,) = [record for record in run.records if record.savepoint]
    assert (record.state, record.reason) == (CheckpointState.FAILED, CheckpointFailure.CHECKPOINT_EXPIRED)
    assert Savepoints(run.settings.lake_uri).all() == ()
    assert create(run).name == NAME, "its name is free"


def test_who_died_between_name_and_row_made_one(tmp_path):
    """`written` is reached when manifest and name are in the lake, and the ledger does not know."""
    run = PaperRun.make(tmp_path, (LEFT,))
    run.work()
    inject(run.settings.home_path, CheckpointPoint.WRITTEN, PIPELINE, 2, FaultAction.RAISE)
    with pytest.raises(InjectedFault):
        create(run)
    assert run.records[-1].state is CheckpointState.IN_PROGRESS
    made = create(run)
    assert made.number == 2
    run.work()  # whoever takes the next checkpoint clears up
    assert [(record.number, record.kept) for record in run.records if record.savepoint] == [(2, True)]
    assert content(run, made) == {LEFT: list(range(PARTITIONS))}


def test_of_a_run_that_was_replaced_its_checkpoint_is_kept_as_it_was(tmp_path):
    run = PaperRun.make(tmp_path, (LEFT,))
    run.work()
    before = run.stored.read_checkpoint(1)
    with run.ledger() as ledger:
        known = ledger.runs.get(RUN)
        newer = {**vars(known), "run_id": "newer", "started_at": datetime.now(UTC)}
        ledger.runs.create(known.__class__(**newer))
        lease = ledger.leases.acquire("region", "me", 60)
        changed = before.stages[0].partitions[0]
        ledger.partitions.record([changed.__class__(**{**vars(changed), "fingerprint": "other"})], lease)
    made = create(run)
    saved = Savepoints(run.settings.lake_uri).stored(made).read_checkpoint(made.number)
    assert saved.stages == before.stages


def test_of_a_run_that_was_replaced_and_left_nothing_there_is_none(tmp_path):
    run = PaperRun.make(tmp_path, (LEFT,))
    run.work()
    with run.ledger() as ledger:
        known = ledger.runs.get(RUN)
        ledger.runs.create(known.__class__(**{**vars(known), "run_id": "newer", "started_at": datetime.now(UTC)}))
        lease = take_coordinator_lease(known, run.workplace(ledger))
        ledger.checkpoints.discard(run.records[0], lease)
        ledger.leases.release(lease)
    with pytest.raises(NothingToSave, match=f"replaced what run {RUN} left"):
        create(run)


def test_disposing_frees_name_and_files_and_leaves_what_others_share(tmp_path):
    run = PaperRun.make(tmp_path, (LEFT,))
    run.work()
    create(run)
    dispose(run)
    assert Savepoints(run.settings.lake_uri).all() == ()
    assert run.stored.numbers() == (1,)
    assert len(run.stored.read_checkpoint(1).stages[0].partitions) == PARTITIONS
    assert [record.kept for record in run.records] == [True, False]
    assert create(run).number == 3


def test_a_savepoint_outlives_its_ledger(tmp_path):
    run = PaperRun.make(tmp_path, (LEFT,))
    run.work()
    made = create(run)
    for file in run.settings.home_path.glob("ledger.db*"):
        file.unlink()
    assert Savepoints(run.settings.lake_uri).all() == (made,)
    assert content(run, made) == {LEFT: list(range(PARTITIONS))}
    dispose(run)
    assert run.stored.numbers() == (1,)
