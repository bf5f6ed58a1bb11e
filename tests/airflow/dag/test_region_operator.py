"""The operator against a runner that only notes what it was asked."""

from __future__ import annotations

import os
import platform
import signal
import traceback
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from tests.ledger.samples import attempt, run

from stagehold.errors.ledger_errors import LedgerUnavailable
from stagehold.errors.request_errors import UnknownCheckpoint, UnknownName
from stagehold.errors.run_errors import InputsNeverCame, ProcessTerminated
from stagehold.errors.spark_errors import SparkUnavailable
from stagehold.errors.stage_errors import StageFailed
from stagehold.ledger.attempts import Failure
from stagehold.ledger.ledger import Ledger
from stagehold.model.partition_set import Share
from stagehold.model.records import FailureClass
from stagehold.model.states import UNTIL_RUNNING, AttemptEvent
from stagehold.plan.restart.left_out_hosts import HOST
from stagehold.run.planning.task import RegionOutcome
from stagehold.settings import load_settings
from stagehold.spec.settings.restart import RestartSettings
from stagehold.spec.settings.run_settings import ScheduleMode

pytestmark = pytest.mark.airflow

DUE = datetime(2026, 11, 21, 2, tzinfo=UTC)
AT_ONCE = timedelta(milliseconds=1)


@pytest.fixture
def noting(airflow_home, runner):
    """The class of operators whose work is the runner's, in a process that no supervisor ends."""
    from stagehold.airflow.dag.region_operator import RegionOperator

    class NotingOperator(RegionOperator):
        def runner(self):
            return runner.run

        def waiter(self):
            return runner.wait

        def bind_life(self):
            pass

    return NotingOperator


@pytest.fixture
def operator(noting):
    from stagehold.settings import load_settings
    from stagehold.spec.loading.loader import find_pipeline

    pipeline = find_pipeline("shipping_priority", load_settings()).model_copy(
        update={"params": {"segment": "BUILDING", "limit": 10}, "restart": RestartSettings(initial=AT_ONCE)}
    )
    return noting(task_id="orders", pipeline=pipeline, region="orders")


@pytest.fixture
def runner():
    """Stands for the region runner; ``runner.error`` is what it raises, so many times."""
    made = SimpleNamespace(ran=[], waited=[], awaited=[], error=None, times=99, frames=[])

    def run(task, settings, progress, waiting):
        made.ran.append(task)
        made.waited.append(waiting)
        made.frames = [one.name for one in traceback.extract_stack() if "/include/stagehold/" in one.filename]
        progress("orders: run 3 of 16 partitions: never computed for this interval")
        if made.error and len(made.ran) <= made.times:
            raise made.error
        return RegionOutcome(reused=13, computed=3, waves=1, seconds=1.23456, along=2)

    def wait(task, settings, progress):
        made.awaited.append(task)
        return "the attempt that waited"

    made.run, made.wait = run, wait
    return made


@pytest.fixture
def lines(noting):
    """What the task logs for its reader."""
    noting.log, told = Mock(), []
    noting.log.info = lambda line, *parts: told.append(line % parts)
    return told


def context(**params):
    dag_run = SimpleNamespace(
        dag_id="shipping_priority",
        run_id="scheduled__1",
        partition_key=None,
        data_interval_start=None,
        logical_date=DUE,
        run_after=DUE,
        start_date=DUE,
        run_type="scheduled",
        conf=None,
    )
    task_instance = SimpleNamespace(try_number=1, max_tries=100)
    return {"ti": task_instance, "dag_run": dag_run, "params": {"restore_from_stage": None, "interval": None, **params}}


def test_the_task_is_told_everything_about_the_run(operator, runner):
    operator.execute(context(restore_from_stage="customer", segment="MACHINERY"))
    (task,) = runner.ran
    assert task.region.name == "orders"
    assert (task.request.run_id, task.request.interval, task.logical_date) == (
        "shipping_priority/scheduled__1",
        "2026-11-21",
        DUE,
    )
    assert (task.request.restore.stage, task.request.restore.life, task.launcher) == ("customer", DUE, "airflow")
    assert task.request.params == {"segment": "MACHINERY", "limit": 10}


