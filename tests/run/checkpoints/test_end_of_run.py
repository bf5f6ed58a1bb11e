"""A run leaves a numbered checkpoint when it ends, wherever somebody who takes one is killed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import duckdb
import pytest
from tests.run.workbench import FINISHED, INTERVAL, Workbench, ended, killed

from stagehold.lake.checkpoints.manifest import CheckpointedRun
from stagehold.lake.checkpoints.stored_checkpoints import StoredCheckpoints
from stagehold.ledger.ledger import Ledger
from stagehold.model.checkpoint_records import CheckpointRecord, CheckpointState
from stagehold.run.faults import CheckpointPoint, FaultAction, Point, inject

pytestmark = pytest.mark.spark


@pytest.fixture
def bench(tmp_path, spark_remote):
    return Workbench.make(tmp_path, spark_remote)


def history(bench: Workbench, run_id: str) -> tuple[CheckpointRecord, ...]:
    with Ledger.open(bench.settings.ledger_url) as ledger:
        return ledger.checkpoints.of_run(run_id)


def states(bench: Workbench, run_id: str) -> list[tuple[int, str]]:
    return [(one.number, "replaced" if one.discarded_at else str(one.state)) for one in history(bench, run_id)]


def stored(bench: Workbench, run_id: str) -> StoredCheckpoints:
    return StoredCheckpoints(bench.settings.lake_uri, CheckpointedRun("toy", INTERVAL, run_id))


def again(bench: Workbench) -> None:
    """All is reused, so the run ends once more without Spark."""
    done = bench.run("--run-id", FINISHED, settings=bench.without_spark())
    assert done.counts == (13, 0), done.err


def test_a_finished_run_leaves_all_that_it_reached_where_neither_ledger_nor_code_is_needed(finished):
    (record,) = history(finished, FINISHED)
    assert (record.number, record.state, record.bytes_referenced) == (1, CheckpointState.COMPLETED, 0)
    checkpoint = stored(finished, FINISHED).read_checkpoint(1)
    assert {stage.shape.name: stage.partitions for stage in checkpoint.stages} == {
        name: finished.records(name) for name in ("numbers", "doubled", "by_wave", "by_colour", "summary")
    }
    source = next(stage for stage in checkpoint.stages if stage.shape.name == "numbers")
    assert str(source.position) == "4 files"
    gated = next(stage for stage in checkpoint.stages if stage.shape.name == "by_colour")
    assert {verdict.partition for verdict in gated.verdicts} == {0, 1, 2, 3}
    parts = f"{stored(finished, FINISHED).uri}/parts/*.parquet"
    query = f"SELECT state, count(*) FROM '{parts}' GROUP BY state"
    assert duckdb.sql(query).fetchall() == [("consumable", 13)]


def test_the_next_one_refers_to_what_is_unchanged_and_replaces_the_one_before(finished):
    again(finished)
    assert states(finished, FINISHED) == [(1, "replaced"), (2, "completed")]
    assert stored(finished, FINISHED).numbers() == (2,)
    newest = history(finished, FINISHED)[-1]
    assert (newest.bytes_written, newest.bytes_referenced > 0) == (0, True)
    assert len(stored(finished, FINISHED).read_checkpoint(2).stages) == 5


def test_as_many_are_kept_as_the_pipeline_says(finished):
    finished.declare("checkpoint: {retained: 2}")
    for _ in range(3):
        again(finished)
    assert stored(finished, FINISHED).numbers() == (3, 4)


def test_a_run_that_failed_leaves_one_as_well(bench):
    bench.inject(Point.BEFORE_PUBLISH, "by_colour", 2, FaultAction.FAIL)
    assert bench.run("--run-id", "r").code == 1
    counts = {stage.shape.name: len(stage.partitions) for stage in stored(bench, "r").read_checkpoint(1).stages}
    assert counts == {"numbers": 4, "doubled": 0, "by_wave": 4, "by_colour": 2, "summary": 0}


@pytest.mark.parametrize(
    ("point", "kept", "after"),
    [
        (CheckpointPoint.BEGUN, (1,), [(1, "replaced"), (2, "failed"), (3, "completed")]),
        (CheckpointPoint.WRITTEN, (1, 2), [(1, "replaced"), (2, "failed"), (3, "completed")]),
        (CheckpointPoint.RECORDED, (1, 2), [(1, "replaced"), (2, "replaced"), (3, "completed")]),
        (CheckpointPoint.RELEASED, (1, 2), [(1, "replaced"), (2, "replaced"), (3, "completed")]),
    ],
)
def test_whoever_takes_one_may_be_killed_at_any_step(finished, point, kept, after):
    inject(finished.settings.home_path, point, "toy", 2, FaultAction.KILL)
    assert killed(finished.run("--run-id", FINISHED, settings=finished.without_spark()))
    assert stored(finished, FINISHED).numbers() == kept
    again(finished)
    assert states(finished, FINISHED) == after
    assert stored(finished, FINISHED).numbers() == (3,)
    assert len(stored(finished, FINISHED).read_checkpoint(3).stages) == 5


def test_a_lake_that_takes_no_checkpoint_fails_no_run(finished):
    place = Path(stored(finished, FINISHED).uri)
    shutil.rmtree(place)
    place.write_text("a file is in the way")
    again(finished)
    assert states(finished, FINISHED)[-1] == (2, "failed")
    assert "NotADirectoryError" in str(history(finished, FINISHED)[-1].failure)


def test_the_command_lists_them_and_shows_what_is_in_one(finished):
    again(finished)
    listed = json.loads(ended(finished.command("checkpoints", "list", "--json")).out)
    assert [checkpoint["state"] for checkpoint in listed["checkpoints"]] == ["completed", "completed"]
    lines = ended(finished.command("checkpoints", "list", "--run", FINISHED)).out
    assert "completed 2, failed 0, in progress 0" in lines
    shown = json.loads(ended(finished.command("checkpoints", "show", "2", "--json")).out)
    assert {stage["stage"]: stage["consumable"] for stage in shown["stages"]}["by_colour"] == 4
    assert "4 files" in ended(finished.command("checkpoints", "show", "2")).out
    missing = ended(finished.command("checkpoints", "show", "7"))
    assert missing.code == 1
    assert f"There is no checkpoint of {FINISHED} '7'" in missing.err
    part = next(Path(stored(finished, FINISHED).uri, "parts").iterdir())
    part.write_bytes(part.read_bytes()[:-1])
    torn = ended(finished.command("checkpoints", "show", "2"))
    assert torn.code == 1
    assert str(part) in torn.err


def test_history_comes_back_with_a_lost_ledger_and_numbers_never_come_again(finished):
    again(finished)
    known = history(finished, FINISHED)
    for file in finished.settings.home_path.glob("ledger.db*"):
        file.unlink()
    assert ended(finished.command("reconcile")).code == 0
    assert history(finished, FINISHED) == known
    again(finished)
    assert states(finished, FINISHED) == [(1, "replaced"), (2, "replaced"), (3, "completed")]


def test_a_run_on_spark_is_asked_between_its_waves_and_the_command_shows_what_it_answered(bench):
    bench.declare("checkpoint: {interval: 200ms, tolerable_failures: unlimited}")
    assert bench.run("--run-id", "r").code == 0
    listed = json.loads(ended(bench.command("checkpoints", "list", "--json")).out)
    asked = [
        checkpoint
        for checkpoint in listed["checkpoints"]
        if checkpoint["acknowledgements"] and checkpoint["state"] == "completed"
    ]
    assert asked
    assert {part["answer"] for part in asked[-1]["acknowledgements"]} == {"acknowledged"}
    assert listed["counts"]["completed"] >= 2
    lines = ended(bench.command("checkpoints", "list")).out
    assert f"completed {listed['counts']['completed']}, failed " in lines
    part = asked[-1]["acknowledgements"][0]
    shown = ended(bench.command("checkpoints", "show", str(asked[-1]["number"]), "--json"))
    assert json.loads(shown.out)["checkpoint"]["acknowledgements"][0] == part
    assert part["region"] in ended(bench.command("checkpoints", "show", str(asked[-1]["number"]))).out
