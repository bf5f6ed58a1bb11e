"""Deleted intervals of stages that keep state, and rows that gates had set aside, on a real Spark server."""

from __future__ import annotations

import pytest
from tests.run.pipelines.test_judged_again import ALL, INTERVAL
from tests.run.pipelines.test_quarantine import JOBS as QUARANTINING_JOBS
from tests.run.pipelines.test_quarantine import NOT_NULL, Quarantining
from tests.run.pipelines.test_stage_state import DAY, JOBS, arrive, expected, given, pipeline
from tests.run.small_project import SmallProject

from stagehold.errors import IntervalNeeded
from stagehold.model.standing import PartitionState
from stagehold.run.here.region import open_workplace
from stagehold.run.intervals.interval_deletion import IntervalDeletion
from stagehold.run.upkeep.reconcile import reconcile
from stagehold.settings import Settings
from stagehold.spec.pipeline import Pipeline

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def delete(declared: Pipeline, settings: Settings, *intervals: str) -> None:
    with open_workplace(settings, print) as place:
        asked = [IntervalDeletion.of(declared, interval, place, "ann") for interval in intervals]
        for one in asked:
            one.refuse(together=intervals)
        for one in asked:
            one.carry_out()


def test_an_interval_that_others_go_on_from_goes_only_with_them_and_a_later_run_takes_the_same(tmp_path, spark_remote):
    project = SmallProject.make(tmp_path, spark_remote, JOBS)
    declared = pipeline(project)
    for day in (1, 2, 3):
        arrive(project, day)
        project.run(declared, f"run {day}", DAY.format(day))
    with pytest.raises(IntervalNeeded, match=r"delete customers 2026-11-02 2026-11-03`"):
        delete(declared, project.settings, DAY.format(2))
    delete(declared, project.settings, DAY.format(3), DAY.format(2))
    for day in (2, 3):
        recorded = project.records(declared, DAY.format(day)).values()
        assert {one.state for some in recorded for one in some} == {PartitionState.RELEASED}
    for day in (2, 3):
        records = project.run(declared, f"again {day}", DAY.format(day))
        assert given(records) == expected(project, *range(1, day + 1))


def test_rows_that_were_set_aside_go_too_and_a_ledger_that_is_lost_since_brings_nothing_back(tmp_path, spark_remote):
    project = SmallProject.make(tmp_path, spark_remote, QUARANTINING_JOBS)
    gated = Quarantining(project, type="blocking_persistent", table="marts.numbers")
    gated.suite(NOT_NULL)
    assert gated.run() == (ALL, ALL)
    assert gated.aside()
    delete(gated.pipeline(), project.settings, INTERVAL)
    assert (gated.aside(), gated.published("numbers")) == ([], [])
    (tmp_path / "ledger.db").unlink()
    reconcile([gated.pipeline()], project.settings, dry_run=False)
    assert {one.state for some in gated.records().values() for one in some} == {PartitionState.RELEASED}
    assert gated.run() == (ALL, ALL)
    gated.require_all("number % 10 = 3")