def test_a_checkpoint_that_does_not_exist_is_on_record_as_the_reason_and_not_looked_for_again(operator, runner):
    from airflow.sdk.definitions.retry_policy import RetryAction

    given = context(restore="nobody")
    given["dag_run"].run_id = "manual__nobody"
    with pytest.raises(UnknownCheckpoint, match="There is no checkpoint 'nobody' in lake") as refused:
        operator.execute(given)
    assert runner.ran == []
    assert operator.retry_policy.evaluate(refused.value, 1, 100).action is RetryAction.FAIL
    with Ledger.open(load_settings().ledger_url) as ledger:
        (attempt,) = ledger.attempts.of_run("shipping_priority/manual__nobody")
        (asked,) = ledger.restores.of_run("shipping_priority/manual__nobody")
    assert (attempt.restore, attempt.failure) == (asked.identity, f"UnknownCheckpoint: {refused.value}")


@pytest.mark.parametrize(("state", "waits"), [("running", True), ("failed", True), ("success", False), (None, False)])
def test_a_task_knows_whether_airflow_holds_back_what_goes_on_with_the_run_before(noting, runner, state, waits):
    from stagehold.spec.loading.loader import find_pipeline

    pipeline = find_pipeline("customer_totals", load_settings())
    given = context()
    given["ti"].get_previous_dagrun = lambda: SimpleNamespace(state=state) if state else None
    for region, own in (("daily_orders", {}), ("customer_totals", {"depends_on_past": True})):
        noting(task_id=region, pipeline=pipeline, region=region, **own).execute(given)
    assert [task.waits for task in runner.ran] == [waits, False]


def test_a_task_on_a_host_that_is_left_out_is_given_back_and_takes_no_try(operator, runner, lines):
    """To wherever the executor starts it next; on this host it works again when the time is over."""
    from airflow.sdk.exceptions import AirflowRescheduleException

    here, elsewhere = {HOST: platform.node()}, {HOST: "another"}
    with Ledger.open(load_settings().ledger_url) as ledger:
        ledger.runs.start(run("left out"))
        for number, labels in enumerate((here, here, elsewhere, here), 1):
            made = replace(attempt(number, run_id="left out"), labels=labels)
            ledger.attempts.create(made, *UNTIL_RUNNING)
            failure = Failure("no space", FailureClass.ENVIRONMENT, "disk_full") if labels is here else None
            event = AttemptEvent.FAIL if failure else AttemptEvent.REPORTED_FINISHED
            ledger.attempts.apply(made.attempt_id, event, failure=failure)
        operator.log.warning = lambda line, *parts: lines.append(line % parts)
        with pytest.raises(AirflowRescheduleException):
            operator.pre_execute(context())
        assert "3 attempts in a row failed there, the last by rule disk_full" in lines[0]
        good = replace(attempt(5, run_id="left out"), labels=here)
        ledger.attempts.create(good, *UNTIL_RUNNING)
        ledger.attempts.apply(good.attempt_id, AttemptEvent.REPORTED_FINISHED)
    operator.pre_execute(context())


def test_two_restores_that_exclude_each_other_are_left_aside_and_it_is_said_so(operator, runner, lines):
    both = {"restore": "kept", "restore_from_stage": "orders"}
    given = context(**both)
    given["dag_run"].conf = both
    operator.execute(given)
    (task,) = runner.ran
    assert task.request.restore is None
    assert lines[0].startswith("restore and restore_from_stage exclude each other, so both were left aside")


def test_a_run_that_no_scheduler_started_says_that_it_computes_all_of_an_interval(operator, runner, lines):
    """`airflow dags test`, say."""
    given = context(restore_from_stage="orders", interval="never-ran")
    given["dag_run"].conf = {"restore_form_stage": "orders"}
    given["dag_run"].run_id = "manual__never-ran"
    operator.execute(given)
    told = "Nothing is on record of never-ran, so all of it is computed, not only orders and what reads it."
    assert lines[0].startswith("restore_form_stage is no field of this pipeline and does nothing")
    assert [line for line in lines if line.startswith(told)]


