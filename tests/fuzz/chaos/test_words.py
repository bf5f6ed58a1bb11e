"""A short sequence of those that `make words` makes, so that it stays runnable, and one that was wrong."""

from __future__ import annotations

from random import Random

import pytest
from fuzz.chaos.shown import STAGES
from fuzz.chaos.words import Sequence, declare, one_sequence
from tests.run.workbench import Workbench

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.fixture
def bench(tmp_path, spark_remote):
    bench = Workbench.make(tmp_path, spark_remote)
    declare(bench)
    return bench


def test_after_each_run_of_a_sequence_tables_show_what_may_be_shown(bench):
    sequence, violation = one_sequence(bench, seed=1, number=1, steps=2)
    assert violation is None, f"{'; '.join(sequence.done)}\n{violation}"
    assert sequence.counts["run"] >= 3


def test_what_was_made_from_refused_data_goes_though_another_input_is_other_data_by_then(bench):
    sequence = Sequence(bench, "one", Random(1))
    for partition, amounts in enumerate([(45, 2), (7, 8), (3,)]):
        sequence.write(partition, amounts)
    for stage, most in zip(STAGES, (30, 50, 3000), strict=True):
        sequence.limit(stage, most)
    sequence.run()
    sequence.let_all()
    sequence.run()
    sequence.write(1, (29,))
    sequence.run()  # refused among the edits: the totals are still those of before
    sequence.say(["drafts"], ends=True)
    sequence.run()
    assert not [place for place in sequence.shown.shown if place[0] == "totals"]
