"""Lakes and ledgers that nobody can write: said with the place and what to do, and gone on from once that is mended."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.disks import fill, needs_disks, read_only, small_disk
from tests.run.workbench import INTERVAL, Ended, Workbench, ended

from stagehold.ledger.ledger import Ledger
from stagehold.model.records import FailureClass

pytestmark = pytest.mark.spark

NUMBERS = f"stages/toy/numbers/{INTERVAL}/_data"


@pytest.fixture
def bench(tmp_path: Path, spark_remote: str) -> Workbench:
    made = Workbench.make(tmp_path, spark_remote)
    return Workbench(replace(made.settings, attempt_retries=0, lake=made.settings.lake_uri))


def told(ended: Ended, place: Path | str, *texts: str) -> None:
    assert ended.code == 1, ended.err
    assert "Traceback" not in ended.err
    last = ended.err.strip().splitlines()[-2:]
    assert any(line.startswith((f"{place}", f"The ledger sqlite:///{place}")) for line in last), ended.err
    for text in texts:
        assert text in ended.err, ended.err


def class_of_failure(bench: Workbench) -> tuple[FailureClass | None, str | None]:
    with Ledger.open(bench.settings.ledger_url) as ledger:
        (run,) = ledger.runs.recent(1)
        failed = ledger.attempts.of_run(run.run_id)[-1]
    return failed.failure_class, failed.failure_rule


def resumes(bench: Workbench) -> None:
    """With no row lost, and none twice."""
    resumed = ended(bench.command("resume", "--json"))
    assert resumed.code == 0, resumed.err
    assert bench.published() == bench.expected()


@needs_disks
@pytest.mark.parametrize(
    ("spoil", "rule", "remedy"),
    [(fill, "disk_full", "Make room on its disk"), (read_only, "storage_denied", "mount it for writing")],
)
def test_spark_cannot_write_into_the_lake(bench, spoil, rule, remedy):
    with small_disk(Path(bench.settings.lake_uri) / NUMBERS) as disk:
        spoil(disk)
        told(bench.run(), disk, remedy, "`stagehold resume`", f"environment failure (rule {rule})")
        assert class_of_failure(bench) == (FailureClass.ENVIRONMENT, rule)
    resumes(bench)


@needs_disks
@pytest.mark.parametrize(
    ("spoil", "rule", "remedy"),
    [(fill, "disk_full", "Make room on its disk"), (read_only, "storage_denied", "mount it for writing")],
)
def test_the_whole_lake_cannot_be_written(bench, spoil, rule, remedy):
    bench.declare('schedule: "0 2 * * *"')
    lake = Path(bench.settings.lake_uri)
    with small_disk(lake) as disk:
        for number in range(4):
            bench.write_source(number)
        spoil(disk)
        told(bench.run(), lake, remedy, f"environment failure (rule {rule})")
        assert class_of_failure(bench) == (FailureClass.ENVIRONMENT, rule)
        told(ended(bench.command("resume")), lake, remedy)
        for command in (("plan", "toy", "--interval", INTERVAL), ("status",)):
            shown = ended(bench.command(*command))
            assert (shown.code, "Traceback" in shown.err) == (0, False), shown.err
        days = ("--from", INTERVAL, "--to", INTERVAL)
        filled = ended(bench.command("backfill", "toy", *days, "--local", "--yes"))
        assert filled.code != 0
        assert "Traceback" not in filled.err
        assert f"{lake}" in filled.out + filled.err
        subprocess.run(["mount", "-o", "remount,rw,size=32m", disk], check=True)
        resumes(bench)


@needs_disks
def test_a_disk_that_is_full_when_a_wave_is_published_names_the_table(bench):
    table = Path(bench.settings.lake_uri) / "stages/toy/numbers" / INTERVAL
    with small_disk(table / "_delta_log") as disk:
        fill(disk)
        told(bench.run(), table, "Make room on its disk")
    resumes(bench)


def test_a_file_where_a_folder_should_be_is_named(bench):
    in_the_way = Path(bench.settings.lake_uri) / "stages"
    in_the_way.write_text("")
    failed = bench.run()
    assert (failed.code, "Traceback" in failed.err) == (1, False), failed.err
    assert "environment failure" in failed.err
    assert failed.err.splitlines()[-2].startswith(f"{in_the_way}/")
    in_the_way.unlink()
    resumes(bench)


@needs_disks
def test_checkpoints_that_cannot_be_written_stop_no_run_and_say_so_without_a_traceback(bench):
    with small_disk(Path(bench.settings.lake_uri) / "checkpoints") as disk:
        read_only(disk)
        run = bench.run("--run-id", "r1")
        assert (run.code, "Traceback" in run.err) == (0, False), run.err
        assert f"no checkpoint was left of run r1: {disk}" in run.err
    assert bench.published() == bench.expected()
    assert "checkpoint 1 of run r2 is complete" in bench.run("--run-id", "r2").err


@needs_disks
@pytest.mark.parametrize(("spoil", "remedy"), [(fill, "Make room on its disk"), (read_only, "mount it for writing")])
def test_the_ledger_cannot_be_written(bench, spoil, remedy):
    bench.declare('schedule: "0 2 * * *"\nrestart: {strategy: none}')
    home = bench.settings.home_path
    elsewhere = home.parent / "lake"
    (home / "lake").rename(elsewhere)
    bench = Workbench(replace(bench.settings, lake=str(elsewhere)))
    with small_disk(home) as disk:
        spoil(disk)
        days = ("--from", INTERVAL, "--to", INTERVAL)
        commands = (
            ("run", "toy", "--interval", INTERVAL),
            ("plan", "toy", "--interval", INTERVAL),
            ("status",),
            ("resume",),
            ("backfill", "toy", *days, "--local", "--yes"),
        )
        for command in commands:
            told(ended(bench.command(*command)), home / "ledger.db", remedy)
        subprocess.run(["mount", "-o", "remount,rw,size=32m", disk], check=True)
        assert bench.run().counts == (0, 13)
        assert bench.published() == bench.expected()
        spoil(disk)
        told(bench.run(), home / "ledger.db", remedy)
        subprocess.run(["mount", "-o", "remount,rw,size=64m", disk], check=True)
        assert bench.run().counts == (13, 0)
