"""Suites as people who use Great Expectations have them, as gates of runs."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.run.small_project import FILES, INTERVAL, NUMBERS, ROWS, SmallProject

from stagehold.errors import GateBlocked, GateErrored
from stagehold.gates.verdict_pages import render_page, site_of, write_docs
from stagehold.model.standing import PartitionState

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

JOBS = """\
from stagehold import stage


@stage
def numbers(ctx, source):
    return source


@stage
def people(ctx, source):
    from pyspark.sql import functions as F

    return source.withColumn("email", F.concat(F.lit("anna-"), "number")).withColumn("age", F.col("number") - 60)
"""
OWN = """\
from great_expectations import ExpectationSuite
from great_expectations.execution_engine import SparkDFExecutionEngine
from great_expectations.expectations import ExpectTableRowCountToEqual
from great_expectations.expectations.expectation import ColumnMapExpectation
from great_expectations.expectations.metrics import ColumnMapMetricProvider
from great_expectations.expectations.metrics.map_metric_provider import column_condition_partial


class ColumnValuesNotSevens(ColumnMapMetricProvider):
    condition_metric_name = "column_values.not_sevens"

    @column_condition_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column, **kwargs):
        return column % 7 != 0


class ExpectColumnValuesToNotBeSevens(ColumnMapExpectation):
    map_metric = "column_values.not_sevens"
    success_keys = ("mostly",)


def counted():
    return ExpectationSuite(name="counted", expectations=[ExpectTableRowCountToEqual(value={"$PARAMETER": "rows"})])
"""


@pytest.fixture
def project(tmp_path, spark_remote):
    made = SmallProject.make(tmp_path, spark_remote, JOBS)
    (tmp_path / f"{tmp_path.name}_checks.py").write_text(OWN)
    yield made
    sys.modules.pop(f"{tmp_path.name}_checks", None)


def run(project: SmallProject, gate: str, interval: str = INTERVAL, **facts: Any) -> list[PartitionState]:
    stages = {"numbers": {"source": NUMBERS, "gate": gate}}
    records = project.run(project.pipeline("gated", stages, **facts), f"r {interval}", interval)
    return [record.state for record in records["numbers"]]


def verdicts(project: SmallProject) -> dict[int, tuple[bool, str]]:
    with project.ledger() as ledger:
        cell = ledger.partitions.newest_of("gated", "i")["numbers"][0].cell
        return {gate.partition: (gate.passed, gate.observed) for gate in ledger.gates.newest(cell)}


def test_a_suite_of_a_project_folder_is_a_gate_as_great_expectations_wrote_it(project, tmp_path):
    import great_expectations as gx
    import great_expectations.expectations as gxe

    context = gx.get_context(mode="file", project_root_dir=tmp_path)
    suite = context.suites.add(gx.ExpectationSuite(name="small"))
    suite.add_expectation(gxe.ExpectColumnValuesToBeBetween(column="number", max_value=60, mostly=0.4))
    with pytest.raises(GateBlocked) as raised:
        run(project, "gx/small")
    assert set(raised.value.reasons) == {3}
    assert verdicts(project) == {
        0: (True, f"0 of {ROWS} unexpected"),
        1: (True, f"0 of {ROWS} unexpected"),
        2: (True, f"14 of {ROWS} unexpected"),
        3: (False, f"{ROWS} of {ROWS} unexpected, such as 75, 76, 77, 78, 79"),
    }


def test_an_expectation_of_ones_own_judges_all_partitions_at_once(project, tmp_path):
    suite = f"suite: own\nmodules: [{tmp_path.name}_checks]\nexpectations:\n"
    of_mine = "  - {type: expect_column_values_to_not_be_sevens, column: number, mostly: 0.85}\n"
    (tmp_path / "own.yaml").write_text(suite + of_mine)
    with pytest.raises(GateBlocked) as raised:
        run(project, "own")
    sevens = [sum(number % 7 == 0 for number in range(25 * part, 25 * part + 25)) for part in range(FILES)]
    assert set(raised.value.reasons) == {part for part, count in enumerate(sevens) if 1 - count / ROWS < 0.85}
    assert [seen.split(" ")[0] for _, seen in verdicts(project).values()] == [str(count) for count in sevens]


def test_a_suite_of_python_takes_parameters_of_the_run(project, tmp_path):
    gate = f"{tmp_path.name}_checks:counted"
    assert run(project, gate, params={"rows": ROWS}) == [PartitionState.CONSUMABLE] * FILES
    with pytest.raises(GateErrored, match=r"No value found for \$PARAMETER rows"):
        run(project, gate, params={"others": ROWS}, interval="another")


def test_a_warning_blocks_nothing_and_is_told_once_for_a_wave(project, tmp_path, capsys):
    soft = "{type: expect_column_values_to_be_between, column: number, max_value: 60, severity: warning}"
    (tmp_path / "soft.yaml").write_text(f"suite: soft\nexpectations:\n  - {soft}\n")
    assert run(project, "soft") == [PartitionState.CONSUMABLE] * FILES
    told = capsys.readouterr().out
    assert "numbers: gate soft lets 2 of 2 partitions through" in told
    seen = "got 14 of 25 unexpected, such as 61, 62, 63, 64, 65"
    assert (
        told.count(f"numbers[2-3] does not meet expect_column_values_to_be_between(number, max_value=60): {seen}") == 1
    )


PRIVATE = """\
suite: private
samples: {keys: [number], mask: [email], rows: 2}
expectations:
  - {type: expect_column_values_to_match_regex, column: email, regex: "^bert"}
  - {type: expect_column_most_common_value_to_be_in_set, column: email, value_set: [bert], severity: warning}
  - {type: expect_column_values_to_be_between, column: age, min_value: 0}
  - {type: unexpected_rows_expectation, unexpected_rows_query: "SELECT * FROM {batch} WHERE number < 5"}
