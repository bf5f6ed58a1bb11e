"""Rows that a gate does not expect are set aside, the others are published, and none is lost or there twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest
from deltalake import DeltaTable
from tests.run.pipelines.test_judged_again import ALL, FILES, INTERVAL, ROWS, Gated, between
from tests.run.small_project import SmallProject

from stagehold.chronicle.chronicle import open_ledger
from stagehold.errors import GateBlocked
from stagehold.lake.checkpoints.stored_checkpoints import manifest_file
from stagehold.lake.quarantine import quarantine_uri
from stagehold.model.records import Cell
from stagehold.model.standing import PartitionState
from stagehold.plan.resume.waiving import WaiverWish, refused_data, wished
from stagehold.run.faults import FaultAction, Point, QuarantinePoint, inject
from stagehold.run.planning.restoring import new_restore_of_snapshot
from stagehold.run.upkeep.reconcile import reconcile

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

JOBS = """\
from stagehold import stage


@stage
def numbers(ctx, source):
    return source.selectExpr(
        "number",
        "nullif(number % 10, 3) AS digit",
        "concat('n', number) AS name",
        "date_add(DATE'2026-01-01', CAST(number AS int)) AS day",
        "timestamp_seconds(number) AS at",
        "CAST(number / 7 AS decimal(10, 3)) AS share",
    )


@stage
def doubled(ctx, numbers):
    return numbers.selectExpr("2 * number AS number")