def test_a_task_gets_the_function_that_masks_passwords(operator, runner, monkeypatch):
    from airflow.sdk import BaseHook

    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", "postgresql://bob:correct-horse@warehouse/sales")
    password = BaseHook.get_connection("warehouse").password
    operator.execute(context())
    assert runner.ran[0].request.restore is None
    assert runner.ran[0].redact(f"no login as bob:{password}@warehouse") == "no login as bob:***@warehouse"


def test_an_interval_in_the_form_overrides_the_runs_own(operator, runner):
    operator.execute(context(interval="2026-11-01T02:00:00Z"))
    assert runner.ran[0].request.interval == "2026-11-01"
    assert runner.ran[0].logical_date == datetime(2026, 11, 1, 2, tzinfo=UTC)


def test_an_interval_that_does_not_exist_ends_the_task_without_another_try(operator, runner):
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match="'2026-02-30' is no date from"):
        operator.execute(context(interval="2026-02-30"))
    assert runner.ran == []


@pytest.mark.parametrize("typed", ["2026-11-01", f"{DUE:%Y-%m-%d}", "2026-02-30", None])
def test_a_backfill_runs_its_own_dates_whatever_its_form_says(operator, runner, typed):
    of_backfill = context(interval=typed)
    of_backfill["dag_run"].run_type = "backfill"
    operator.execute(of_backfill)
    assert runner.ran[0].request.interval == f"{DUE:%Y-%m-%d}"


def test_a_run_begins_its_log_with_what_was_left_aside_of_its_wish(operator, runner, capsys):
    given = context()
    given["dag_run"].conf = {"stagehold_remarks": ["The interval x was left aside."]}
    operator.execute(given)
    said = capsys.readouterr().out
    assert said.index("The interval x was left aside.") < said.index("orders: run 3 of 16 partitions")


@pytest.mark.parametrize("limit", [7.0, "7", None])
def test_a_parameter_of_another_type_ends_the_task_without_another_try(operator, runner, limit):
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match=r"Parameter limit is .*; allowed: a whole number"):
        operator.execute(context(limit=limit))
    assert runner.ran == []


def test_every_try_of_a_task_has_the_same_owner(operator, runner):
    operator.execute(context())
    operator.execute(context())
    assert runner.ran[0].owner == runner.ran[1].owner == "airflow:shipping_priority/scheduled__1/orders"


def test_a_share_is_passed_on_and_has_an_owner_of_its_own(operator, noting, runner):
    given = context()
    noting(task_id="orders", pipeline=operator._pipeline, region="orders", share="4-7").execute(given)
    (task,) = runner.ran
    assert (task.share, task.owner) == (Share(4, 7), "airflow:shipping_priority/scheduled__1/orders/4-7")
    assert given["share"] == "4-7"


def test_a_task_of_an_eager_pipeline_waits_for_its_inputs_first(operator, noting, runner):
    operator.execute(context())
    assert (runner.awaited, runner.waited) == ([], [None])
    pipeline = operator._pipeline.model_copy(update={"schedule_mode": ScheduleMode.EAGER})
    eager = noting(task_id="orders", pipeline=pipeline, region="orders")
    eager.execute(context())
    assert runner.awaited == [runner.ran[-1]]
    assert runner.waited[-1] == "the attempt that waited"

    def in_vain(task, settings, progress):
        raise InputsNeverCame("orders", {"customer": (3,)})

    runner.wait = in_vain
    with pytest.raises(InputsNeverCame, match="customer 3"):
        eager.execute(context())


def test_the_summary_is_small_and_for_people(operator, runner):
    assert operator.execute(context()) == {"reused": 13, "computed": 3, "waves": 1, "seconds": 1.235, "along": 2}


def test_progress_goes_to_the_task_log(noting, operator, runner):
    log = Mock()
    noting.log = log
    operator.execute(context())
    assert [call.args[0] % call.args[1:] for call in log.info.call_args_list] == [
        "orders: run 3 of 16 partitions: never computed for this interval",
        "orders: reused 13 partitions, computed 3 (2 more computed along, not stored) in 1 waves",
    ]


def test_an_error_is_raised_unchanged_since_the_retry_policy_decides(operator, runner):
    runner.error = SparkUnavailable("nobody answers")
    with pytest.raises(SparkUnavailable):
        operator.execute(context())


