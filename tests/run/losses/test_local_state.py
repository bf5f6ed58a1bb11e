"""`STAGEHOLD_LOCAL_STATE`: what the lake loses is put back from this worker's copies, by the command."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.run.pipelines.test_lists_dealt_anew import DAYS, JOBS, PIPELINE, arrive, heard
from tests.run.workbench import Ended, Workbench, ended, killed

from stagehold.model.records import PartitionRecord
from stagehold.run.faults import FaultAction, Point

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def bench(tmp_path, spark_remote) -> Workbench:
    """Of two days, the first has run."""
    bench = Workbench.of(tmp_path, spark_remote)
    for path in ("pipelines", "suites"):
        (tmp_path / "project" / path).mkdir(parents=True)
    (tmp_path / "project" / "news_jobs.py").write_text(JOBS)
    declare(bench)
    bench = Workbench(replace(bench.settings, local_state=str(tmp_path / "copies")))
    arrive(bench.settings, 1)
    assert run(bench, DAYS[0], "--run-id", "first").counts == (0, 6)
    return bench


def declare(bench: Workbench, line: str = "") -> None:
    text = f"{PIPELINE.format(partitions=4)}{line}\n"
    (Path(bench.settings.pipelines) / "news.yaml").write_text(text)


def run(bench: Workbench, day: str, *words: str) -> Ended:
    return ended(bench.command("run", "news", "--interval", day, "--json", *words))


def files(record: PartitionRecord) -> Iterator[Path]:
    return (Path(record.table, file.path) for file in record.all_files)


def lose(records: tuple[PartitionRecord, ...]) -> None:
    for record in records:
        for file in files(record):
            file.unlink()


def copies(bench: Workbench) -> list[Path]:
    return list(Path(bench.settings.local_state).glob("*/*"))


def test_what_the_lake_lost_is_put_back_and_not_computed(bench):
    before = heard(bench.settings, DAYS[0], 4)
    lose(before)
    again = run(bench, DAYS[0])
    assert again.counts == (6, 0), again.err
    assert "heard[0-3]: the lake had lost it or had it otherwise; put back from this worker's copy" in again.err
    assert all(file.exists() for record in before for file in files(record))


def test_state_that_the_next_interval_needs_is_put_back(bench):
    lose(heard(bench.settings, DAYS[0], 4))
    arrive(bench.settings, 2)
    following = run(bench, DAYS[1])
    assert following.counts == (0, 6), following.err


def test_a_copy_that_is_not_whole_is_passed_over_for_that_stage_alone(bench):
    lose(heard(bench.settings, DAYS[0], 4))
    for copy in copies(bench):
        copy.write_bytes(b"torn")
    again = run(bench, DAYS[0])
    assert again.counts == (2, 4), again.err
    assert "the copy of it is not what it was, so this worker's copy is passed over" in again.err


def test_content_that_is_found_to_be_other_is_put_back(bench):
    record = heard(bench.settings, DAYS[0], 4)[0]
    path = Path(record.table, record.files[0].path)
    content = bytearray(path.read_bytes())
    content[4:40] = bytes(36)
    path.write_bytes(content)
    declare(bench, "verify: always")
    again = run(bench, DAYS[0])
    assert again.counts == (6, 0), again.err
    assert "heard[0]: the lake had lost it or had it otherwise; put back" in again.err


def test_the_latest_checkpoint_is_whole_again_and_no_earlier_one_is_taken(bench):
    lose(heard(bench.settings, DAYS[0], 4))
    restored = run(bench, DAYS[0], "--run-id", "second", "--restore", "latest")
    assert restored.counts == (6, 0), restored.err
    assert "passed over" not in restored.err


def test_what_an_attempt_wrote_before_it_was_killed_is_there_for_the_next(bench):
    arrive(bench.settings, 2)
    bench.inject(Point.BEFORE_WRITE, "heard", 2, FaultAction.KILL)
    assert killed(run(bench, DAYS[1], "--run-id", "second"))
    first = heard(bench.settings, DAYS[1], 4)
    assert first
    lose(first)
    again = run(bench, DAYS[1], "--run-id", "second")
    assert again.code == 0, again.err
    assert len(first) + int(str(again.counts[1])) == 4


def test_without_the_variable_nothing_is_kept(bench):
    plain = Workbench(replace(bench.settings, local_state=""))
    known = len(copies(bench))
    arrive(plain.settings, 2)
    assert run(plain, DAYS[1]).counts == (0, 6)
    assert len(copies(bench)) == known
    lose(heard(plain.settings, DAYS[1], 4))
    assert run(plain, DAYS[1]).counts == (2, 4)
