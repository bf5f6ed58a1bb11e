"""`stagehold gc` over a lake that attempts wrote to, without Spark."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.lake.paper_table import PaperTable, records
from tests.ledger.samples import ATTEMPT_ENDS
from tests.run.workbench import INTERVAL, NOWHERE, Workbench
from typer.testing import CliRunner

from stagehold.checkpoints.releasing import as_released
from stagehold.cli.main import app
from stagehold.errors import Fenced
from stagehold.gates.verdict_pages import docs_uri
from stagehold.lake.commit.staged_committer import StagedCommitter
from stagehold.lake.store.files import files_at
from stagehold.lake.store.location import table_location
from stagehold.ledger import Ledger
from stagehold.model.records import Attempt, AttemptState, Cell, Lease, PartitionRecord, Run, RunState
from stagehold.model.states import UNTIL_RUNNING, AttemptEvent
from stagehold.settings import Settings
from stagehold.spec.loading.loader import find_pipeline

pytestmark = pytest.mark.slow

REGION = "by_colour"
A, B = ("a", 1), ("b", 2)


@dataclass(frozen=True)
class Scene:
    """Attempts of one region, as `run` would make them."""

    settings: Settings
    ledger: Ledger
    table: PaperTable

    def attempt(self, epoch: int, state: AttemptState = AttemptState.FAILED) -> tuple[PaperTable, Lease]:
        lease = self.ledger.leases.take(f"toy/{INTERVAL}/{REGION}", None, f"attempt {epoch}", 60, lambda _: True)
        assert lease.epoch == epoch
        table = replace(self.table, epoch=epoch)
        self.ledger.attempts.create(
            Attempt(table.attempt_id, "run", "toy", INTERVAL, REGION, epoch, AttemptState.RUNNING, datetime.now(UTC)),
            *UNTIL_RUNNING,
        )
        if state is not AttemptState.RUNNING:
            self.ledger.attempts.apply(table.attempt_id, *ATTEMPT_ENDS[state])
            self.ledger.leases.release(lease)
        return table, lease

    def release(self, record: PartitionRecord) -> None:
        lease = self.ledger.leases.take(f"toy/{INTERVAL}/{REGION}", None, "me", 60, lambda _: True)
        self.ledger.partitions.record([as_released(record, datetime.now(UTC))], lease)
        self.ledger.leases.release(lease)

    def data_files(self) -> set[str]:
        return {path for path in files_at(self.table.location.uri).sizes("_data") if not path.endswith("/")}

    def collect(self, *words: str) -> dict[str, Any]:
        result = CliRunner().invoke(app, ["gc", "--json", *words], env=dict(self.settings.environment))
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)


@pytest.fixture(params=["folder", "s3"])
def scene(request: pytest.FixtureRequest, tmp_path: Path):
    settings = replace(Workbench.make(tmp_path, NOWHERE).settings, sweep_after_seconds=0)
    if request.param == "s3":
        settings = replace(settings, lake=request.getfixturevalue("s3_lake"))
    stage = find_pipeline("toy", settings).stage(REGION)
    location = table_location(settings.lake_uri, "toy", stage, INTERVAL)
    with Ledger.open(settings.ledger_url) as ledger:
        yield Scene(settings, ledger, PaperTable(location).create())


def test_what_a_dead_attempt_left_goes_and_what_it_recorded_stays(scene):
    table, lease = scene.attempt(1, AttemptState.RUNNING)
    landed = StagedCommitter().publish(table.location, table.wave({0: [A]}))
    scene.ledger.partitions.record(
        [replace(record, cell=Cell("toy", REGION, INTERVAL)) for record in records(table.location, landed)], lease
    )
    table.wave({1: [B]}, 2)
    scene.ledger.attempts.apply(table.attempt_id, AttemptEvent.FAIL)
    scene.ledger.leases.release(lease)
    before = scene.data_files()
    shown = scene.collect("--dry-run")
    assert scene.data_files() == before
    (stray,) = shown["cleared"]
    assert (stray["stage"], stray["why"], stray["files"]) == (REGION, "stray", 1)
    done = scene.collect()
    assert (done["cleared"], done["bytes"]) == (shown["cleared"], shown["bytes"]) == ([stray], stray["bytes"])
    assert scene.data_files() == {file.path for file in landed.commit.partitions[0].files}
    assert scene.collect()["cleared"] == []
    assert [row[2:] for row in table.seen()] == [A]


def test_of_a_table_of_which_all_was_released_only_the_log_is_left_for_a_day(scene):
    table, lease = scene.attempt(1, AttemptState.RUNNING)
    landed = StagedCommitter().publish(table.location, table.wave({0: [A], 1: [B]}))
    cell = Cell("toy", REGION, INTERVAL)
    known = [replace(record, cell=cell) for record in records(table.location, landed)]
    scene.ledger.partitions.record(known, lease)
    scene.ledger.runs.start(Run("run", "toy", INTERVAL, "cli", RunState.CREATED, datetime.now(UTC)))
    scene.ledger.leases.release(lease)
    assert scene.collect()["cleared"] == []
    scene.release(known[0])
    (half,) = scene.collect()["cleared"]
    assert (half["stage"], half["why"], half["files"]) == (REGION, "released", 1)
    assert scene.data_files() == {file.path for file in known[1].files}
    scene.release(known[1])
    assert scene.collect()["cleared"][0]["files"] == 1
    assert scene.data_files() == set()
    assert len(files_at(table.location.uri).sizes("_delta_log")) == 2  # somebody may sleep in the middle of a commit
    assert scene.collect()["cleared"] == []


def test_pages_about_gates_are_no_strays(scene):
    dead, _ = scene.attempt(1)
    dead.wave({0: [A]})
    pages = files_at(docs_uri(scene.settings.lake_uri, "toy", INTERVAL))
    pages.create("index.html", b"all")
    assert [one["why"] for one in scene.collect("--older-than", "0d")["cleared"]] == ["stray"]
    assert pages.read("index.html") == b"all"


def test_a_region_that_is_worked_on_is_passed_over(scene):
    dead, _ = scene.attempt(1)
    dead.wave({0: [A]})
    living, _ = scene.attempt(2, AttemptState.RUNNING)
    wave = living.wave({0: [B]})
    before = scene.data_files()
    found = scene.collect()
    assert "is being worked on by attempt 2" in found["passed_over"][0]
    assert (found["cleared"], scene.data_files()) == ([], before)
    assert StagedCommitter().publish(living.location, wave)


def test_a_zombie_is_fenced_before_its_files_go(scene):
    zombie, _ = scene.attempt(1, AttemptState.CANCELED)  # its process may still be at it
    late = zombie.wave({0: [A]})
    scene.collect()
    assert scene.data_files() == set()
    with pytest.raises(Fenced):
        StagedCommitter().fence(zombie.location, zombie.claim)
    assert late.epoch == 1
    following, _ = scene.attempt(3)  # the sweep took an epoch, too
    StagedCommitter().publish(following.location, following.wave({0: [B]}))
    assert [row[2:] for row in following.seen()] == [B]


def test_files_of_attempts_that_the_ledger_does_not_know_stay(scene):
    replace(scene.table, epoch=77).wave({0: [A]})
    scene.attempt(1)
    before = scene.data_files()
    assert (scene.collect()["cleared"], scene.data_files()) == ([], before)


def test_files_stay_until_they_are_old_enough(scene):
    table, _ = scene.attempt(1)
    table.wave({0: [A]})
    patient = replace(scene, settings=replace(scene.settings, sweep_after_seconds=600))
    assert patient.collect()["cleared"] == []
    assert len(scene.data_files()) == 1


def test_people_are_shown_a_table(scene):
    table, _ = scene.attempt(1)
    table.wave({0: [A]})
    environment = dict(scene.settings.environment)
    shown = CliRunner().invoke(app, ["gc", "--dry-run"], env=environment).stdout
    assert f"toy {INTERVAL} {REGION} stray" in " ".join(shown.split())
    assert "stray: left by an attempt that died; no record and no commit knows of it" in shown
    assert shown.rstrip().endswith("would be deleted.")
    CliRunner().invoke(app, ["gc"], env=environment)
    assert "0 bytes deleted." in CliRunner().invoke(app, ["gc"], env=environment).stdout


def test_a_bad_pipeline_file_hides_no_other_pipeline(scene):
    table, _ = scene.attempt(1)
    table.wave({0: [A]})
    Path(scene.settings.pipelines, "bad.yaml").write_text("pipeline: [")
    result = CliRunner().invoke(app, ["gc"], env=dict(scene.settings.environment))
    assert result.exit_code == 1
    assert "not looked at: " in result.stderr
    assert "bad.yaml has 1 problem" in result.stderr
    assert scene.data_files() == set()


def test_two_do_not_collect_at_once(scene):
    scene.ledger.leases.acquire("maintenance", "somebody", 60)
    result = CliRunner().invoke(app, ["gc"], env=dict(scene.settings.environment))
    assert (result.exit_code, "is being worked on by somebody" in result.stderr) == (1, True)


@pytest.mark.parametrize("given", ["30", "-1d", "a month", "99999999999999d"])
def test_a_bad_age_is_refused_before_anything_is_done(scene, given):
    table, _ = scene.attempt(1)
    table.wave({0: [A]})
    result = CliRunner().invoke(app, ["gc", "--older-than", given], env=dict(scene.settings.environment))
    assert result.exit_code == 1
    assert f"--older-than is {given!r}; allowed: a whole number with a unit" in result.stderr
    assert len(scene.data_files()) == 1