"""
NOT_NULL = "type: expect_column_values_to_not_be_null, column: digit, on_fail: quarantine"
NAMES = "type: expect_column_values_to_match_regex, column: name, regex: '^n[0-9]*[0-8]$', on_fail: quarantine"
BAD = "number % 10 IN (3, 9)"  # which of them do not meet both
EVERY = [*range(ROWS * FILES)]


class Quarantining(Gated):
    def aside(self) -> list[dict[str, Any]]:
        """What people see."""
        stage = self.pipeline().stages[0]
        table = DeltaTable(quarantine_uri(self.project.settings.lake_uri, "gated", stage))
        return sorted(table.to_pyarrow_table().to_pylist(), key=lambda row: row["number"])

    def kept_aside(self) -> dict[int, int]:
        """Rows on record."""
        return {record.partition: record.set_aside.rows for record in self.records()["numbers"] if record.set_aside}

    def require_all(self, where: str = BAD, *, doubled: bool = True) -> None:
        """Every row that was read is published or set aside, as DuckDB says, and none is both.

        :param doubled: whether the reader's own table is looked at, which nothing is put back into.
        """
        numbers = f"SELECT range AS number FROM range({len(EVERY)})"
        found = duckdb.sql(f"SELECT number FROM ({numbers}) WHERE {where} ORDER BY number").fetchall()
        bad = [number for (number,) in found]
        assert [row["number"] for row in self.aside()] == bad
        assert self.published("numbers") == sorted(set(EVERY) - {*bad})
        assert not doubled or self.published("doubled") == [2 * number for number in sorted(set(EVERY) - {*bad})]
        assert self.kept_aside() == Counter(number // ROWS for number in bad)

    def change(self, *texts: str) -> None:
        folder = Path(self.project.settings.project)
        (folder / f"{folder.name}.py").write_text(JOBS.replace(*texts) if texts else JOBS)


@pytest.fixture
def gated(tmp_path, spark_remote):
    return Quarantining(SmallProject.make(tmp_path, spark_remote, JOBS))


def test_rows_that_are_not_expected_are_set_aside_with_the_reason(gated, capsys):
    gated.suite(NOT_NULL, NAMES, between("min_value: 0"))
    assert gated.run() == (ALL, ALL)
    gated.require_all()
    row = next(row for row in gated.aside() if row["number"] == 33)
    assert row["_expectation"] == "expect_column_values_to_not_be_null(digit)"
    assert (row["_interval"], row["_partition"], row["_run"], row["name"]) == (INTERVAL, 1, "run 1", "n33")
    said = capsys.readouterr().out
    assert " does not meet expect_column_values_to_not_be_null(digit): got 3 of 25 unexpected" in said
    assert "; set aside" in said
    files = gated.computed()
    assert gated.run() == (ALL, ALL)
    assert gated.computed() == files
    assert {action for action, _ in gated.plan()} == {"reuse"}


def test_a_row_with_several_faults_says_all_of_them_and_is_there_once(gated):
    both = "type: expect_column_values_to_be_between, column: number, max_value: 90, on_fail: quarantine"
    gated.suite(NOT_NULL, both)
    assert gated.run() == (ALL, ALL)
    gated.require_all("number % 10 = 3 OR number > 90")
    reasons = {row["number"]: row["_expectation"].split("; ") for row in gated.aside()}
    assert (len(reasons[93]), len(reasons[83]), len(reasons[95])) == (2, 1, 1)


def test_partitions_of_which_too_many_rows_are_set_aside_are_blocked_and_may_be_waived(gated):
    """Partition 3 has five bad rows among its 25, the others fewer."""
    gated.suite("type: expect_column_values_to_be_between, column: number, max_value: 94, on_fail: quarantine")
    suite = Path(gated.project.settings.suites, "own.yaml")
    suite.write_text(f"max_quarantined: 10%\n{suite.read_text()}")
    with pytest.raises(GateBlocked, match=r"numbers\[3\] max_quarantined\(10%\): got 5 of 25 rows set aside"):
        gated.run()
    assert gated.states("numbers") == [*ALL[:-1], PartitionState.BLOCKED]
    assert gated.published("numbers") == [*range(75)]
    with open_ledger(gated.project.settings) as ledger:
        records = ledger.partitions.newest(Cell("gated", "numbers", INTERVAL))
        refused = refused_data(records, None)
        words = wished(WaiverWish(None, None, "ann", "known"), "numbers", refused, records[0].recorded_at)
        ledger.waivers.record(words)
    assert gated.run() == (ALL, ALL)
    gated.require_all("number > 94")


def test_what_is_published_meets_all_else_that_the_gate_asks_for(gated):
    """The greatest number is fine when the rows that are too great are gone; the count of rows is not."""
    greatest = "type: expect_column_max_to_be_between, column: number, max_value: 90"
    great = "type: expect_column_values_to_be_between, column: number, max_value: 90, on_fail: quarantine"
    gated.suite(great, greatest)
    assert gated.run() == (ALL, ALL)
    gated.require_all("number > 90")
    gated.suite(great, greatest, "type: expect_table_row_count_to_be_between, min_value: 20")
    with pytest.raises(GateBlocked, match="row_count"):
        gated.run()
    assert gated.states("numbers") == [*ALL[:-1], PartitionState.BLOCKED]


def test_other_rules_compute_the_stage_again_and_replace_what_was_set_aside(gated):
    gated.suite(NOT_NULL)
    gated.run()
    gated.require_all("number % 10 = 3")
    gated.suite(NAMES)
    assert {action for action, _ in gated.plan()} == {"run"}
    gated.run()
    gated.require_all("number % 10 = 9")
    gated.suite(NAMES, between("min_value: 0"))
    assert {action for action, _ in gated.plan()} == {"judge"}
    gated.run()
    gated.require_all("number % 10 = 9")
    gated.suite(between("min_value: 0"))
    gated.run()
    assert gated.aside() == []
    assert gated.published("numbers") == EVERY


def test_other_code_replaces_what_was_set_aside(gated):
    gated.suite(NOT_NULL)
    gated.run()
    gated.change("nullif(number % 10, 3)", "nullif(number % 20, 3)")
    gated.run()
    gated.require_all("number % 20 = 3")
    assert {row["_run"] for row in gated.aside()} == {"run 2"}


@pytest.mark.parametrize(
    "point", [QuarantinePoint.AFTER_SPLIT, Point.BEFORE_PUBLISH, Point.AFTER_PUBLISH, Point.AFTER_RECORD]
)
def test_whoever_dies_leaves_no_row_twice_and_none_is_lost(gated, point):
    gated.suite(NOT_NULL, NAMES)
    armed = inject(gated.project.settings.home_path, point, "numbers", 1, FaultAction.RAISE)
    assert gated.run() == (ALL, ALL)
    assert not armed.exists()
    gated.require_all()


def test_the_table_is_brought_up_to_date_by_the_next_attempt(gated):
    gated.suite(NOT_NULL)
    gated.run()
    before, stage = gated.aside(), gated.pipeline().stages[0]
    DeltaTable(quarantine_uri(gated.project.settings.lake_uri, "gated", stage)).delete("_partition > 1")
    assert gated.run() == (ALL, ALL)
    assert gated.aside() == before


def test_what_is_set_aside_is_verified_and_healed_with_its_partition(gated):
    gated.suite(NOT_NULL)
    gated.run()
    first = gated.records()["numbers"][0]
    Path(first.table, first.set_aside.files[0].path).unlink()
    gated.change("2 * number", "2 * number + 0")
    gated.run()
    gated.require_all("number % 10 = 3")


def test_a_ledger_that_is_lost_comes_back_with_what_was_set_aside(gated):
    gated.suite(NOT_NULL)
    gated.run()
    before = gated.records()
    for file in gated.project.settings.home_path.glob("ledger.db*"):
        file.unlink()
    reconcile([gated.pipeline()], gated.project.settings, dry_run=False)
    assert gated.records() == before
    assert gated.run() == (ALL, ALL)
    gated.require_all("number % 10 = 3")


def test_a_checkpoint_that_is_restored_brings_back_what_was_set_aside(tmp_path, spark_remote):
    project = SmallProject.make(tmp_path, spark_remote, JOBS)
    gated = Quarantining(project, type="blocking_persistent", table="marts.numbers")
    gated.suite(NOT_NULL)
    gated.run()
    with open_ledger(gated.project.settings) as ledger:
        (taken,) = (checkpoint for checkpoint in ledger.checkpoints.of_run("run 1") if checkpoint.savepoint is None)
    (manifest,) = Path(gated.project.settings.lake_uri).glob(f"checkpoints/**/{manifest_file(taken.number)}")
    gated.change("nullif(number % 10, 3)", "nullif(number % 20, 3)")
    gated.run()
    gated.require_all("number % 20 = 3")
    gated.change()
    restore = new_restore_of_snapshot("back", str(manifest), allow_non_restored=False)
    gated.project.run(gated.pipeline(), "back", restore=restore)
    gated.require_all("number % 10 = 3", doubled=False)
    gated.run()
    gated.require_all("number % 10 = 3", doubled=False)


def test_what_cannot_be_helped_by_setting_rows_aside_blocks(gated):
    """Without the greatest ones others are too far from the mean."""
    far = "type: expect_column_value_z_scores_to_be_less_than, column: number, threshold: 1, double_sided: true"
    gated.suite(f"{far}, on_fail: quarantine")
    with pytest.raises(GateBlocked, match="z_scores"):
        gated.run()
    assert gated.states("numbers") == [PartitionState.BLOCKED] * FILES
    gated.suite(f"{far}, on_fail: quarantine", between("min_value: 0"))
    with pytest.raises(GateBlocked, match="z_scores"):
        gated.run()
    assert gated.published("numbers") == []


def test_an_expectation_that_blames_no_row_cannot_set_any_aside(gated):
    gated.suite("type: expect_column_mean_to_be_between, column: number, max_value: 0, on_fail: quarantine")
    with pytest.raises(Exception, match=r"own.yaml:3.*it does not say of each row whether it is expected"):
        gated.run()


def test_a_gate_that_is_taken_away_leaves_nothing_aside_that_is_published(tmp_path, spark_remote):
    gated = Quarantining(SmallProject.make(tmp_path, spark_remote, JOBS), type="blocking")
    gated.suite(NOT_NULL)
    assert gated.run() == (ALL, ALL)
    assert len(gated.aside()) == FILES * ROWS // 10
    assert gated.run(gate=None) == (ALL, ALL)
    assert (gated.aside(), gated.published("numbers")) == ([], EVERY)