def test_nothing_stands_between_the_task_and_the_run_of_its_region(operator, runner):
    operator.execute(context())
    assert runner.frames == ["execute"]


def test_a_ledger_that_is_away_for_a_while_is_tried_again_inside_the_task(operator, runner):
    runner.error, runner.times = LedgerUnavailable("sqlite://", "nobody answers"), 1
    assert operator.execute(context())["computed"] == 3
    assert len(runner.ran) == 2


def test_five_tries_of_a_ledger_that_stays_away_are_enough(operator, runner):
    runner.error = LedgerUnavailable("sqlite://", "nobody answers")
    with pytest.raises(LedgerUnavailable):
        operator.execute(context())
    assert len(runner.ran) == 5


def told_to_end(operator, runner, meaning=None):
    """Its work is interrupted by a SIGTERM, and a second one while it cleans up; ``meaning`` is what that then was."""

    def run(*arguments):
        try:
            operator.on_kill()
        finally:
            operator.on_kill()
            if meaning:
                raise meaning

    runner.run = run


def test_a_sigterm_that_somebody_asked_for_ends_the_task_for_good_and_says_who(operator, runner):
    from airflow.sdk.exceptions import AirflowTaskTerminated

    told_to_end(operator, runner, KeyboardInterrupt("by `stagehold cancel`"))
    with pytest.raises(AirflowTaskTerminated, match="orders was cancelled by `stagehold cancel`\\. `stagehold resume`"):
        operator.execute(context())


def test_every_other_sigterm_is_tried_again(operator, runner):
    told_to_end(operator, runner)  # where nothing could be recorded of it
    with pytest.raises(ProcessTerminated) as raised:
        operator.execute(context())
    decision = operator.retry_policy.evaluate(raised.value, 1, 100)
    assert (decision.action.value, decision.retry_delay) == ("retry", AT_ONCE)


def test_a_sigterm_before_the_work_ends_the_process_as_if_nobody_handled_it(operator):
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, lambda *_: operator.on_kill())
        signal.raise_signal(signal.SIGTERM)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGTERM


def test_a_sigterm_behind_the_work_has_nothing_to_interrupt(operator, runner):
    operator.execute(context())
    operator.on_kill()


@pytest.mark.parametrize(
    ("try_number", "max_tries", "again"),
    [(1, 100, False), (2, 100, True), (9, 100, True), (3, 102, False), (4, 102, True)],
    ids=["first try", "retry", "late retry", "first after a clear", "retry after a clear"],
)
def test_a_try_that_nobody_asked_for_knows_that(operator, runner, try_number, max_tries, again):
    operator.execute({**context(), "ti": SimpleNamespace(try_number=try_number, max_tries=max_tries)})
    assert runner.ran[0].again is again


def test_a_region_that_does_not_exist_is_refused_when_the_dag_is_parsed(operator):
    from stagehold.airflow.dag.region_operator import RegionOperator

    with pytest.raises(UnknownName, match="no region 'order'"):
        RegionOperator(task_id="x", pipeline=operator._pipeline, region="order")


def test_the_trace_of_a_users_error_is_a_folded_group_of_the_log_and_its_text_is_what_is_raised(
    noting, operator, runner
):
    noting.log = Mock()
    failed = StageFailed(
        stage="orders",
        partitions=[0, 1, 2, 5],
        problem="KeyError: 'x'",
        place="jobs/a.py:3, in orders",
        trace="one\n100 %",
    )
    failed.__cause__ = KeyError("x")
    runner.error = failed
    with pytest.raises(StageFailed, match="partition\\(s\\) 0-2, 5: nothing of it was published") as raised:
        operator.execute(context())
    assert raised.value.__cause__ is None
    lines = [call.args[0] % call.args[1:] for call in noting.log.info.call_args_list]
    assert lines[-3:] == ["::group::The whole trace", "one", "100 %"]  # what Airflow says of the error belongs to it
    (last,) = [call.args[0] % call.args[1:] for call in noting.log.error.call_args_list]
    assert last.startswith(
        "Failed: stage orders, before its first wave, partitions 0-2, 5: KeyError: 'x' at jobs/a.py:3"
    )
    assert last.endswith("/dags/shipping_priority/runs/scheduled__1/plugin/stagehold")
