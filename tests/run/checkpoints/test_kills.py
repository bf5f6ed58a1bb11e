"""Real processes that work on two regions of one run: one takes the checkpoints, and is killed at each phase of one."""

from __future__ import annotations

import signal
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest
from tests.run.checkpoints.paper_run import INTERVAL, LEFT, PARTITIONS, PIPELINE, RIGHT, RUN, PaperRun, Started

from stagehold.model.checkpoint_records import CheckpointState, CheckpointTrigger
from stagehold.model.records import RunState
from stagehold.run.checkpoints.coordinator_driver import until_next
from stagehold.run.faults import CheckpointPoint, FaultAction, inject

pytestmark = pytest.mark.slow

LEASE = f"{PIPELINE}/{INTERVAL}/{RUN}/coordinator"
WAVE = 1.5  # longer than a process takes to start on a busy machine


def holder(run: PaperRun) -> int | None:
    lease = run.seen.leases.get(LEASE)
    return int(lease.holder.split("|")[2]) if lease and run.seen.leases.alive(LEASE) else None


def is_whole(run: PaperRun) -> None:
    """Numbers are used once, nothing is left half done, and the lake has what the ledger says."""
    records = run.records
    assert [record.number for record in records] == list(range(1, len(records) + 1))
    assert not [record for record in records if record.state is CheckpointState.IN_PROGRESS]
    assert run.stored.numbers() == tuple(record.number for record in records if record.kept)
    last = run.stored.read_checkpoint(records[-1].number)
    assert records[-1].trigger is CheckpointTrigger.END_OF_RUN
    assert [len(stage.partitions) for stage in last.stages] == [PARTITIONS, PARTITIONS]
    with run.ledger() as ledger:
        assert ledger.runs.get(RUN).state is RunState.FINISHED


def code_of(process: ForkServerProcess) -> int | None:
    process.join()
    return process.exitcode


def take_over(run: PaperRun, started: Started, killed: ForkServerProcess) -> None:
    """The other one goes on with the checkpoints, and the killed one's region is tried again."""
    (survivor,) = [process for process in started if process is not killed]
    run.until(lambda: holder(run) == survivor.pid)
    started.append(run.start(LEFT if killed is started[0] else RIGHT, 0.1))
    for process in (survivor, started[-1]):
        assert code_of(process) == 0


@pytest.mark.parametrize(
    "point",
    [
        CheckpointPoint.BEGUN,
        CheckpointPoint.TRIGGERED,
        CheckpointPoint.HALF_ACKNOWLEDGED,
        CheckpointPoint.WRITTEN,
        CheckpointPoint.RECORDED,
        CheckpointPoint.RELEASED,
    ],
)
def test_whoever_takes_checkpoints_may_be_killed_at_any_phase(tmp_path, started, point):
    run = PaperRun.make(tmp_path, interval="200ms")
    started.extend(run.start(stage, wave) for stage, wave in ((LEFT, WAVE), (RIGHT, WAVE)))
    run.until(lambda: {acknowledgement.region for acknowledgement in run.acknowledgements} == {LEFT, RIGHT})
    begun = len(run.records)
    for number in range(begun, begun + 10):  # whichever is the next to get there, of one for each wave
        inject(run.settings.home_path, point, PIPELINE, number, FaultAction.KILL)
    run.until(lambda: any(process.exitcode is not None for process in started))
    (killed,) = [process for process in started if process.exitcode is not None]
    for fault in Path(run.settings.home_path, "faults").iterdir():
        fault.unlink(missing_ok=True)
    assert killed.exitcode == -signal.SIGKILL
    take_over(run, started, killed)
    is_whole(run)


def test_half_a_manifest_is_no_checkpoint_and_its_number_never_comes_again(tmp_path, started):
    run = PaperRun.make(tmp_path, interval="200ms")
    started.append(run.start(LEFT, WAVE, tear=2))  # there is one for each wave, once both work
    run.until(lambda: holder(run) == started[0].pid)
    started.append(run.start(RIGHT, WAVE))
    assert code_of(started[0]) == -signal.SIGKILL
    assert list(Path(run.stored.uri).glob(".0000000002.json.*"))
    take_over(run, started, started[0])
    assert run.records[1].state is CheckpointState.FAILED
    assert run.records[1].failure == "whoever took it died before its end"
    is_whole(run)


def test_of_two_processes_one_takes_checkpoints_at_a_time_and_another_goes_on_at_the_same_times(tmp_path, started):
    run = PaperRun.make(tmp_path, interval="300ms", max_concurrent=50)
    started.extend(run.start(stage, wave) for stage, wave in ((LEFT, WAVE), (RIGHT, WAVE)))
    holders: list[int] = []

    def both_have_ended() -> bool:
        now = holder(run)
        if now is not None and now not in holders[-1:]:
            holders.append(now)
        return all(process.exitcode is not None for process in started)

    run.until(both_have_ended)
    assert [process.exitcode for process in started] == [0, 0]
    assert len(holders) == len(set(holders)), "nobody takes it back from somebody who lives"
    is_whole(run)
    with run.ledger() as ledger:
        began = ledger.transitions.of_run(RUN)[0].recorded_at
    triggered = [round(record.triggered_at.timestamp() * 1000) for record in run.records[:-1]]
    late = [300 - until_next(RUN, began, at, least=0, period=300) for at in triggered]
    assert sorted(late)[len(late) // 2] < 150, "most are taken soon after they were due"
