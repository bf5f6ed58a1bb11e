"""Stages and listeners hear how each checkpoint of a run ended: at least once, in order, whoever is killed."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.extensions.installed import install
from tests.ledger.samples import record
from tests.run.checkpoints.paper_run import LEFT, PARTITIONS, PIPELINE, RIGHT, PaperRun

from stagehold.errors import NoticeFailed, StorageUnusable
from stagehold.extensions.checkpoint_listening import CHECKPOINT_LISTENERS
from stagehold.extensions.installed import installed
from stagehold.model.checkpoint_records import CheckpointState, CheckpointTrigger, SavepointRequest
from stagehold.model.records import DataFile, RunState
from stagehold.run.checkpoints.notices import rows_of
from stagehold.run.faults import CheckpointPoint, FaultAction, inject

pytestmark = pytest.mark.slow

HEARD = """\
from stagehold.extensions.checkpoint_listening import CheckpointListener

heard = []

class Hears(CheckpointListener):
    def notify_checkpoint_complete(self, number):
        heard.append((self.run.run_id, number, None))

    def notify_checkpoint_aborted(self, number, reason):
        heard.append((self.run.run_id, number, reason))

class Raises(CheckpointListener):
    def notify_checkpoint_complete(self, number):
        raise RuntimeError("a listener of somebody else")

class CannotBeMade(CheckpointListener):
    def __init__(self, run):
        raise RuntimeError("made by somebody else")
"""


@pytest.fixture(autouse=True)
def forgets_modules(monkeypatch) -> Iterator[None]:
    """Each test has a project of its own, whose module has the name of the others'."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    sys.modules.pop("paper_jobs", None)


@pytest.fixture
def heard(tmp_path, monkeypatch) -> Iterator[list[tuple[str, int, str | None]]]:
    installed.cache_clear()
    packages = tmp_path / "packages"
    packages.mkdir()
    monkeypatch.syspath_prepend(str(packages))
    classes = {"mine": "hears:Hears", "raises": "hears:Raises", "not_made": "hears:CannotBeMade"}
    install(packages, "hears", HEARD, {CHECKPOINT_LISTENERS: classes})
    import hears

    yield hears.heard
    installed.cache_clear()
    sys.modules.pop("hears", None)


def complete(run: PaperRun) -> list[int]:
    return [record.number for record in run.records if record.state is CheckpointState.COMPLETED]


@pytest.mark.parametrize("point", [CheckpointPoint.WRITTEN, CheckpointPoint.RECORDED, CheckpointPoint.TOLD])
def test_each_complete_one_is_told_at_least_once_and_in_order_whoever_is_killed(tmp_path, started, point):
    run = PaperRun.make(tmp_path, noted=True, interval="200ms")
    started.extend(run.start(stage, 1.0) for stage in (LEFT, RIGHT))
    run.until(lambda: {acknowledgement.region for acknowledgement in run.acknowledgements} == {LEFT, RIGHT})
    for number in range(1, 200):  # whichever is the next to get there
        inject(run.settings.home_path, point, PIPELINE, number, FaultAction.KILL)
    run.until(lambda: any(process.exitcode is not None for process in started))
    for fault in Path(run.settings.home_path, "faults").iterdir():
        fault.unlink(missing_ok=True)
    (killed,) = [process for process in started if process.exitcode is not None]
    assert killed.exitcode == -signal.SIGKILL
    started.append(run.start(LEFT if killed is started[0] else RIGHT, 0.1))
    for process in started:
        process.join()
    assert [process.exitcode for process in started if process is not killed] == [0, 0]
    told = [number for number, _ in run.notes]
    assert told == sorted(told)
    assert set(told) == set(complete(run))
    assert not [record.number for record in run.records if record.untold]
    assert (len(told) > len(set(told))) == (point is CheckpointPoint.TOLD), "twice where nobody knows of the first time"
    assert run.notes[-1][1] == PARTITIONS


