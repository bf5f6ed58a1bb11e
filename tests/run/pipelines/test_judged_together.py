"""A suite has expectations about all of a stage: its partitions are held, judged together, and published at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from tests.run.small_project import FILES, INTERVAL, NUMBERS, ROWS, TWO_JOBS, SmallProject

from stagehold.errors import GateBlocked
from stagehold.model.records import WHOLE, PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.plan.resume.waiving import WaiverWish, refused_data, wished
from stagehold.run.faults import FaultAction, InjectedFailure, Point, TogetherPoint, inject
from stagehold.run.planning.planning import IntervalView, RunRequest
from stagehold.run.upkeep.reconcile import reconcile

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

ALL = [PartitionState.CONSUMABLE] * FILES
HELD = [PartitionState.HELD] * FILES
TOTAL = sum(range(ROWS * FILES))
UNIQUE = "type: expect_column_values_to_be_unique, column: number, scope: stage"


def total(value: int) -> str:
    bounds = f"min_value: {value}, max_value: {value}"
    return f"type: expect_column_sum_to_be_between, column: number, {bounds}, scope: stage"


class Together:
    """A stage that is judged together, and its reader; suite and jobs are written anew at will."""

    def __init__(self, project: SmallProject) -> None:
        self.project, self._runs = project, 0

    def suite(self, *expectations: str) -> None:
        self.project.write_suite(*expectations)

    def source(self, number: int, first: int) -> None:
        """Have one of the files hold numbers from this one on."""
        path = Path(self.project.settings.lake_uri) / "raw" / f"part-{number}.parquet"
        pq.write_table(pa.table({"number": pa.array(range(first, first + ROWS), pa.int64())}), path)

    def pipeline(self, gate: str | None = "own") -> Any:
        gated = {"source": NUMBERS, "output": {"type": "blocking"}, **({"gate": gate} if gate else {})}
        inputs = {"numbers": {"exchange": "forward"}}
        return self.project.pipeline("together", {"numbers": gated, "doubled": {"inputs": inputs}})

    def run(self, gate: str | None = "own") -> tuple[list[PartitionState], list[PartitionState]]:
        self._runs += 1
        self.project.run(self.pipeline(gate), f"run {self._runs}")
        return self.states("numbers"), self.states("doubled")

    def refused(self, match: str = "numbers") -> None:
        with pytest.raises(GateBlocked, match=match):
            self.run()

    def states(self, stage: str) -> list[PartitionState]:
        return [record.state for record in self.records().get(stage, ())]

    def records(self) -> dict[str, tuple[PartitionRecord, ...]]:
        return self.project.records(self.pipeline(), INTERVAL)

    def plan(self, stage: str = "numbers") -> list[str]:
        with self.project.ledger() as ledger:
            request = RunRequest(self.pipeline(), "preview", INTERVAL, {})
            return [
                decision.action.value
                for decision in IntervalView.of_run(request, ledger, self.project.settings).plan.of(stage)
            ]

    def files(self, stage: str = "numbers") -> list[tuple[str, ...]]:
        return [tuple(file.path for file in record.files) for record in self.records()[stage]]

    def published(self, stage: str) -> list[int]:
        (table,) = {record.table for record in self.records()[stage]}
        return sorted(DeltaTable(table).to_pyarrow_table()["number"].to_pylist())

    def judged(self) -> list[tuple[str, bool]]:
        with self.project.ledger() as ledger:
            said = ledger.gates.newest(self.records()["numbers"][0].cell)
            return [(verdict.expectation, verdict.passed) for verdict in said if verdict.partition == WHOLE]


@pytest.fixture
def made(tmp_path, spark_remote):
    return Together(SmallProject.make(tmp_path, spark_remote, TWO_JOBS))


def test_all_partitions_are_published_at_once_when_their_gate_lets_all_of_them(made):
    made.suite("type: expect_column_values_to_not_be_null, column: number", UNIQUE, total(TOTAL))
    assert made.run() == (ALL, ALL)
    assert {record.version for record in made.records()["numbers"]} == {2}
    assert [passed for _, passed in made.judged()] == [True, True]
    assert made.published("numbers") == [*range(ROWS * FILES)]
    assert {*made.plan(), *made.plan("doubled")} == {"reuse"}


def test_what_is_doubled_across_partitions_is_held_until_the_data_is_mended(made):
    made.source(3, 0)  # which repeats what the first has
    made.suite(UNIQUE)
    made.refused("50 of 100 unexpected")
    assert (made.states("numbers"), made.states("doubled")) == (HELD, [])
    assert made.published("numbers") == []
    assert (made.plan(), made.plan("doubled")) == (["blocked"] * FILES, ["blocked"] * FILES)
    files = made.files()
    made.refused()
    assert made.files() == files
    made.source(3, 3 * ROWS)
    assert made.plan() == ["judge", "judge", "judge", "run"]
    assert made.run() == (ALL, ALL)
    assert made.files()[:3] == files[:3]
    assert made.published("numbers") == [*range(ROWS * FILES)]


def test_only_a_changed_suite_judges_what_is_held_or_published_and_computes_nothing(made):
    made.suite(total(1))
    made.refused(f"got {TOTAL}")
    files = made.files()
    made.suite(total(TOTAL))
    assert made.plan() == ["judge"] * FILES
    assert made.run() == (ALL, ALL)
    made.suite(total(2))
    made.refused()
    assert (made.states("numbers"), made.plan("doubled")) == (ALL, ["blocked"] * FILES)
    made.suite(total(TOTAL))  # as it has said before
    assert {*made.plan(), *made.plan("doubled")} == {"reuse"}
    made.suite("type: expect_column_values_to_not_be_null, column: number")
    assert made.run() == (ALL, ALL)
    assert made.files() == files
    assert made.published("numbers") == [*range(ROWS * FILES)]


def test_a_gate_that_is_taken_away_lets_what_was_held(made):
    made.suite(total(1))
    made.refused()
    files = made.files()
    assert made.run(gate=None) == (ALL, ALL)
    assert made.files() == files
    assert made.published("numbers") == [*range(ROWS * FILES)]


def test_what_is_waived_is_published_and_whoever_read_it_says_so(made):
    made.suite(total(1))
    made.refused()
    with made.project.ledger() as ledger:
        records = made.records()["numbers"]
        (verdict,) = ledger.stage_verdicts.of("together", INTERVAL)
        wish = WaiverWish(None, None, "ann", "known")
        words = wished(wish, "numbers", refused_data(records, verdict), records[0].recorded_at)
        ledger.waivers.record(words)
    assert [(one.partition, one.fingerprint) for one in words] == [(WHOLE, verdict.fingerprint)]
    files = made.files()
    assert made.run() == (ALL, ALL)
    assert made.files() == files
    with made.project.ledger() as ledger:
        request = RunRequest(made.pipeline(), "preview", INTERVAL, {})
        read = IntervalView.of_run(request, ledger, made.project.settings).plan.of("doubled")[0]
    assert str(read.reason).endswith("made from numbers[0], which somebody waived")


@pytest.mark.parametrize(
    ("point", "wave"),
    [
        (Point.AFTER_RECORD, 1),
        (TogetherPoint.BEFORE_VERDICT, 0),
        (TogetherPoint.AFTER_VERDICT, 0),
        (Point.BEFORE_PUBLISH, 0),
        (Point.AFTER_PUBLISH, 0),
        (Point.AFTER_RECORD, 0),
    ],
)
def test_a_run_that_dies_anywhere_goes_on_and_nothing_is_lost_or_doubled(made, point, wave):
    """
    :param wave: 0 behind the last one.
    """
    made.suite(UNIQUE, total(TOTAL))
    inject(made.project.settings.home_path, point, "numbers", wave, FaultAction.FAIL)
    with pytest.raises(InjectedFailure):
        made.run()
    held = made.files()
    assert len(held) == FILES or wave
    assert made.run() == (ALL, ALL)
    assert made.files()[: len(held)] == held
    assert made.published("numbers") == [*range(ROWS * FILES)]
    assert made.published("doubled") == [*range(0, 2 * ROWS * FILES, 2)]
    with made.project.ledger() as ledger:
        assert len(ledger.stage_verdicts.of("together", INTERVAL)) == 1


def test_a_lost_ledger_comes_back_with_what_is_held_and_why(made):
    made.suite(total(1))
    made.refused()
    before, files = made.states("numbers"), made.files()
    for file in made.project.settings.home_path.glob("ledger.db*"):
        file.unlink()
    reconcile([made.pipeline()], made.project.settings, dry_run=False)
    assert (made.states("numbers"), made.files()) == (before, files)
    assert made.plan() == ["blocked"] * FILES
    made.suite(total(TOTAL))
    assert made.run() == (ALL, ALL)
    assert made.files() == files
