"""Only a suite changes: the data that is there is judged again, nothing is computed, and no row is lost or doubled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from tests.conftest import QUICK_JAVA, free_port
from tests.run.small_project import FILES, INTERVAL, NUMBERS, ROWS, TWO_JOBS, SmallProject
from tests.run.workbench import forge

from stagehold.chronicle.differences import Difference
from stagehold.errors import GateBlocked
from stagehold.model.records import PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.run.faults import FaultAction, Point, inject
from stagehold.run.planning.planning import IntervalView, RunRequest
from stagehold.run.upkeep.reconcile import reconcile

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

ALL = [PartitionState.CONSUMABLE] * FILES
BLOCKED_LAST = [*ALL[:-1], PartitionState.BLOCKED]
LAST = f"max_value: {ROWS * (FILES - 1)}"  # which the last partition exceeds


class Gated:
    """A stage with a gate and its reader; the gate's suite is written anew at will."""

    def __init__(self, project: SmallProject, **output: Any) -> None:
        self.project = project
        self._output = {"output": output} if output else {}
        self._runs = 0

    def suite(self, *expectations: str) -> None:
        self.project.write_suite(*expectations)

    def pipeline(self, gate: str | None = "own") -> Any:
        gated = {"source": NUMBERS, **self._output, **({"gate": gate} if gate else {})}
        inputs = {"numbers": {"exchange": "forward"}}
        return self.project.pipeline("gated", {"numbers": gated, "doubled": {"inputs": inputs}})

    def run(self, gate: str | None = "own") -> tuple[list[PartitionState], list[PartitionState]]:
        """What is recorded of both stages then."""
        self._runs += 1
        records = self.project.run(self.pipeline(gate), f"run {self._runs}")
        return self.states("numbers", records), self.states("doubled", records)

    def states(self, stage: str, records: dict[str, tuple[PartitionRecord, ...]] | None = None) -> list[PartitionState]:
        found = records or self.records()
        return [one.state for one in sorted(found.get(stage, ()), key=lambda one: one.partition)]

    def records(self) -> dict[str, tuple[PartitionRecord, ...]]:
        return self.project.records(self.pipeline(), INTERVAL)

    def plan(self, gate: str | None = "own") -> list[tuple[str, str]]:
        with self.project.ledger() as ledger:
            request = RunRequest(self.pipeline(gate), "preview", INTERVAL, {})
            decisions = IntervalView.of_run(request, ledger, self.project.settings).plan.of("numbers")
            return [(decision.action.value, str(decision.reason)) for decision in decisions]

    def computed(self, stage: str = "numbers") -> list[tuple[str, ...]]:
        """The files of each partition, which nobody writes twice."""
        return [tuple(file.path for file in record.files) for record in self.records()[stage]]

    def published(self, stage: str) -> list[int]:
        (table,) = {record.table for record in self.records()[stage]}
        return sorted(DeltaTable(table).to_pyarrow_table()["number"].to_pylist())


def between(limit: str) -> str:
    return f"type: expect_column_values_to_be_between, column: number, {limit}"


@pytest.fixture
def gated(tmp_path, spark_remote):
    return Gated(SmallProject.make(tmp_path, spark_remote, TWO_JOBS))


def test_a_changed_suite_judges_what_is_there_and_computes_nothing(gated, capsys):
    gated.suite(between("min_value: 0"))
    assert gated.run() == (ALL, ALL)
    computed, read = gated.computed(), gated.computed("doubled")
    seconds = [record.seconds for record in gated.records()["numbers"]]
    gated.suite(between("min_value: 0"), between("max_value: 1000"))
    assert gated.plan() == [("judge", "its gate own changed; its data is there, and nothing is computed")] * FILES
    assert gated.run() == (ALL, ALL)
    assert "numbers: gate own lets 4 of 4 partitions through; they were judged again, and not computed" in (
        capsys.readouterr().out
    )
    assert (gated.computed(), gated.computed("doubled")) == (computed, read)
    assert [record.seconds for record in gated.records()["numbers"]] == seconds
    assert {action for action, _ in gated.plan()} == {"reuse"}
    assert gated.published("numbers") == [*range(ROWS * FILES)]
    found = reconcile([gated.pipeline()], gated.project.settings, dry_run=True)
    assert [one for one in found if one.difference is Difference.ROW_UNCOMMITTED] == []