def test_while_a_function_raises_nobody_is_told_of_later_ones_and_the_end_of_the_run_says_so(tmp_path):
    run = PaperRun.make(tmp_path, (LEFT,), noted=True, interval="100ms", retained=9)
    refuse = Path(run.settings.project, "refuse")
    refuse.touch()
    with pytest.raises(NoticeFailed) as failed:
        run.work()
    assert "on_complete of left (paper_jobs:note) raised RuntimeError: not now" in str(failed.value)
    assert "stagehold resume r" in str(failed.value)
    untold = [record.number for record in run.records if record.untold]
    assert untold == complete(run)
    assert run.records[-1].trigger is CheckpointTrigger.END_OF_RUN
    assert run.seen.runs.get("r").state is RunState.FINISHED, "its data is whole"
    warned = [event.text for event in run.seen.events.of_run("r") if "not now" in event.text]
    assert warned
    refuse.unlink()
    run.work()
    assert [number for number, _ in run.notes] == complete(run)
    assert complete(run)[:-1] == untold
    assert not [record for record in run.records if record.untold]


def test_one_that_was_replaced_before_it_could_be_told_is_passed_over(tmp_path):
    run = PaperRun.make(tmp_path, (LEFT,), noted=True, interval="100ms")
    refuse = Path(run.settings.project, "refuse")
    refuse.touch()
    with pytest.raises(NoticeFailed):
        run.work()
    kept = [record.number for record in run.records if record.kept]
    refuse.unlink()
    run.work()
    later = [number for number in complete(run) if number > kept[-1]]
    assert [number for number, _ in run.notes] == [*kept, *later]
    assert not [record for record in run.records if record.untold]


def test_a_lake_that_takes_no_checkpoint_at_the_end_fails_a_run_of_which_a_stage_is_to_know(tmp_path):
    run = PaperRun.make(tmp_path, (LEFT,), noted=True)
    place = Path(run.stored.uri)
    place.parent.mkdir(parents=True)
    place.write_text("a file is in the way")
    with pytest.raises(StorageUnusable):
        run.work()
    place.unlink()
    run.work()
    assert run.notes[-1] == (complete(run)[-1], PARTITIONS)


def test_listeners_hear_of_all_but_savepoints_and_harm_nothing(tmp_path, heard, caplog):
    run = PaperRun.make(tmp_path, (LEFT,), interval="10min")
    wish = SavepointRequest("mine", "r", False, "me", "", datetime.now(UTC))

    def ask(stage: str, wave: int) -> None:
        if wave == 1:
            run.seen.savepoint_requests.ask(wish)
        time.sleep(0.5)

    run.work(pace=ask)
    ends = [(record.trigger, record.number) for record in run.records if record.state is CheckpointState.COMPLETED]
    assert [trigger for trigger, _ in ends] == [CheckpointTrigger.ASKED_FOR, CheckpointTrigger.END_OF_RUN]
    assert heard == [("r", ends[1][1], None)]
    assert "checkpoint listener raises failed on checkpoint" in caplog.text
    assert "checkpoint listener not_made is left out" in caplog.text


def test_listeners_hear_why_there_is_no_such_checkpoint(tmp_path, heard):
    run = PaperRun.make(tmp_path, (LEFT,))
    inject(run.settings.home_path, CheckpointPoint.BEGUN, PIPELINE, 1, FaultAction.RAISE)
    run.work()
    assert run.records[-1].state is CheckpointState.IN_PROGRESS, "whoever took it fell over"
    run.work()
    assert heard == [("r", 1, "checkpoint_coordinator_suspend"), ("r", 2, None)]


def test_a_stage_is_given_the_rows_of_its_partitions_that_can_be_read(tmp_path):
    files = {number: f"_data/1/0/_partition={number}/part-0.parquet" for number in (0, 2)}
    for number, path in files.items():
        (tmp_path / path).parent.mkdir(parents=True)
        pq.write_table(pa.table({"amount": [number, 10 + number]}), tmp_path / path)
    sizes = {path: (tmp_path / path).stat().st_size for path in files.values()}
    held = [
        record(number, table=str(tmp_path), files=(DataFile(path, sizes[path], 2),)) for number, path in files.items()
    ]
    rows = rows_of("left", tuple(held), print).to_pylist()
    assert sorted((row["_partition"], row["amount"]) for row in rows) == [(0, 0), (0, 10), (2, 2), (2, 12)]
    assert rows_of("left", (), print).num_rows == 0


def test_where_nobody_has_a_part_nothing_is_left_to_be_told(tmp_path):
    run = PaperRun.make(tmp_path, (LEFT,))
    run.work()
    (record,) = run.records
    assert not record.untold
