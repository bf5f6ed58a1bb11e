"""Runs that begin with a savepoint, by the command, on a real Spark server."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.run.losses.test_scrubs import file_of, flip_a_byte
from tests.run.workbench import INTERVAL, TOY, Ended, Workbench, ended

from stagehold.run.faults import FaultAction, Point

pytestmark = pytest.mark.spark


@pytest.fixture
def bench(tmp_path, spark_remote):
    bench = Workbench.make(tmp_path / "origin", spark_remote)
    shutil.copy(TOY / "events.yaml", bench.settings.pipelines)
    return bench


def say(bench: Workbench, *words: str) -> Ended:
    return ended(bench.command(*words, "--json"))


def published(bench: Workbench) -> dict[str, list[int]]:
    table = DeltaTable(f"{bench.settings.lake_uri}/marts/events").to_pyarrow_table()
    found: dict[str, list[int]] = {}
    for row in table.sort_by("id").to_pylist():
        found.setdefault(row["_interval"], []).append(row["id"])
    return found


def elsewhere(bench: Workbench, folder: Path) -> Workbench:
    """Another lake and ledger of the same project."""
    other = Workbench.make(folder, bench.settings.spark_remote)
    shutil.copy(TOY / "events.yaml", other.settings.pipelines)
    shutil.copytree(f"{bench.settings.lake_uri}/raw", f"{other.settings.lake_uri}/raw", dirs_exist_ok=True)
    return other


def test_an_incremental_pipeline_goes_on_in_another_lake(bench, tmp_path):
    bench.arrive("events", 1, 2, 3)
    assert say(bench, "run", "events", "--interval", "monday").code == 0
    assert say(bench, "savepoint", "create", "--name", "monday").code == 0
    exported = str(tmp_path / "exported")
    assert say(bench, "savepoint", "export", "monday", exported).code == 0
    other = elsewhere(bench, tmp_path / "other")
    assert say(other, "savepoint", "import", exported).code == 0
    restored = say(other, "run", "events", "--interval", "monday", "--restore", "monday")
    assert restored.counts[1] == 0, restored.err
    assert published(other) == {"monday": [1, 2, 3]}
    other.arrive("events", 4)
    assert say(other, "run", "events", "--interval", "tuesday").code == 0
    assert published(other) == {"monday": [1, 2, 3], "tuesday": [4]}
    for file in other.settings.home_path.glob("ledger.db*"):
        file.unlink()
    shutil.rmtree(f"{other.settings.lake_uri}/ledger")
    other.arrive("events", 5)
    assert say(other, "run", "events", "--interval", "wednesday").code == 0
    assert published(other) == {"monday": [1, 2, 3], "tuesday": [4], "wednesday": [5]}, (
        "the commits tell what was taken"
    )


def test_rows_of_one_interval_do_not_come_into_another(bench):
    bench.arrive("events", 1, 2)
    assert say(bench, "run", "events", "--interval", "monday").code == 0
    assert say(bench, "savepoint", "create", "--name", "monday").code == 0
    refused = say(bench, "run", "events", "--interval", "tuesday", "--restore", "monday")
    assert refused.code == 1
    assert "interval monday has taken some of that since" in refused.err
    assert published(bench) == {"monday": [1, 2]}


def test_an_interval_goes_back_and_the_plan_said_so(bench):
    assert say(bench, "run", "toy").code == 0
    assert say(bench, "savepoint", "create", "--name", "good").code == 0
    before = [(file, file.stat()) for file in Path(bench.settings.lake_uri, "raw", "numbers").iterdir()]
    contents = {file: file.read_bytes() for file, _ in before}
    for number in range(4):
        bench.write_source(number, 1000 * number)
    assert say(bench, "run", "toy").counts[1] > 0

    for file, status in before:
        file.write_bytes(contents[file])
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    plan = json.loads(say(bench, "plan", "toy", "--restore", "good").out)
    assert plan["run"] == 0
    taken = [line for line in plan["summary"] if line["reason"].startswith("consumable")]
    assert {line["stage"] for line in taken} == {"numbers", "by_wave", "by_colour", "summary"}
    assert all(line["reason"].endswith("; restored") for line in taken)
    back = say(bench, "run", "toy", "--restore", "good")
    assert back.counts[1] == 0, back.err
    assert say(bench, "run", "toy").counts[1] == 0


def summary(bench: Workbench) -> list[dict[str, object]]:
    return DeltaTable(f"{bench.settings.lake_uri}/marts/summary").to_pyarrow_table().to_pylist()


def test_a_bad_night_is_rolled_back_in_one_commit_and_computes_nothing(bench):
    assert bench.run().code == 0
    assert say(bench, "savepoint", "create", "--name", "good").code == 0
    good = summary(bench)
    for number in range(4):
        bench.write_source(number, 1000 * number)
    assert bench.run().counts[1] > 0
    assert summary(bench) != good
    version = DeltaTable(f"{bench.settings.lake_uri}/marts/summary").version()
    shown = json.loads(say(bench, "savepoint", "restore", "good").out)
    assert (shown["published"], shown["restored"]) == (False, 1)
    assert DeltaTable(f"{bench.settings.lake_uri}/marts/summary").version() == version
    back = say(bench, "savepoint", "restore", "good", "--publish", "--by", "ann", "--reason", "wrong factor")
    assert back.code == 0, back.err
    assert summary(bench) == good
    table = DeltaTable(f"{bench.settings.lake_uri}/marts/summary")
    commits = [one for one in table.history() if "savepoint good" in str(one.get("userMetadata"))]
    assert len(commits) == 1
    assert commits[0]["version"] == table.version()
    status = say(bench, "status", json.loads(back.out)["run_id"])
    assert f"ann put {INTERVAL} back to savepoint good: wrong factor" in status.out


def test_what_is_not_whole_is_not_rolled_back(bench):
    bench.inject(Point.BEFORE_PUBLISH, "by_colour", 1, FaultAction.FAIL)
    assert say(bench, "run", "toy").code == 1
    assert say(bench, "savepoint", "create", "--name", "half").code == 0
    refused = say(bench, "savepoint", "restore", "half", "--publish")
    assert refused.code == 1
    assert "it lacks 1 partitions of summary, or their data is gone" in refused.err


def test_a_deleted_interval_is_put_back_from_its_savepoint(bench):
    assert bench.run().code == 0
    assert say(bench, "savepoint", "create", "--name", "good").code == 0
    good = summary(bench)
    deleted = say(bench, "intervals", "delete", "toy", INTERVAL, "--yes")
    assert deleted.code == 0, deleted.err
    assert summary(bench) == []
    assert say(bench, "gc", "--older-than", "0s").code == 0
    back = say(bench, "savepoint", "restore", "good", "--publish")
    assert back.code == 0, back.err
    assert summary(bench) == good
    again = bench.run()
    assert (again.code, again.counts[1]) == (0, 0), again.err
    assert say(bench, "savepoint", "dispose", "good").code == 0
    assert summary(bench) == good
    for number in range(4):
        bench.write_source(number, 1000 * number)
    assert bench.run().code == 0
    assert bench.published() == bench.expected()


def test_a_deleted_interval_of_an_incremental_source_is_put_back_and_no_row_is_there_twice(bench):
    bench.arrive("events", 1, 2)
    assert say(bench, "run", "events", "--interval", "monday").code == 0
    assert say(bench, "savepoint", "create", "--name", "monday").code == 0
    assert say(bench, "intervals", "delete", "events", "monday", "--yes").code == 0
    bench.arrive("events", 3)
    assert say(bench, "run", "events", "--interval", "tuesday").code == 0
    assert published(bench) == {"tuesday": [3]}
    back = say(bench, "savepoint", "restore", "monday", "--publish")
    assert back.code == 0, back.err
    assert published(bench) == {"monday": [1, 2], "tuesday": [3]}
    for interval in ("monday", "wednesday"):
        assert say(bench, "run", "events", "--interval", interval).code == 0
    assert published(bench) == {"monday": [1, 2], "tuesday": [3]}


def test_what_is_published_goes_back_whatever_code_sources_and_inner_stages_are_now(bench):
    assert bench.run().code == 0
    assert say(bench, "savepoint", "create", "--name", "good").code == 0
    good = summary(bench)
    for number in range(4):
        bench.write_source(number, 1000 * number)
    assert bench.run().code == 0
    declared = Path(bench.settings.pipelines, "toy.yaml")
    changed = declared.read_text().replace("partitions: 4\n", "partitions: 3\n").replace("splits: 4", "splits: 2")
    late = "  late:\n    job: toy_jobs:summary\n    inputs: {by_colour: gather}\n"
    declared.write_text(f"{changed}{late}    output: {{type: blocking_persistent, table: marts.late}}\n")
    jobs = Path(bench.settings.project, "toy_jobs.py")
    jobs.write_text(jobs.read_text().replace('ctx.params["factor"])', 'ctx.params["factor"] + 1)'))
    shutil.rmtree(f"{bench.settings.lake_uri}/raw")
    shutil.rmtree(f"{bench.settings.lake_uri}/stages")
    back = say(bench, "savepoint", "restore", "good", "--publish")
    assert back.code == 0, back.err
    assert json.loads(back.out)["restored"] == 1
    assert summary(bench) == good
    assert say(bench, "savepoint", "dispose", "good").code == 0, "the run needs nothing of it any more"


def test_a_published_stage_goes_back_to_the_partitions_that_it_had_and_on_with_those_of_now(bench):
    declared = Path(bench.settings.pipelines, "toy.yaml")
    pipeline = """
