"""The ledger is deleted, or an older copy of it put back:
what the lake knows is taken over, and what is published stays right.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.postgres import BACK_ENDS, own_schema
from tests.run.workbench import FINISHED, INTERVAL, TOY, Ended, Workbench, ended, killed

from stagehold.ledger.database.engine import Database
from stagehold.ledger.database.schema import VERSION_TABLE, metadata
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Fact
from stagehold.run.faults import FaultAction, Point

pytestmark = pytest.mark.spark


@pytest.fixture
def bench(tmp_path, spark_remote):
    return Workbench.make(tmp_path, spark_remote)


def lose_ledger(bench: Workbench) -> None:
    for file in bench.settings.home_path.glob("ledger.db*"):
        file.unlink()


def reconciled(bench: Workbench) -> str:
    """What the command printed."""
    done = ended(bench.command("reconcile", settings=bench.without_spark()))
    assert done.code == 0, done.err
    return done.out


def events(bench: Workbench, run_id: str) -> list[str]:
    with Ledger.open(bench.settings.ledger_url) as ledger:
        return [event.kind for event in ledger.events.of_run(run_id)]


def facts(bench: Workbench) -> list[Fact]:
    """All of them; the order of different cells' rows means nothing."""
    with Ledger.open(bench.settings.ledger_url) as ledger:
        return sorted(ledger.facts.all(), key=repr)


def test_an_interval_that_only_the_lake_knows_is_not_begun_from_scratch(finished):
    lose_ledger(finished)
    for words in (("run", "toy", "--run-id", FINISHED), ("run", "toy"), ("plan", "toy")):
        refused = ended(finished.command(*words, "--interval", INTERVAL, settings=finished.without_spark()))
        assert refused.code == 1
        assert f"knows nothing of toy for {INTERVAL}" in refused.err
        assert "`stagehold reconcile` rebuilds the ledger" in refused.err


def test_who_asks_what_happened_is_told_that_the_ledger_was_lost(finished):
    lose_ledger(finished)
    assert "`stagehold reconcile` rebuilds the ledger" in ended(finished.command("status")).out
    assert "`stagehold reconcile` rebuilds the ledger" in ended(finished.command("resume")).err
    assert "`stagehold reconcile` rebuilds the ledger" in ended(finished.command("verify", "toy")).out
    assert "`stagehold reconcile` rebuilds the ledger" in ended(finished.command("checkpoints", "list")).out


def test_a_lost_ledger_comes_back_as_it_was(finished):
    known = facts(finished)
    lose_ledger(finished)
    before = ended(finished.command("reconcile", "--dry-run", "--json"))
    assert {disagreement["difference"] for disagreement in before.result["disagreements"]} == {
        "row_missing",
        "epoch_behind",
    }
    assert facts(finished) == []
    reconciled(finished)
    assert facts(finished) == known
    assert "say the same" in reconciled(finished)
    again = finished.run("--run-id", FINISHED, settings=finished.without_spark())
    assert again.counts == (13, 0)
    assert "adopted" not in again.err
    assert finished.published() == finished.expected()
    assert finished.epochs("numbers") == [1, 1, 1, 1]


def test_without_a_chronicle_the_tables_logs_still_tell_what_is_published(finished):
    lose_ledger(finished)
    shutil.rmtree(Path(finished.settings.lake_uri, "ledger"))
    assert "adopted from the table's log" in reconciled(finished)
    assert finished.run("--run-id", FINISHED, settings=finished.without_spark()).counts == (13, 0)


@pytest.fixture
def elsewhere(bench, request) -> Iterator[Workbench]:
    """With its ledger on PostgreSQL, where this machine has it; the bucket's test loses one on SQLite."""
    if "postgresql" not in BACK_ENDS:
        yield bench
        return
    with own_schema(request.getfixturevalue("postgres_server")) as url:
        yield Workbench(replace(bench.settings, ledger=url))


def lose_tables(bench: Workbench) -> None:
    with Database(bench.settings.ledger_url).writing() as connection:
        metadata.drop_all(connection)
        connection.exec_driver_sql(f"DROP TABLE {VERSION_TABLE}")


def test_a_run_that_failed_goes_on_from_what_it_had_committed(elsewhere):
    elsewhere.inject(Point.BEFORE_PUBLISH, "by_colour", 2, FaultAction.KILL)
    assert killed(elsewhere.run("--run-id", "r"))
    lose_tables(elsewhere)
    reconciled(elsewhere)
    resumed = elsewhere.run("--run-id", "r")
    assert resumed.counts == (10, 3), resumed.err
    assert elsewhere.published() == elsewhere.expected()
    assert "fenced" not in events(elsewhere, "r")


