"""What the tab says of a stage for an interval, from what the ledger knows alone."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from stagehold.airflow.context.dag_places import DagPlace
from stagehold.airflow.pipeline_page.interval_grid import interval_page
from stagehold.airflow.pipeline_page.pipeline_facts import IntervalFacts, in_order
from stagehold.airflow.pipeline_page.pipeline_history import LOST, pipeline_history, recoveries
from stagehold.airflow.pipeline_page.pipeline_responses import IntervalLook, MadeBy, TryFailure
from stagehold.airflow.run_page.run_responses import AttemptLoss
from stagehold.ledger.across.intervals import LastTries
from stagehold.ledger.leases import region_lease
from stagehold.ledger.partitions import StateFigures
from stagehold.model.records import Attempt, AttemptState, FailureClass, Run, RunState
from stagehold.model.standing import PartitionState, StageStanding, Standing
from stagehold.plan.split.partition_counts import declared_stages, with_counts
from stagehold.run.lease.lost_attempts import Loss
from stagehold.spec.pipeline import Pipeline, Stage

pytestmark = pytest.mark.airflow

START = datetime(2026, 11, 20, 2, tzinfo=UTC)
DAY = "2026-11-20"
RUN, EARLIER = "sales/new", "sales/old"
LEASE = region_lease("sales", DAY, "orders")
CONSUMABLE, BLOCKED, RELEASED = PartitionState.CONSUMABLE, PartitionState.BLOCKED, PartitionState.RELEASED
FINISHED, FAILED, RUNNING = AttemptState.FINISHED, AttemptState.FAILED, AttemptState.RUNNING
ORDERS = Stage(name="orders", job="m:f", partitions=4, max_parallelism=128)
PIPELINE = Pipeline(name="sales", file="sales.yaml", schedule="@daily", stages=(ORDERS,))


def figures(state=CONSUMABLE, count=4, run=RUN, stage="orders", interval=DAY, **facts):
    given = {"rows": 10 * count, "bytes": 100 * count, "seconds": 1.0 * count, "judged": 0, "refused": 0, **facts}
    return StateFigures(interval, stage, state, run, count, recorded_at=START, **given)


def tries(state, run=RUN, cause=None):
    failed = state is FAILED
    rule = "spark_gone" if failed else None
    kind = FailureClass.ENVIRONMENT if failed else None
    return LastTries(run, "orders", state, 1, kind, rule, cause or ("gone" if failed else None))


def cell_of(found, tried, *, active=False, pipeline=PIPELINE, decided=None, **facts):
    run = Run(RUN, "sales", DAY, "airflow", RunState.RUNNING, START)
    known = SimpleNamespace(
        place=DagPlace("sales"), places={"sales": DagPlace("sales")}, pipeline=pipeline, goes_on=lambda _: active
    )
    counts = Counter()
    for one in found:
        counts[one.state] += one.partitions
    stages = {one.stage: Standing.of(one, counts) for one in declared_stages(with_counts(pipeline, decided or {}))}
    facts = IntervalFacts(
        known=known,
        intervals=(DAY,),
        total=1,
        looks={},
        looks_of={DAY: frozenset((IntervalLook.ALL,))},
        following=None,
        runs={DAY: run},
        figures=found,
        tries=tried,
        standings={DAY: stages},
        pins={},
        **{"warned": {}, "leases": frozenset({LEASE}), **facts},
    )
    ((row,), (column,)) = interval_page(facts).intervals, interval_page(facts).stages
    assert (column.name, column.region, row.run.active) == ("orders", "orders", active)
    return row.cells[0]


@pytest.mark.parametrize(
    ("found", "tried", "active", "expected"),
    [
        pytest.param([figures()], [tries(FINISHED)], False, StageStanding.CONSUMABLE, id="all of it is there"),
        pytest.param([figures(run=EARLIER)], [], False, StageStanding.CONSUMABLE, id="an earlier run made it"),
        pytest.param([], [], False, StageStanding.MISSING, id="nothing is on record"),
        pytest.param([figures(count=2)], [], False, StageStanding.PARTIAL, id="some of it"),
        pytest.param([figures(count=2)], [tries(FAILED)], False, StageStanding.FAILED, id="failed half-way"),
        pytest.param([], [tries(FAILED)], False, StageStanding.FAILED, id="failed before anything was there"),
        pytest.param([figures(count=2)], [tries(RUNNING)], True, StageStanding.RUNNING, id="at work"),
        pytest.param([figures(count=2)], [tries(RUNNING)], False, StageStanding.FAILED, id="died without a word"),
        pytest.param(
            [figures(count=3), figures(BLOCKED, 1)],
            [tries(FAILED)],
            False,
            StageStanding.BLOCKED,
            id="its gate refuses",
        ),
        pytest.param([figures(PartitionState.HELD)], [tries(FINISHED)], False, StageStanding.HELD, id="held"),
        pytest.param(
            [figures(count=3), figures(PartitionState.DAMAGED, 1)], [], False, StageStanding.DAMAGED, id="damaged"
        ),
        pytest.param([figures(RELEASED)], [tries(FINISHED)], False, StageStanding.RELEASED, id="nobody needs it"),
        pytest.param(
            [figures(RELEASED, 1), figures(count=3)], [], False, StageStanding.CONSUMABLE, id="some of it is released"
        ),
    ],
)
def test_the_state_of_a_stage_follows_from_its_records_and_last_tries(found, tried, active, expected):
    assert cell_of(found, tried, active=active).state is expected


@pytest.mark.parametrize(
    ("leases", "state", "expected"),
    [
        ({LEASE}, RUNNING, StageStanding.RUNNING),
        ({f"{LEASE}/0-3"}, RUNNING, StageStanding.RUNNING),
        ({f"{LEASE}_by_customer"}, RUNNING, StageStanding.FAILED),
        (set(), RUNNING, StageStanding.FAILED),
        (set(), AttemptState.SCHEDULED, StageStanding.RUNNING),
    ],
)
def test_an_attempt_without_a_lease_is_lost_though_its_run_goes_on(leases, state, expected):
    assert cell_of([], [tries(state)], active=True, leases=frozenset(leases)).state is expected


def test_how_many_partitions_a_stage_has_is_not_guessed_where_each_interval_decides_it():
    auto = PIPELINE.model_copy(update={"stages": (ORDERS.model_copy(update={"auto_partitions": True}),)})
    for number, expected in ((2, StageStanding.CONSUMABLE), (3, StageStanding.PARTIAL)):
        cell = cell_of([figures(count=2)], [], pipeline=auto, decided={"orders": number})
        assert (cell.wanted, cell.state) == (number, expected)
    assert cell_of([figures(count=2)], [], pipeline=auto).state is StageStanding.PARTIAL
    assert cell_of([], [], pipeline=auto).state is StageStanding.MISSING


def test_a_cell_sums_up_its_partitions_and_names_the_runs_that_made_them():
    found = [figures(count=1, judged=1), figures(count=3, run=EARLIER, judged=3, refused=1)]
    cell = cell_of(found, [tries(FINISHED)], warned={(DAY, "orders"): 2})
    assert (cell.computed, cell.reused, cell.made_by) == (
        1,
        3,
        (MadeBy(run_id=EARLIER, partitions=3), MadeBy(run_id=RUN, partitions=1)),
    )
    assert (cell.rows, cell.bytes, cell.seconds, cell.counts) == (40, 400, 4.0, {CONSUMABLE: 4})
    assert (cell.judged, cell.refused, cell.warned) == (4, 1, 2)


def test_a_failure_says_its_cause():
    (failure,) = cell_of([], [tries(FAILED)]).failures
    assert failure == TryFailure(tries=1, cause="environment failure, rule spark_gone", failure="gone")
    (died,) = cell_of([], [tries(RUNNING)], losses={(RUN, "orders"): Loss("joined, epoch 2", START)}).failures
    assert died == TryFailure(tries=1, cause=None, failure=None, lost=AttemptLoss(noticed="joined, epoch 2", at=START))


def test_dates_come_before_what_ran_and_the_newest_first():
    known = {
        "2026-11-19": START,
        "2026-11-20T14:00:00Z": START,
        "2026-11-20": START + timedelta(days=300),
        "whole": START - timedelta(days=1, hours=-3),
        "taken over": None,
    }
    expected = ("2026-11-20T14:00:00Z", "2026-11-20", "whole", "2026-11-19", "taken over")
    assert in_order(known) == expected


def test_growth_has_a_value_for_each_interval_and_none_where_it_is_unknown():
    found = [
        figures(interval="2026-11-18"),
        figures(interval="2026-11-20", count=1),
        figures(interval="2026-11-20", count=3, run=EARLIER),
        figures(RELEASED, interval="2026-11-21", bytes=0),
    ]
    days = [f"2026-11-{number}" for number in range(18, 22)]
    (orders,) = pipeline_history(PIPELINE, days, found).stages
    assert orders.rows == (40, None, 40, 40)
    assert orders.seconds == (4.0, None, 4.0, 4.0)
    assert orders.bytes == (400, None, 400, None)


def attempt(number, state, ended=None, failure=None):
    return Attempt(
        attempt_id=f"attempt {number}",
        run_id=RUN,
        pipeline="sales",
        interval=DAY,
        region="orders",
        epoch=number,
        state=state,
        started_at=START + timedelta(minutes=10 * number),
        ended_at=ended and START + timedelta(minutes=ended),
        failure=failure,
        failure_class=FailureClass.ENVIRONMENT if failure else None,
        failure_rule="spark_gone" if failure else None,
    )


def test_a_recovery_names_the_first_failure_and_the_work_of_the_failed_tries():
    tried = [
        attempt(1, FAILED, 15, "gone"),
        attempt(2, FAILED, 25, "gone again"),
        attempt(3, FINISHED, 37),
    ]
    left = {"attempt 1": (5, 10.0), "attempt 2": (2, 4.04), "attempt 3": (9, 99.0)}
    (one,) = recoveries([tried], left).recoveries
    assert (one.subject, one.attempts, one.cause) == ("orders", 3, "environment failure, rule spark_gone")
    assert (one.failure, one.failed_at) == ("gone", START + timedelta(minutes=15))
    assert one.recovered_at == START + timedelta(minutes=37)
    assert (one.reused, one.saved_seconds) == (7, 14.0)


def test_a_recovery_that_is_under_way_has_no_end():
    (one,) = recoveries([[attempt(1, FAILED, 15, "gone"), attempt(2, RUNNING)]], {}).recoveries
    assert (one.recovered_at, one.reused, one.saved_seconds) == (None, 0, 0.0)


def test_a_process_that_died_is_known_when_the_next_try_begins():
    (one,) = recoveries([[attempt(1, RUNNING), attempt(2, FINISHED, 30)]], {}).recoveries
    assert (one.failure, one.failed_at) == (LOST, START + timedelta(minutes=20))


def test_a_last_failure_is_no_recovery():
    assert recoveries([[attempt(1, FINISHED, 15), attempt(2, FAILED, 25, "gone")]], {}).recoveries == ()