def test_what_was_refused_is_published_when_the_suite_lets_it(gated):
    gated.suite(between(LAST))
    with pytest.raises(GateBlocked):
        gated.run()
    assert gated.states("numbers") == BLOCKED_LAST
    assert gated.published("numbers") == [*range(ROWS * (FILES - 1))]
    computed = gated.computed()
    gated.suite(between("max_value: 1000"))
    assert [action for action, _ in gated.plan()] == ["judge"] * FILES
    assert gated.run() == (ALL, ALL)
    assert gated.computed() == computed
    assert gated.published("numbers") == [*range(ROWS * FILES)]
    assert gated.published("doubled") == [*range(0, 2 * ROWS * FILES, 2)]


def test_what_was_published_and_passes_no_more_is_read_by_nobody_until_it_does(gated):
    gated.suite(between("min_value: 0"))
    gated.run()
    gated.suite(between(LAST))
    with pytest.raises(GateBlocked, match="numbers"):
        gated.run()
    assert gated.states("numbers") == BLOCKED_LAST
    with gated.project.ledger() as ledger:
        request = RunRequest(gated.pipeline(), "preview", INTERVAL, {})
        waiting = IntervalView.of_run(request, ledger, gated.project.settings).plan.of("doubled")[-1]
    assert (waiting.action.value, str(waiting.reason)) == ("blocked", "waits for numbers[3], which its gate blocked")
    assert gated.published("numbers") == [*range(ROWS * FILES)]
    computed = gated.computed()
    gated.suite(between("max_value: 1000"))
    assert gated.run() == (ALL, ALL)
    assert gated.computed() == computed
    assert gated.published("numbers") == [*range(ROWS * FILES)]


def test_a_gate_that_is_taken_away_lets_what_it_had_refused(tmp_path, spark_remote):
    gated = Gated(SmallProject.make(tmp_path, spark_remote, TWO_JOBS), type="blocking")
    gated.suite(between(LAST))
    with pytest.raises(GateBlocked):
        gated.run()
    why = "its gate was taken away; its data is there, and nothing is computed"
    assert gated.plan(gate=None)[-1] == ("judge", why)
    assert gated.run(gate=None) == (ALL, ALL)
    assert gated.published("numbers") == [*range(ROWS * FILES)]


def test_refused_data_that_is_gone_is_computed(gated):
    gated.suite(between(LAST))
    with pytest.raises(GateBlocked):
        gated.run()
    refused = gated.records()["numbers"][-1]
    Path(refused.table, refused.files[0].path).unlink()
    gated.suite(between("max_value: 1000"))
    assert gated.plan()[-1] == ("run", "its gate own changed, and its data is gone from the lake")
    assert gated.run() == (ALL, ALL)
    assert gated.published("numbers") == [*range(ROWS * FILES)]


def test_data_that_was_damaged_is_found_and_healed_instead_of_judged(gated):
    gated.suite(between("min_value: 0"))
    gated.run()
    forge(gated.records()["numbers"][0])
    gated.suite(between("max_value: 1000"))
    assert gated.run() == (ALL, ALL)
    assert gated.published("numbers") == [*range(ROWS * FILES)]


@pytest.mark.parametrize("point", [Point.BEFORE_PUBLISH, Point.AFTER_PUBLISH])
def test_who_dies_while_refused_data_is_published_leaves_it_whole_or_not_at_all(gated, point):
    gated.suite(between(LAST))
    with pytest.raises(GateBlocked):
        gated.run()
    computed = gated.computed()
    gated.suite(between("max_value: 1000"))
    armed = inject(gated.project.settings.home_path, point, "numbers", 1, FaultAction.RAISE)
    assert gated.run() == (ALL, ALL)
    assert not armed.exists()
    assert gated.computed() == computed
    assert gated.published("numbers") == [*range(ROWS * FILES)]


def test_a_run_that_only_judges_starts_the_server_that_it_needs(tmp_path, capsys):
    project = SmallProject.make(tmp_path, "", TWO_JOBS)
    own = replace(project.settings, spark_port=free_port(), spark_java_options=QUICK_JAVA)
    gated = Gated(replace(project, settings=own))
    gated.suite(between("min_value: 0"))
    gated.run()
    gated.suite(between("max_value: 1000"))
    capsys.readouterr()
    assert gated.run() == (ALL, ALL)
    assert "runs again" not in capsys.readouterr().out
