"""Gates that compare a night with the nights before it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.run.small_project import SmallProject

from stagehold.errors import GateBlocked, InvalidSpec
from stagehold.model.standing import PartitionState
from stagehold.run.planning.planning import IntervalView, RunRequest

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

JOBS = """\
from stagehold import stage


@stage
def numbers(ctx, source):
    return source.filter(source.night == ctx.interval)
"""
FIRST, SECOND, THIRD, FOURTH = (f"2026-03-0{day}" for day in (2, 3, 4, 5))
BEFORE = "2026-03-01"
WITHIN = "min_value: {$PARAMETER: previous.rows * 0.8}, max_value: {$PARAMETER: previous.rows * 1.2}"
ROWS = f"type: expect_column_values_to_be_between, column: partition(rows), {WITHIN}"
ROWS_TEXT = (
    "expect_column_values_to_be_between(partition(rows), min_value=previous.rows * 0.8, max_value=previous.rows * 1.2)"
)
PASS, BLOCKED = PartitionState.CONSUMABLE, PartitionState.BLOCKED


@dataclass
class Nights:
    """A stage of which each partition reads one file; how many rows that has of a night, a test says."""

    project: SmallProject
    runs: int = 0

    def suite(self, *expectations: str) -> None:
        lines = "".join(f"  - {{{expectation}}}\n" for expectation in expectations)
        Path(self.project.settings.suites, "nightly.yaml").write_text(f"suite: nightly\nexpectations:\n{lines}")

    def source(self, *files: Mapping[str, int]) -> None:
        """One for each partition: rows by night."""
        folder = Path(self.project.settings.lake_uri) / "raw"
        for old in folder.glob("*"):
            old.unlink()
        for number, rows in enumerate(files):
            nights = [night for night, count in rows.items() for _ in range(count)]
            pq.write_table(pa.table({"night": pa.array(nights, pa.string())}), folder / f"part-{number}.parquet")
        self.files = len(files)

    @property
    def pipeline(self):
        source = {"kind": "parquet", "path": "${lake}/raw/*.parquet", "splits": self.files}
        return self.project.pipeline("nightly", {"numbers": {"source": source, "gate": "nightly"}}, schedule="@daily")

    def run(self, night: str) -> list[PartitionState]:
        self.runs += 1
        self.project.run(self.pipeline, f"run {self.runs}", night)
        return self.states(night)

    def states(self, night: str) -> list[PartitionState]:
        return [record.state for record in self.project.records(self.pipeline, night)["numbers"]]

    def said(self, night: str) -> list[tuple[int, bool, str]]:
        with self.project.ledger() as ledger:
            cell = self.project.records(self.pipeline, night)["numbers"][0].cell
            return [(gate.partition, gate.passed, gate.observed) for gate in ledger.gates.newest(cell)]

    def actions(self, night: str) -> set[str]:
        with self.project.ledger() as ledger:
            request = RunRequest(self.pipeline, "preview", night, {})
            return {
                decision.action.value
                for decision in IntervalView.of_run(request, ledger, self.project.settings).plan.of("numbers")
            }


@pytest.fixture
def nights(tmp_path, spark_remote):
    yield Nights(SmallProject.make(tmp_path, spark_remote, JOBS))
    sys.modules.pop(tmp_path.name, None)


def test_a_night_is_compared_with_the_newest_one_before_it_that_passed(nights, capsys):
    nights.suite(ROWS)
    nights.source(
        {BEFORE: 4, FIRST: 20, SECOND: 22, THIRD: 11, FOURTH: 21},
        {BEFORE: 9, FIRST: 10, SECOND: 9, THIRD: 9, FOURTH: 9},
    )
    assert nights.run(FIRST) == [PASS, PASS]
    assert nights.said(FIRST) == [(0, True, "no earlier interval"), (1, True, "no earlier interval")]
    assert capsys.readouterr().out.count(f"numbers[0-1] is not judged by {ROWS_TEXT}: no earlier interval\n") == 1
    assert nights.run(SECOND) == [PASS, PASS]
    assert nights.said(SECOND) == [
        (0, True, "22, where previous.rows is 20"),
        (1, True, "9, where previous.rows is 10"),
    ]
    assert "is not judged" not in capsys.readouterr().out

    with pytest.raises(GateBlocked) as refused:
        nights.run(THIRD)
    assert refused.value.reasons == {0: f"{ROWS_TEXT}: got 11, where previous.rows is 22"}
    assert nights.states(THIRD) == [BLOCKED, PASS]
    assert nights.run(FOURTH) == [PASS, PASS]
    assert nights.said(FOURTH)[0] == (0, True, "21, where previous.rows is 22"), "what was refused is no measure"

    assert nights.run(BEFORE) == [PASS, PASS], "an interval that is computed late sees none that comes after it"
    assert nights.said(BEFORE) == [(0, True, "no earlier interval"), (1, True, "no earlier interval")]
    assert {night: nights.actions(night) for night in (BEFORE, FIRST, SECOND, FOURTH)} == {
        night: {"reuse"} for night in (BEFORE, FIRST, SECOND, FOURTH)
    }, "an earlier interval that is there now has nobody judge again"


def test_a_changed_suite_judges_what_is_there_by_the_figures_of_now(nights):
    nights.suite("type: expect_table_row_count_to_be_between, min_value: 0")
    nights.source({FIRST: 20, SECOND: 10})
    assert (nights.run(FIRST), nights.run(SECOND)) == ([PASS], [PASS])
    nights.suite("type: expect_table_row_count_to_be_between, min_value: {$PARAMETER: previous.min_rows * 0.8}")
    assert nights.actions(SECOND) == {"judge"}
    with pytest.raises(
        GateBlocked, match=r"min_value=previous.min_rows \* 0.8\): got 10, where previous.min_rows is 20"
    ):
        nights.run(SECOND)
    nights.suite("type: expect_table_row_count_to_be_between, min_value: {$PARAMETER: previous.mean_rows / 2}")
    assert nights.run(SECOND) == [PASS]
    assert nights.said(SECOND) == [(0, True, "10, where previous.mean_rows is 20")]


def test_a_night_that_is_cut_otherwise_is_not_judged(nights, capsys):
    nights.suite(ROWS)
    nights.source({FIRST: 20, SECOND: 5, THIRD: 5})
    nights.run(FIRST)
    nights.source({SECOND: 5, THIRD: 1}, {SECOND: 5, THIRD: 5})
    assert nights.run(SECOND) == [PASS, PASS]
    why = "no earlier interval with as many partitions"
    assert nights.said(SECOND) == [(0, True, why), (1, True, why)]
    assert f"numbers[0-1] is not judged by {ROWS_TEXT}: {why}\n" in capsys.readouterr().out
    with pytest.raises(GateBlocked, match=r"got 1, where previous.rows is 5"):
        nights.run(THIRD)


def test_a_figure_that_does_not_exist_is_found_before_anything_runs(nights):
    nights.suite("type: expect_table_row_count_to_equal, value: {$PARAMETER: previous.row}")
    nights.source({FIRST: 20})
    with pytest.raises(InvalidSpec, match=r"nightly\.yaml:3: .*'previous.row'; allowed: previous.rows, "):
        nights.run(FIRST)
    with nights.project.ledger() as ledger:
        assert ledger.partitions.intervals("nightly") == ()
