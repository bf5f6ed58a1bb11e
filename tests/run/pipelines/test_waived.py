"""Somebody lets through what a gate refuses: it is published as it is, and blocked again when the word ends."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.run.pipelines.test_judged_again import ALL, BLOCKED_LAST, LAST, Gated, between
from tests.run.small_project import FILES, INTERVAL, ROWS, TWO_JOBS, SmallProject

from stagehold.chronicle.chronicle import open_ledger
from stagehold.errors import GateBlocked
from stagehold.model.choices import Waiver
from stagehold.model.partition_set import PartitionSet
from stagehold.model.records import Cell
from stagehold.model.standing import PartitionState
from stagehold.plan.resume.waiving import WaiverWish, refused_data, wished
from stagehold.run.faults import FaultAction, Point, inject
from stagehold.run.planning.planning import IntervalView, RunRequest
from stagehold.run.upkeep.reconcile import reconcile

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


class Waivable(Gated):
    """A stage whose last partition is refused, and may be waived."""

    def begin(self) -> None:
        self.suite(between(LAST))
        with pytest.raises(GateBlocked, match="stagehold waive"):
            self.run()
        assert self.states("numbers") == BLOCKED_LAST

    def change(self, *texts: str) -> None:
        """Another job in place of the first one; the first one, if there are no texts."""
        folder = Path(self.project.settings.project)
        (folder / f"{folder.name}.py").write_text(TWO_JOBS.replace(*texts) if texts else TWO_JOBS)

    def waive(self, until: datetime | None = None) -> tuple[Waiver, ...]:
        now = datetime.now(UTC)
        with open_ledger(self.project.settings) as ledger:
            records = ledger.partitions.newest(Cell("gated", "numbers", INTERVAL))
            wish = WaiverWish(PartitionSet([FILES - 1]), None, "ann", "known", until)
            words = wished(wish, "numbers", refused_data(records, None), now)
            ledger.waivers.record(words)
        return words

    def reasons(self, stage: str) -> list[str]:
        with self.project.ledger() as ledger:
            request = RunRequest(self.pipeline(), "preview", INTERVAL, {})
            return [
                str(decision.reason)
                for decision in IntervalView.of_run(request, ledger, self.project.settings).plan.of(stage)
            ]


@pytest.fixture
def gated(tmp_path, spark_remote):
    made = Waivable(SmallProject.make(tmp_path, spark_remote, TWO_JOBS))
    made.begin()
    return made


def test_what_is_waived_is_published_as_it_is_and_its_readers_say_so(gated, capsys):
    computed = gated.computed()
    gated.waive()
    assert [action for action, _ in gated.plan()] == [*["reuse"] * (FILES - 1), "judge"]
    assert gated.run() == (ALL, ALL)
    said = capsys.readouterr().out
    assert "numbers[3] may be read: ann waived expect_column_values_to_be_between(number" in said
    assert gated.computed() == computed
    assert gated.published("numbers") == [*range(ROWS * FILES)]
    assert gated.published("doubled") == [*range(0, 2 * ROWS * FILES, 2)]
    refused = gated.records()["numbers"][-1].refused
    assert gated.reasons("numbers")[-1] == f"consumable; ann waived {refused[0]}: known"
    assert gated.reasons("doubled")[-1].endswith("; made from numbers[3], which somebody waived")
    with gated.project.ledger() as ledger:
        (failed,) = ledger.gates.failures(Cell("gated", "numbers", INTERVAL))
    assert (failed.partition, failed.expectation) == (FILES - 1, *refused)  # the verdict stays on record


def test_when_the_word_ends_the_data_is_blocked_again_and_nothing_is_computed(gated):
    gated.waive()
    gated.run()
    computed = gated.computed(), gated.computed("doubled")
    gated.waive(until=datetime.now(UTC))
    with pytest.raises(GateBlocked, match=r"numbers\[3\] expect_column_values_to_be_between"):
        gated.run()
    assert gated.states("numbers") == BLOCKED_LAST
    good = [*range(ROWS * (FILES - 1))]
    assert (gated.published("numbers"), gated.published("doubled")) == (good, [2 * number for number in good])
    assert gated.states("doubled") == [*ALL[:-1], PartitionState.HELD]
    assert gated.reasons("doubled")[-1] == "waits for numbers[3], which its gate blocked"
    gated.waive()
    assert gated.run() == (ALL, ALL)
    assert (gated.computed(), gated.computed("doubled")) == computed
    assert gated.published("numbers") == [*range(ROWS * FILES)]
    assert gated.published("doubled") == [*range(0, 2 * ROWS * FILES, 2)]


def test_other_data_is_not_what_was_waived(gated):
    """Though its partition and what it does not meet are the same."""
    gated.waive()
    gated.run()
    gated.change("return source", "return source.selectExpr('number + 1 AS number')")
    with pytest.raises(GateBlocked):
        gated.run()
    assert gated.states("numbers") == BLOCKED_LAST
    gated.change()
    assert gated.run() == (ALL, ALL)


def test_waived_data_that_is_lost_comes_back_as_it_was(gated):
    """It is healed when a reader needs it, to the same data, of which the word still holds."""
    gated.waive()
    gated.run()
    (last,) = (record for record in gated.records()["numbers"] if record.partition == FILES - 1)
    Path(last.table, last.files[0].path).unlink()
    gated.change("2 * number", "3 * number")
    assert gated.run() == (ALL, ALL)
    assert gated.published("numbers") == [*range(ROWS * FILES)]
    assert gated.published("doubled") == [*range(0, 3 * ROWS * FILES, 3)]


@pytest.mark.parametrize("point", [Point.BEFORE_PUBLISH, Point.AFTER_PUBLISH])
def test_who_dies_while_waived_data_is_published_leaves_it_to_the_next(gated, point):
    gated.waive()
    armed = inject(gated.project.settings.home_path, point, "numbers", 1, FaultAction.RAISE)
    assert gated.run() == (ALL, ALL)
    assert not armed.exists()
    assert gated.published("numbers") == [*range(ROWS * FILES)]
    assert gated.records()["numbers"][-1].refused


def test_a_ledger_that_is_lost_comes_back_with_its_waivers(gated):
    (word,) = gated.waive()
    gated.run()
    before = gated.records()
    for file in gated.project.settings.home_path.glob("ledger.db*"):
        file.unlink()
    reconcile([gated.pipeline()], gated.project.settings, dry_run=False)
    with gated.project.ledger() as ledger:
        assert ledger.waivers.of("gated", INTERVAL) == (word,)
    assert gated.records() == before
    assert gated.run() == (ALL, ALL)