def test_what_cannot_be_repaired_is_told(finished):
    (table,) = {record.table for record in finished.records("numbers")}
    file = Path(table, finished.records("numbers")[2].files[0].path)
    file.write_bytes(file.read_bytes()[:-1])
    torn = max(Path(finished.settings.lake_uri, "ledger").rglob("*.jsonl"))
    torn.write_bytes(torn.read_bytes()[:-1])
    shutil.rmtree(Path(finished.records("by_wave")[0].table, "_delta_log"))
    found = ended(finished.command("reconcile", "--json"))
    assert found.code == 1
    told = json.loads(found.out)["disagreements"]
    left = {(one["difference"], one["subject"]): one["partitions"] for one in told if not one["repaired"]}
    assert left == {
        ("data_changed", "numbers"): [2],
        ("torn", str(torn.relative_to(finished.settings.lake_uri))): [],
        ("row_uncommitted", "by_wave"): [0, 1, 2, 3],
    }
    lines = ended(finished.command("reconcile", "--dry-run")).out
    assert "left: the next run computes it again" in lines
    assert "its content does not match its checksum" in lines


def test_with_an_older_copy_of_the_ledger_only_what_changed_since_the_last_commit_is_computed(finished):
    """Yesterday's copy knows the interval, so nobody is stopped; what was made since is taken from the logs, and all
    that is known of it from the chronicle.
    """
    copy, ledger = (finished.settings.home_path / name for name in ("copy", "ledger.db"))
    shutil.copy(ledger, copy)
    finished.write_source(1, first=500)
    assert finished.run("--run-id", "s").result["computed"] > 0
    known = facts(finished)
    lose_ledger(finished)
    shutil.copy(copy, ledger)
    reconciled(finished)
    assert facts(finished) == known
    lose_ledger(finished)
    shutil.copy(copy, ledger)
    assert finished.run("--run-id", "s", settings=finished.without_spark()).counts == (13, 0)
    finished.write_source(1, first=700)
    finished.run("--run-id", "t")
    assert finished.published() == finished.expected()


# Incremental sources

FUSED = """
pipeline: events
wave: 100ms
stages:
  events:
    job: toy_jobs:events
    source: {kind: csv, path: "${lake}/raw/events", splits: 4, incremental: true, schema: "id int"}
    output: {type: pipelined}
  kept:
    job: toy_jobs:kept
    inputs: {events: forward}
    output: {type: blocking_persistent, table: marts.events, committer: delta_spark}
"""


@pytest.fixture(params=["stored", "fused into its reader"])
def incremental(request, bench):
    shutil.copy(TOY / "events.yaml", bench.settings.pipelines)
    if request.param != "stored":
        (Path(bench.settings.pipelines) / "events.yaml").write_text(FUSED)
    return bench


def run(bench: Workbench, interval: str) -> Ended:
    return ended(bench.command("run", "events", "--interval", interval, "--json"))


def read(bench: Workbench) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row in DeltaTable(f"{bench.settings.lake_uri}/marts/events").to_pyarrow_table().sort_by("id").to_pylist():
        found.setdefault(row["_interval"], []).append(row["id"])
    return found


def test_what_was_published_is_not_read_again(incremental):
    incremental.arrive("events", 1, 2)
    run(incremental, "monday")
    incremental.arrive("events", 3)
    run(incremental, "tuesday")
    lose_ledger(incremental)
    incremental.arrive("events", 4)
    wednesday = run(incremental, "wednesday")
    assert "events: the ledger did not know what monday has read" in wednesday.err
    assert "events: wednesday reads 1 files" in wednesday.err
    assert read(incremental) == {"monday": [1, 2], "tuesday": [3], "wednesday": [4]}
    reconciled(incremental)
    assert run(incremental, "monday").counts[1] == 0


def test_an_interval_that_was_published_in_part_reads_on_what_it_had_taken(incremental):
    incremental.arrive("events", 1, 2, 3, 4)
    stage = (
        "events" if "splits: {bytes" in (Path(incremental.settings.pipelines) / "events.yaml").read_text() else "kept"
    )
    incremental.inject(Point.BEFORE_PUBLISH, stage, 2, FaultAction.KILL)
    assert killed(run(incremental, "monday"))
    lose_ledger(incremental)
    incremental.arrive("events", 5)
    run(incremental, "tuesday")
    assert "knows nothing of events for monday" in run(incremental, "monday").err
    reconciled(incremental)
    assert run(incremental, "monday").code == 0
    assert read(incremental) == {"monday": [1, 2, 3, 4], "tuesday": [5]}