"""


def test_refused_rows_are_told_by_their_keys_and_masked_values_are_nowhere(project, tmp_path, capsys):
    """But in the data itself: its files, and what its table's log says of them."""
    (tmp_path / "private.yaml").write_text(PRIVATE)
    pipeline = project.pipeline("gated", {"people": {"source": NUMBERS, "gate": "private"}})
    with pytest.raises(GateBlocked) as raised:
        project.run(pipeline, "r", INTERVAL)
    with project.ledger() as ledger:
        records = ledger.partitions.newest_of("gated", INTERVAL)["people"]
        results = ledger.gates.newest(records[0].cell)
    of_age = {one.partition: one.observed for one in results if "(age" in one.expectation}
    assert of_age[0] == f"{ROWS} of {ROWS} unexpected, such as -60 (number=0), -59 (number=1)"
    assert of_age[3] == f"0 of {ROWS} unexpected"
    of_email = {one.observed for one in results if one.expectation.startswith("expect_column_values_to_match")}
    assert of_email == {f"{ROWS} of {ROWS} unexpected"}
    assert {one.observed for one in results if "most_common" in one.expectation} == {"not shown: email is masked"}
    site = site_of("gated", INTERVAL, {"people": results}, {})
    write_docs(site, project.settings.lake_uri)
    pages = [render_page(page, site) for page in site.pages]
    assert any("Rows that do not meet" in page and "<td>-60<td>0" in page for page in pages)
    told = capsys.readouterr()
    assert "anna-" not in told.out + told.err + str(raised.value) + "".join(pages)
    data = (".parquet", ".crc")
    files = [one for one in tmp_path.rglob("*") if one.is_file() and "_delta_log" not in one.parts]
    others = [one for one in files if one.suffix not in data and one.name != f"{tmp_path.name}.py"]
    assert any(one.suffix == ".db" for one in others)
    assert [one for one in others if b"anna-" in one.read_bytes() and one.suffix != ".pyc"] == []


ALONE = """\
import sys
import time

from stagehold import stage


@stage
def numbers(ctx, source):
    before = set(sys.modules)
    time.sleep(1)
    assert not set(sys.modules) - before, "imported by another thread"
    return source
"""
ALONE_PIPELINE = """\
pipeline: alone
stages:
  numbers:
    job: imported_alone:numbers
    source: {kind: parquet, path: "${lake}/raw/*.parquet", splits: 4}
    gate: own
"""


def test_nothing_is_imported_by_another_thread_while_a_function_is_called(tmp_path, spark_remote):
    """Of two threads that import the same packages, each may be given modules that the other has only begun."""
    folder = tmp_path / "imported_alone"
    folder.mkdir()
    made = SmallProject.make(folder, spark_remote, ALONE)
    made.write_suite("type: expect_column_values_to_not_be_null, column: number, severity: critical")
    Path(folder, "alone.yaml").write_text(ALONE_PIPELINE)
    settings = replace(made.settings, pipelines=str(folder))
    ended = subprocess.run(
        [sys.executable, "-m", "stagehold", "run", "alone", "--interval", "2026-11-20"],
        env={**os.environ, **settings.environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    assert "gate own lets" in ended.stderr + ended.stdout
