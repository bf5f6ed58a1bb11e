"""The runner on a small pipeline with every kind of exchange, run by the command line against a real Spark server."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import pytest
from tests.run.workbench import INTERVAL, Workbench, ended, forge, killed, table_versions

from stagehold.lake.read import read_partitions
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import AttemptState
from stagehold.model.standing import PartitionState
from stagehold.run.faults import FaultAction, Point

pytestmark = pytest.mark.spark


@pytest.fixture
def bench(tmp_path, spark_remote):
    return Workbench.make(tmp_path, spark_remote)


def test_a_run_gives_the_right_rows_and_a_second_one_reuses_all_of_them_without_spark(finished_run, spark):
    bench = finished_run.put_back()
    assert finished_run.run.counts == (0, 13)
    assert finished_run.run.result["waves"] == 7
    assert bench.published() == bench.expected()
    again = bench.run(settings=bench.without_spark())
    assert again.counts == (13, 0)
    rows = read_partitions(spark, bench.records("by_wave")).collect()
    assert {row["seen"] for row in rows} == {25}  # a function sees just the partition it computes
    assert {row["wave_partitions"] for row in rows} == {2}  # unless it asked for the wave
    planned = json.loads(
        ended(bench.command("plan", "toy", "--interval", INTERVAL, "--param", "factor=4", "--json")).out
    )
    assert {line["reason"] for line in planned["summary"] if line["stage"] == "numbers"} == {"parameters changed"}


def test_a_killed_run_goes_on_after_the_last_recorded_wave(bench):
    bench.inject(Point.BEFORE_PUBLISH, "by_wave", 2, FaultAction.KILL)
    assert killed(bench.run())
    before = {record.partition: record for record in bench.records("by_wave")}
    assert sorted(before) == [0, 1]
    resumed = bench.run()
    assert resumed.counts == (4 + 2, 2 + 4 + 1)
    after = {record.partition: record for record in bench.records("by_wave")}
    assert {partition: after[partition] for partition in before} == before
    assert bench.published() == bench.expected()


def test_a_commit_that_was_not_recorded_is_adopted(bench):
    bench.inject(Point.AFTER_PUBLISH, "by_colour", 1, FaultAction.KILL)
    assert killed(bench.run())
    assert bench.records("by_colour") == ()
    resumed = bench.run()
    assert "adopted 2 partitions" in resumed.err
    assert [record.reason is not None for record in bench.records("by_colour")] == [True, True, False, False]
    assert bench.published() == bench.expected()


def test_a_frozen_attempt_that_wakes_up_changes_nothing_readable(bench):
    bench.inject(Point.BEFORE_PUBLISH, "by_wave", 2, FaultAction.FREEZE)
    zombie = bench.command("run", "toy", "--interval", INTERVAL, "--run-id", "r1")
    zombie.await_frozen()
    newer = bench.run("--run-id", "r1")
    assert "taking toy/2026-11-20/doubled__by_wave over" in newer.err
    records, versions = bench.records("by_wave"), table_versions(bench.records("by_wave")[0].table)
    zombie.send_signal(signal.SIGCONT)
    woken = ended(zombie)
    assert woken.code == 1
    assert "fenced" in woken.err
    assert (bench.records("by_wave"), table_versions(records[0].table)) == (records, versions)
    assert bench.published() == bench.expected()


def test_a_gate_blocks_one_partition_and_mended_data_runs_only_what_follows_from_it(finished):
    good = finished.published()
    finished.write_source(3, first=-10_000)
    failed = finished.run()
    assert failed.code == 1
    states = [record.state for record in finished.records("by_colour")]
    assert PartitionState.BLOCKED in states
    assert "expect_column_values_to_be_between(total, min_value=0)" in failed.err
    assert finished.published() == good
    unchanged = finished.run(settings=finished.without_spark())
    assert unchanged.code == 1
    finished.write_source(3)
    mended = finished.run()
    assert mended.counts == (3 + 3, 1 + 1 + 4 + 1)
    assert finished.published() == finished.expected()


def test_a_changed_function_runs_again_with_its_readers_only(finished):
    jobs = Path(finished.settings.project) / "toy_jobs.py"
    jobs.write_text(jobs.read_text().replace("F.lit(len(ctx.partitions))", "F.lit(len(ctx.partitions) + 1)"))
    planned = ended(finished.command("plan", "toy", "--interval", INTERVAL))
    assert "the code of toy_jobs:by_wave changed" in planned.out.replace("\n", " ")
    assert finished.run().counts == (4, 9)


def test_with_early_cutoff_equal_content_leaves_the_readers_alone(bench):
    file = Path(bench.settings.pipelines) / "toy.yaml"
    file.write_text(file.read_text() + "early_cutoff: true\n")
    bench.run()
    jobs = Path(bench.settings.project) / "toy_jobs.py"
    jobs.write_text(jobs.read_text().replace('F.col("number") % 7', 'F.pmod(F.col("number"), F.lit(7))'))
    assert bench.run().counts == (9, 4)
    assert bench.run().counts == (13, 0)
    assert bench.published() == bench.expected()


def test_restore_from_a_stage_takes_the_earlier_ones_as_they_are(finished):
    restored = finished.run("--restore-from-stage", "by_colour", "--run-id", "restore")
    assert restored.counts == (8, 5)
    assert finished.run("--restore-from-stage", "by_colour", "--run-id", "restore").counts == (13, 0)
    assert ended(finished.command("resume", "restore", "--json")).counts == (13, 0)
    assert finished.run("--restore-from-stage", "by_colour").counts == (8, 5)


def test_a_restore_that_failed_half_way_is_resumed_from_what_it_had_computed(finished):
    before = finished.epochs("by_colour")
    finished.inject(Point.AFTER_RECORD, "by_colour", 1, FaultAction.FAIL)
    assert finished.run("--restore-from-stage", "by_colour", "--run-id", "half").code == 1
    anew = sum(now > then for now, then in zip(finished.epochs("by_colour"), before, strict=True))
    assert 0 < anew < 4
    assert finished.run("--run-id", "one that asks for nothing").counts == (13, 0)  # equal data under the same keys
    resumed = ended(finished.command("resume", "half", "--json"))
    assert resumed.counts == (8 + anew, 4 - anew + 1)
    assert ended(finished.command("resume", "half", "--json")).counts == (13, 0)
    assert finished.published() == finished.expected()


def test_a_restore_of_an_interval_without_records_would_compute_all_of_it(finished):
    asked = ("plan", "toy", "--interval", "2026-11-19", "--restore-from-stage", "by_colour")
    seen, document = ended(finished.command(*asked)), ended(finished.command(*asked, "--json"))
    remark = (
        "Nothing is on record of 2026-11-19, so all of it is computed, not only by_colour and what reads it. "
        "Newest intervals on record: 2026-11-20."
    )
    assert (seen.code, " ".join(seen.out.split()).count(remark)) == (0, 1)
    told = json.loads(document.out)
    assert (told["remark"], told["reuse"], {decision["action"] for decision in told["decisions"]}) == (
        remark,
        0,
        {"run"},
    )
    with Ledger.open(finished.settings.ledger_url) as ledger:
        assert ledger.partitions.intervals("toy", 5) == ("2026-11-20",)


def delete_data(bench, stage, partition):
    record = next(record for record in bench.records(stage) if record.partition == partition)
    for file in record.files:
        Path(record.table, file.path).unlink()


def frozen_at(bench, point, stage, wave):
    """The run, stopped at that point."""
    bench.inject(point, stage, wave, FaultAction.FREEZE)
    process = bench.command("run", "toy", "--interval", INTERVAL, "--json")
    process.await_frozen()
    return process


@pytest.mark.parametrize(
    ("point", "wave", "attempts"),
    [(Point.AFTER_LEASE, 0, 1), (Point.AFTER_MEASURE, 1, 2)],
    ids=["before the region begins", "in the middle of it"],
)
def test_lost_data_is_healed_partition_by_partition_in_the_region_that_misses_it(bench, point, wave, attempts):
    process = frozen_at(bench, point, "by_colour", wave)
    before = {stage: bench.records(stage) for stage in ("numbers", "by_wave")}
    delete_data(bench, "by_wave", 2)
    delete_data(bench, "numbers", 2)
    process.send_signal(signal.SIGCONT)
    resumed = ended(process)
    assert resumed.code == 0, resumed.err
    assert "healing numbers[2], which by_colour reads" in resumed.err
    assert "healing by_wave[2], which by_colour reads" in resumed.err
    for stage, records in before.items():
        assert [old == new for old, new in zip(records, bench.records(stage), strict=True)] == [True, True, False, True]
    assert [record.fingerprint for record in bench.records("numbers")] == [
        record.fingerprint for record in before["numbers"]
    ]
    assert bench.published() == bench.expected()
    with Ledger.open(bench.settings.ledger_url) as ledger:
        found = ledger.attempts.of_run(bench.records("by_colour")[0].run_id)
    states = [attempt.state for attempt in found if attempt.region == "by_colour"]
    assert states == [AttemptState.FAILED] * (attempts - 1) + [AttemptState.FINISHED]


def edit_jobs(bench, old, new):
    jobs = Path(bench.settings.project) / "toy_jobs.py"
    assert jobs.read_text().count(old) == 1
    jobs.write_text(jobs.read_text().replace(old, new))


def test_what_may_come_out_different_is_told_or_refused_and_if_it_does_its_readers_run_again(bench):
    spec = Path(bench.settings.pipelines) / "toy.yaml"
    spec.write_text(re.sub(r"\n    determinism: warn.*", "", spec.read_text()))
    edit_jobs(bench, "F.lit(len(ctx.partitions))", "F.lit(len(ctx.partitions)) + F.rand()")
    first = bench.run()
    told = (
        "toy_jobs.py:24: rand has no seed, so every run draws anew; derive it from the row, as in F.xxhash64(key, "
        "F.lit(ctx.seed))"
    )
    assert first.err.count(f"warning: {told} (stage by_wave)") == 1
    with Ledger.open(bench.settings.ledger_url) as ledger:
        events = ledger.events.of_run(bench.records("numbers")[0].run_id)
    assert [event.text for event in events if event.kind == "not deterministic"] == [f"{told} (stage by_wave)"]
    before = {stage: bench.records(stage) for stage in ("by_wave", "by_colour")}
    delete_data(bench, "by_wave", 0)
    delete_data(bench, "by_colour", 1)
    edit_jobs(bench, "F.lit(ctx.interval)", "F.lit(ctx.interval + ' again')")
    different = bench.run()
    assert different.code == 1
    assert (
        "Stage by_wave gives other data from the same code and inputs:\n  by_wave[0] was healed and came out "
        "different" in different.err
    )
    assert {stage: bench.records(stage) for stage in before} == before
    bench.declare("determinism: warn")
    planned = json.loads(ended(bench.command("plan", "toy", "--interval", INTERVAL, "--json")).out)["summary"]
    hinging = "runs again only if by_wave[0], which is healed, comes out different"
    assert [line["partitions"] for line in planned if hinging in line["reason"]] == [[0, 2, 3]]
    healed = bench.run()
    kept = {
        stage: [old == new for old, new in zip(before[stage], bench.records(stage), strict=True)] for stage in before
    }
    assert kept == {"by_wave": [False, True, True, True], "by_colour": [False] * 4}
    assert "by_wave[0] was healed and came out different" in healed.err
    assert "not deterministic" in (bench.records("by_wave")[0].reason or "")
    assert bench.published() == bench.expected()
    spec.write_text(spec.read_text().replace("determinism: warn", "determinism: error"))
    edit_jobs(bench, "F.rand()", "F.randn()")
    refused = bench.run()
    assert refused.code == 1
    assert (
        "Stage by_wave may give other data from the same input, in 1 place(s):\n  toy_jobs.py:24: randn has no seed"
        in refused.err
    )


def forge_data(bench, stage, partition):
    (record,) = (record for record in bench.records(stage) if record.partition == partition)
    forge(record)


def test_data_that_no_longer_matches_its_fingerprint_is_healed_before_it_is_read(bench):
    bench.inject(Point.BEFORE_WRITE, "by_colour", 1, FaultAction.KILL)
    assert killed(bench.run())
    spec = Path(bench.settings.pipelines) / "toy.yaml"
    spec.write_text(spec.read_text().replace("pipeline: toy\n", "pipeline: toy\nverify: always\n"))
    before = bench.records("numbers")
    forge_data(bench, "numbers", 1)
    resumed = bench.run()
    assert "numbers[1]: its content no longer matches its fingerprint" in resumed.err
    assert [old == new for old, new in zip(before, bench.records("numbers"), strict=True)] == [True, False, True, True]
    assert [record.fingerprint for record in bench.records("numbers")] == [record.fingerprint for record in before]
    assert bench.published() == bench.expected()
