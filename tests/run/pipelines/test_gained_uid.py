"""A stage that got a uid while its records are under its name: told before anything runs, and no row is taken twice."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.run.workbench import INTERVAL, TOY, Ended, Workbench, ended

pytestmark = pytest.mark.spark


def say(bench: Workbench, *words: str) -> Ended:
    return ended(bench.command(*words))


def with_uid(bench: Workbench, pipeline: str, stage: str, uid: str, more: str = "") -> None:
    file, named = Path(bench.settings.pipelines) / f"{pipeline}.yaml", f"  {stage}:\n"
    file.write_text((TOY / f"{pipeline}.yaml").read_text().replace(named, f"{named}    uid: {uid}\n{more}", 1))


@pytest.fixture
def bench(tmp_path, spark_remote):
    bench = Workbench.make(tmp_path, spark_remote)
    shutil.copy(TOY / "events.yaml", bench.settings.pipelines)
    return bench


def published(bench: Workbench) -> list[int]:
    return sorted(DeltaTable(f"{bench.settings.lake_uri}/marts/events").to_pyarrow_table()["id"].to_pylist())


def test_an_incremental_source_that_got_a_uid_takes_no_file_twice(bench):
    bench.arrive("events", 1, 2)
    assert say(bench, "run", "events", "--interval", "monday").code == 0
    bench.arrive("events", 3)
    with_uid(bench, "events", "events", "incoming")
    for words in (("plan",), ("run",), ("run", "--dry-run")):
        refused = say(bench, words[0], "events", "--interval", "tuesday", *words[1:])
        assert refused.code == 1, refused.out + refused.err
        assert "Stage events is recorded as incoming now" in refused.err
        assert "under events, of monday" in refused.err
        assert "publish those rows twice" in refused.err
        assert "`was: events`" in refused.err
    assert published(bench) == [1, 2]
    with_uid(bench, "events", "events", "incoming", "    was: events\n")
    assert say(bench, "run", "events", "--interval", "tuesday").code == 0
    assert published(bench) == [1, 2, 3]


def test_a_stage_that_got_a_uid_is_not_computed_again_without_a_word(finished):
    with_uid(finished, "toy", "by_colour", "colours")
    refused = say(finished, "run", "toy", "--interval", INTERVAL)
    assert refused.code == 1, refused.err
    assert "Stage by_colour is recorded as colours now" in refused.err
    assert "it would be computed again" in refused.err
    other = say(finished, "plan", "toy", "--interval", "another day")
    assert other.code == 0, other.err
    with_uid(finished, "toy", "by_colour", "colours", "    was: by_colour\n")
    assert finished.run("--run-id", "again").counts == (13, 0)