pipeline: toy
stages:
  numbers:
    job: toy_jobs:numbers
    source: {kind: parquet, path: "${lake}/raw/numbers/*.parquet", splits: 4}
    output: {type: blocking_persistent, table: marts.numbers}
"""
    declared.write_text(pipeline)
    assert bench.run().counts == (0, 4)
    assert say(bench, "savepoint", "create", "--name", "four").code == 0
    declared.write_text(pipeline.replace("splits: 4", "splits: 6"))
    bench.write_source(0, 1000)
    assert bench.run().counts == (0, 6)
    assert say(bench, "savepoint", "restore", "four", "--publish").code == 0
    table = f"{bench.settings.lake_uri}/marts/numbers"
    rows = DeltaTable(table).to_pyarrow_table()
    assert sorted(rows["number"].to_pylist()) == [*range(100)]
    assert {*rows["_partition"].to_pylist()} == {*range(4)}
    assert bench.run().code == 0
    assert sorted(DeltaTable(table).to_pyarrow_table()["number"].to_pylist()) == [*range(25, 100), *range(1000, 1025)]


def test_a_stage_that_gets_a_uid_takes_its_own_savepoint_over(bench):
    assert bench.run().code == 0
    assert say(bench, "savepoint", "create", "--name", "named").code == 0
    before, declared = summary(bench), Path(bench.settings.pipelines, "toy.yaml")
    text = declared.read_text()
    for name in ("by_colour", "summary"):
        text = text.replace(f"  {name}:\n    job:", f"  {name}:\n    uid: {name}_1\n    job:")
    declared.write_text(text)
    taken = bench.run("--restore", "named")
    assert (taken.code, taken.counts[1]) == (0, 0), taken.err
    assert bench.run().counts[1] == 0
    assert summary(bench) == before


def test_data_of_other_code_is_kept_for_the_run_that_says_so(bench):
    assert bench.run().code == 0
    assert say(bench, "savepoint", "create", "--name", "good").code == 0
    before = summary(bench)
    jobs = Path(bench.settings.project, "toy_jobs.py")
    jobs.write_text(jobs.read_text().replace('ctx.params["factor"])', 'ctx.params["factor"] + 1)'))
    kept = bench.run("--restore", "good", "--on-code-change", "by_colour=keep", "--reason", "only the factor")
    assert (kept.code, kept.counts[1]) == (0, 0), kept.err
    assert "by_colour: code changed; kept (as this restore says)" in kept.err
    assert summary(bench) == before
    computed = bench.run("--restore", "good")
    assert (computed.code, computed.counts[1]) == (0, 5), computed.err
    assert {row["factor"] for row in summary(bench)} == {4}


def test_the_latest_checkpoint_whose_content_is_as_recorded_is_taken(bench):
    bench.declare("verify: always\ncheckpoint: {retained: 2}")
    assert bench.run("--run-id", "first").code == 0
    bench.write_source(0, 5000)
    assert bench.run("--run-id", "second").counts[1] > 0
    flip_a_byte(file_of(bench, "by_colour", 1))
    found = bench.run("--restore", "latest")
    assert found.code == 0, found.err
    passed = [line for line in found.err.splitlines() if line.startswith("passed over")]
    assert len(passed) == 1
    assert "checkpoint of another run 1 (second): by_colour[1]: its content no longer matches" in passed[0]
    assert bench.published() == bench.expected()
