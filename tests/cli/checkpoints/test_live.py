"""`stagehold inspect --live`: what is there of a run that goes on, at one moment, and how much of each stage."""

from __future__ import annotations

import json

import pytest
from tests.run.workbench import FILES, ROWS, Workbench, ended

from stagehold.run.faults import FaultAction, Point

COUNT = 'SELECT count(*) AS rows, count(DISTINCT number) AS numbers FROM "numbers"'


@pytest.fixture
def bench(tmp_path, spark_remote) -> Workbench:
    return Workbench.make(tmp_path, spark_remote)


def inspect(bench: Workbench, *words: str):
    return ended(bench.command("inspect", *words, settings=bench.without_spark()))


@pytest.mark.spark
def test_a_run_is_asked_while_it_goes_on_and_says_how_much_that_is_of_each_stage(bench):
    bench.inject(Point.BEFORE_PUBLISH, "by_wave", 2, FaultAction.FREEZE)
    running = bench.command("run", "toy", "--interval", "2026-11-20", "--run-id", "r", "--json")
    try:
        running.await_frozen()
        asked = inspect(bench, "r", "--live", "--sql", COUNT, "--json")
        assert asked.code == 0, asked.err
        assert "run r is running" in asked.err
        found = json.loads(asked.out)
        assert found["rows"] == [{"rows": FILES * ROWS, "numbers": FILES * ROWS}]
        told = {stage: (part["partitions"], part["of"]) for stage, part in found["consumable"].items()}
        assert told["numbers"] == (FILES, FILES)
        done, whole = told["by_wave"]
        assert 0 < done < whole == FILES, "a wave of it is there, and no half wave"
        assert told["summary"] == (0, 1)
        some = json.loads(inspect(bench, "r", "--live", "--sql", 'SELECT count(*) AS n FROM "by_wave"', "--json").out)
        assert some["rows"] == [{"n": found["consumable"]["by_wave"]["rows"]}]
        shown = inspect(bench, "r", "--live", "--sql", COUNT).out
        assert "Consumable at" in shown
        tree = inspect(bench, "r", "--live").out
        assert "what is there of r" in tree
        assert f"partitions: {done} consumable, {whole - done} missing" in tree
        assert "by_wave[0] consumable" in inspect(bench, "--live", "--stage", "by_wave", "--partition", "0").out
    finally:
        running.kill()
        running.wait(20)
    assert not list(bench.settings.home_path.rglob("_checkpoints/**/manifest*")), "nothing was written for it"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("nobody", "--live"), "nobody"),
        (("--live",), "run"),
        (("r", "--live", "--lake", "/elsewhere"), "no other lake than that of the settings, with --live"),
    ],
)
def test_a_run_that_cannot_be_asked_is_told(tmp_path, words, told):
    bench = Workbench.make(tmp_path, "sc://127.0.0.1:9/;token=none")
    refused = inspect(bench, *words)
    assert refused.code == 1
    assert told in refused.err
    assert "Traceback" not in refused.err
