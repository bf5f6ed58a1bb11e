"""What a function does with Spark on the way is its own: a partition holds what follows from its own rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.run.pipelines.everyday_functions import JOBS, RIGHT
from tests.run.small_project import FILES, NUMBERS, ROWS, SmallProject, numbers, values_of

from stagehold.spark.connect import kept_by_spark

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def project(tmp_path_factory, spark_remote):
    return SmallProject.make(tmp_path_factory.mktemp("habits"), spark_remote, JOBS)


ANY_WAVE = ("1ms", "1h")  # one partition, or all of them


@pytest.mark.parametrize("wave", ANY_WAVE)
@pytest.mark.parametrize("function", RIGHT)
def test_a_source_stage_holds_what_follows_from_its_own_rows(project, function, wave):
    found = project.made(f"source_{function}_{wave}", {function: {"source": NUMBERS}}, wave=wave)
    assert found == {number: sorted(RIGHT[function](numbers(number))) for number in range(FILES)}


FUSED = {
    ("named_as_before", "named_alike"): lambda rows: [row + 2 for row in rows if row % 2],
    ("doubled_by_name", "plus_one_by_name"): lambda rows: [2 * row + 1 for row in rows],
    ("setting_before", "without_setting"): lambda rows: [row + 1 for row in rows],
}


@pytest.mark.parametrize("kept", ["pipelined", "pipelined_bounded", "blocking"])
@pytest.mark.parametrize(("first", "second"), FUSED)
def test_stages_that_are_computed_together_have_names_and_settings_of_their_own(project, first, second, kept):
    stages = {
        "plain": {"source": NUMBERS},
        first: {"inputs": {"plain": "forward"}, "output": {"type": kept}},
        second: {"inputs": {first: "forward"}},
    }
    found = project.made(f"fused_{second}_{kept}", stages, wave="1h")
    right = FUSED[first, second]
    assert found == {number: sorted(right(numbers(number))) for number in range(FILES)}


@pytest.mark.parametrize("function", ["named_by_key", "share_of_key"])
def test_a_keyed_stage_may_name_and_ask(project, function):
    stages = {
        "plain": {"source": NUMBERS},
        function: {"inputs": {"plain": {"exchange": "keyed", "key": "number"}}, "partitions": 3},
    }
    records = project.run(project.pipeline(function, stages, wave="1h"), function, interval=function)
    assert sorted(row for record in records[function] for row in values_of(record, "number")) == list(
        range(FILES * ROWS)
    )
    assert all(row == 1 for record in records[function] for row in values_of(record, "rows"))


def test_what_is_read_by_key_again_and_again_is_computed_once(project, monkeypatch):
    """Each of 8 calls reads all 8 partitions of a stage that is not stored, each of which is a call of its own."""
    kept = []
    monkeypatch.setattr(
        "stagehold.run.functions.stage_inputs.kept_by_spark", lambda frame: kept.append(frame) or kept_by_spark(frame)
    )
    by_number = {"exchange": "keyed", "key": "number"}
    stages = {
        "plain": {"source": NUMBERS},
        "named_by_key": {"inputs": {"plain": by_number}, "partitions": 8, "output": {"type": "pipelined"}},
        "named_by_key_again": {"inputs": {"named_by_key": by_number}, "partitions": 8},
    }
    found = project.made("again_by_key", stages, wave="1h")
    assert sorted(row for rows in found.values() for row in rows) == list(range(FILES * ROWS))
    assert len(kept) == 1


def test_a_stage_that_gathers_asks_about_all(project):
    stages = {"plain": {"source": NUMBERS}, "most_of_all": {"inputs": {"plain": "gather"}}}
    assert project.made("gathered", stages) == {0: [FILES * ROWS - 1]}


def test_what_a_function_did_is_told_with_its_line(project, capsys):
    project.made("told", {"counted": {"source": NUMBERS}})
    line = next(number for number, text in enumerate(JOBS.splitlines(), 1) if "source.count() == 0" in text)
    module = Path(project.settings.project).name
    told = "counted is called for each partition by itself, which is slower: its function, which asks Spark for"
    assert f"{told} an answer (`count` at {module}.py:{line})" in capsys.readouterr().out


TOKYO = {"spark.sql.session.timeZone": "Asia/Tokyo"}  # where it is the next day already


# Settings of the pipeline, of a stage and of its reader, and how many of the two see the other day.
@pytest.mark.parametrize(
    ("pipeline", "first", "second", "more"),
    [({}, {}, {}, 0), (TOKYO, {}, {}, 2), ({}, TOKYO, {}, 1), ({}, {}, TOKYO, 1), ({}, TOKYO, TOKYO, 2)],
)
@pytest.mark.parametrize("kept", ["pipelined", "pipelined_bounded", "blocking"])
def test_declared_settings_are_those_of_their_stage(project, pipeline, first, second, more, kept):
    stages = {
        "plain": {"source": NUMBERS},
        "asks_the_zone": {"inputs": {"plain": "forward"}, "output": {"type": kept}, "spark": first},
        "asks_the_zone_again": {"inputs": {"asks_the_zone": "forward"}, "spark": second},
    }
    name = f"declared_{kept}_{bool(pipeline)}_{bool(first)}_{bool(second)}".lower()
    found = project.made(name, stages, wave="1h", spark=pipeline)
    assert found == {number: [row + more for row in numbers(number)] for number in range(FILES)}


def test_declared_variables_are_those_of_python_functions_in_workers_too(project, monkeypatch):
    for value in (3, 4):
        monkeypatch.setenv("STAGEHOLD_TEST_MORE", str(value))
        stages = {"by_environment": {"source": NUMBERS, "reads": {"env": ["STAGEHOLD_TEST_MORE"]}}}
        found = project.made("by_environment", stages)
        assert found == {number: [row + value for row in numbers(number)] for number in range(FILES)}
