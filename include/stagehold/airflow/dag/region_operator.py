"""The Airflow task of one region."""

from __future__ import annotations

import platform
import signal
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, DagRunState
from airflow.sdk.exceptions import AirflowFailException, AirflowRescheduleException, AirflowTaskTerminated

from stagehold.airflow.context.asked_end import asked_end
from stagehold.airflow.context.dag_places import DagPlace, places_in
from stagehold.airflow.context.restore_requests import INTERVAL, AskedRestore
from stagehold.airflow.context.run_names import interval_of, intervals_in
from stagehold.airflow.context.secret_places import airflow_places
from stagehold.airflow.context.settled_wish import wish_of_task
from stagehold.airflow.context.spark_connection import with_master
from stagehold.airflow.context.task_retries import retry_arguments
from stagehold.airflow.telling.outlets import outlets_of
from stagehold.errors.base import StageholdError
from stagehold.errors.request_errors import InvalidInterval, InvalidParameter, UnknownName
from stagehold.errors.run_errors import ProcessTerminated
from stagehold.model.checkpoint_records import part_name
from stagehold.model.keys.interval_key import moment_of
from stagehold.model.partition_set import Share
from stagehold.plan.split.regions import Region, stage_regions
from stagehold.plan.split.shares import asks_for_splits
from stagehold.secrets import masked
from stagehold.settings import Settings, load_settings
from stagehold.spark.processes import die_with_parent
from stagehold.spec.pipeline import Pipeline
from stagehold.spec.settings.run_settings import ScheduleMode, checked_params

if TYPE_CHECKING:
    from airflow.sdk import Context

    from stagehold.ledger.ledger import Ledger
    from stagehold.model.records import Attempt, Restore
    from stagehold.run.planning.planning import RunRequest
    from stagehold.run.planning.task import RegionOutcome, RegionTask

BACKFILL_RUN, MANUAL_RUN, ASSET_RUN = "backfill", "manual", "asset_triggered"  # Airflow's names for types of runs
TAG = "stagehold"  # of each DAG of ours
GIVEN_BACK_FOR = timedelta(minutes=1)


class TaskPhase(Enum):
    """How far a task's process has come."""

    BEFORE_WORK = auto()
    AT_WORK = auto()
    ENDING = auto()


class RegionOperator(BaseOperator):
    """Brings one region's partitions to consumable: reuses those that are, and computes the others.

    All decisions are made when the task starts, so a first try, a retry, a clear and a backfill do the same thing. It
    keeps nothing in Airflow: state is in the ledger, and the returned summary is only for people.

    :param pipeline: the validated pipeline.
    :param region: name of one of its regions; for a stage without pipelined outputs that is the stage's name.
    :param share: which of the region's partitions, as ``first-last``; all of them by default. A mapped task is mapped
        over this.
    :param shares: those of all instances of a task in a mapped task group, by map index.
    :param project: its folder, if no variable of Airflow's processes names it.
    """

    # Not templates: fields named here are stored with the serialized DAG, which is how the web page finds the pipeline
    # of a task.
    template_fields = ("pipeline_name", "region_name", "project", "shares")
    ui_color = "#dcfce7"

    def __init__(
        self,
        *,
        pipeline: Pipeline,
        region: str,
        share: str | None = None,
        shares: Sequence[str] = (),
        project: str = "",
        **kwargs: Any,
    ) -> None:
        found = _region_named(pipeline, region)
        super().__init__(**{"outlets": outlets_of(pipeline, found), **retry_arguments(pipeline), **kwargs})
        self.pipeline_name = pipeline.name
        self.region_name = region
        self.project = project
        self.shares = list(shares)
        self._pipeline = pipeline
        self._region = found
        self._share = None if share is None else Share.parse(share)
        self._phase, self._interrupt = TaskPhase.BEFORE_WORK, KeyboardInterrupt()

    @property
    def declared(self) -> Pipeline:
        return self._pipeline

    def pre_execute(self, context: Context) -> None:  # noqa: ARG002
        """Give the task back, without using up a try, if this host is left out: Airflow starts it anew in a minute,
        wherever its executor will then.
        """
        from stagehold.chronicle.chronicle import open_ledger
        from stagehold.run.lease.held_leases import hosts_left_out

        try:
            with open_ledger(load_settings(project=self.project)) as ledger:
                left_out = [host for host in hosts_left_out(ledger) if host.host == platform.node()]
        except StageholdError:
            return  # the work itself waits for that, or says it
        for host in left_out:
            self.log.warning("%s. The task is given back", host)
            raise AirflowRescheduleException(datetime.now(UTC) + GIVEN_BACK_FOR)  # type: ignore[no-untyped-call]

    def execute(self, context: Context) -> dict[str, float]:
        # Imported here because DAG files import this module, and the runner reaches libraries that are slow to import.
        from stagehold.airflow.context.run_names import run_tab
        from stagehold.airflow.telling.failure_line import ending_in_one_line

        if self.shares:
            self._share = Share.parse(self.shares[context["ti"].map_index or 0])
        context["params"], remarks = self._wish(context)
        for remark in remarks:
            self.log.info("%s", remark)
        link = run_tab(self._place(context["dag_run"]), context["dag_run"].run_id)
        subject = part_name(self.region_name, self._share)
        telling = ending_in_one_line(subject, link, partial(self.log.error, "%s"), partial(self.log.info, "%s"))
        with telling, self._at_work(context, link) as (task, asked, life):
            from stagehold.run.journal.endings import OutageTries

            run_region, outages, outcome = self.runner(), OutageTries(task, self.log.info), None
            while outcome is None:
                try:
                    ready, settings, waiting = self._ready(task, asked, life)
                    outcome = run_region(ready, settings, self.log.info, waiting)
                except Exception as error:  # noqa: BLE001 - raised again unless the ledger was away
                    outages.wait(error)
        self.log.info("%s: %s", self.region_name, outcome)
        return {**asdict(outcome), "seconds": round(outcome.seconds, 3)}

    def runner(self) -> Callable[..., RegionOutcome]:
        """The function that does the work: `run_region`, or what has a driver of its own do it."""
        from stagehold.run.here.submission import region_runner

        return region_runner(self._pipeline)

    def waiter(self) -> Callable[..., Attempt]:
        """The function that lets a task of an eager pipeline wait for its inputs: `await_inputs`."""
        from stagehold.run.here.awaited_inputs import await_inputs

        return await_inputs

    def bind_life(self) -> None:
        """End this process when Airflow's supervisor of it ends, so that no writer outlives its owner."""
        die_with_parent()

    @contextmanager
    def _at_work(self, context: Context, link: str) -> Iterator[tuple[RegionTask, AskedRestore | None, datetime]]:
        """Report the beginning and the end of the task, and decide what an interrupt of the block means. Gives the
        task, the restore that it is started for, and when the run was started.
        """
        from stagehold.airflow.telling.telling import Telling
        from stagehold.run.stopping.stopping import Sigterm

        self.bind_life()
        context["share"] = str(self._share)  # type: ignore[typeddict-unknown-key]  # read by the name of a mapped task
        asked, life = self._asked_restore(context), context["dag_run"].start_date or context["dag_run"].run_after
        task, self._interrupt = self._region_task(context), Sigterm(partial(asked_end, context["ti"]))
        telling = Telling(task, context, link, load_settings(project=self.project), datetime.now(UTC))
        self._phase = TaskPhase.AT_WORK
        try:
            telling.tell_beginning(life)
            with telling.telling_end():
                yield task, asked, life
        except Sigterm as sigterm:  # between two records
            raise ProcessTerminated(task.subject) from sigterm
        except KeyboardInterrupt as stop:
            raise AirflowTaskTerminated(
                f"{self.region_name} was cancelled {stop}. `stagehold resume` goes on from what is consumable."
            ) from stop
        finally:
            self._phase = TaskPhase.ENDING

    def _ready(
        self, task: RegionTask, asked: AskedRestore | None, life: datetime
    ) -> tuple[RegionTask, Settings, Attempt | None]:
        """The task as it is to run, with its settings. Tasks of an eager pipeline start before their inputs are there;
        the attempt that has waited for these is given as well.
        """
        settings = with_master(load_settings(project=self.project), self._pipeline)
        task = self._restored(task, asked, life)
        eager = self._pipeline.schedule_mode is ScheduleMode.EAGER
        return task, settings, self.waiter()(task, settings, self.log.info) if eager else None

    def _restored(self, task: RegionTask, asked: AskedRestore | None, life: datetime) -> RegionTask:
        """The task with the request that all tasks of this start of the run work for, if there is one."""
        from stagehold.airflow.context.restore_requests import order_asked, started_restore
        from stagehold.chronicle.chronicle import open_ledger
        from stagehold.run.journal.endings import recorded
        from stagehold.run.planning.candidates import settled
        from stagehold.run.planning.restoring import asked_again

        settings, request = load_settings(project=self.project), task.request
        with open_ledger(settings, task.redact) as ledger:
            began: Restore | None = None
            if asked is not None:
                order = order_asked(asked, request.pipeline.name, request.interval, ledger)
                began = self._began(started_restore(request.run_id, asked, life, order), request, ledger)
            restore = asked_again(request.run_id, began, ledger)
            task = replace(task, request=replace(request, restore=restore))
            if asked is None or asked.reference is None or restore is None or restore is not began:
                return task
            with recorded(task, ledger, settings, self.log.info):
                restore = settled(restore, lambda: self._manifest(str(asked.reference), request, ledger), ledger)
        return replace(task, request=replace(request, restore=restore))

    def _began(self, started: Restore, request: RunRequest, ledger: Ledger) -> Restore:
        """The request that the run was started for. The scheduler has recorded it, with the remarks on it, except for
        `airflow dags test`.
        """
        from stagehold.run.planning.restoring import remark_on, restore_of_life

        began = restore_of_life(started, ledger)
        if began.identity == started.identity and (remark := remark_on(replace(request, restore=began), ledger)):
            self.log.info("%s", remark)
        return began

    def _manifest(self, reference: str, request: RunRequest, ledger: Ledger) -> str:
        """The address of the manifest that the run begins with, which is verified as the pipeline's `verify`
        declares.
        """
        from stagehold.lake.local_copies import LocalCopies
        from stagehold.run.planning.candidates import Candidates, manifest_named
        from stagehold.run.upkeep.scrubbing import SnapshotComparison, scrub_with_spark

        settings = load_settings(project=self.project)
        candidates = Candidates(
            request.pipeline.name,
            request.interval,
            request.run_id,
            settings.lake_uri,
            ledger,
            request.pipeline.restore,
            LocalCopies.putting_back(settings, self.log.info),
        )
        with ExitStack() as opened:
            place = scrub_with_spark(ledger, settings, self.log.info)
            comparison = SnapshotComparison(self._pipeline, place, opened)
            return manifest_named(reference, candidates, self.log.info, comparison.damaged)

    def on_kill(self) -> None:
        """Airflow calls this in its handler of SIGTERM, so on top of `execute`: interrupt it, and it cleans up on its
        way out. Airflow kills a process that is still there 5 s later.

        A whole group of processes may be told to end, so a second SIGTERM, from the supervisor, follows the first: it
        does not interrupt the cleaning up. Before the work there is nothing to clean up, and Airflow tries a task again
        that a signal ended.
        """
        phase, self._phase = self._phase, TaskPhase.ENDING
        if phase is TaskPhase.BEFORE_WORK:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.raise_signal(signal.SIGTERM)
        elif phase is TaskPhase.AT_WORK:
            raise self._interrupt

    def _region_task(self, context: Context) -> RegionTask:
        from stagehold.run.planning.planning import RunRequest
        from stagehold.run.planning.task import RegionTask

        dag_run, params = context["dag_run"], context["params"]
        run_id = self._place(dag_run).run(dag_run.run_id)
        interval = self._interval(dag_run, params.get(INTERVAL))
        return RegionTask(
            request=RunRequest(self._pipeline, run_id, interval, self._params(params)),
            region=self._region,
            # The same for every try of this task: Airflow starts a try only after it gave up the one before, so the new
            # try may take the lease at once; a try that lives on unknown to Airflow is fenced by the epoch.
            owner=f"airflow:{run_id}/{self.task_id}"
            if self._share is None
            else f"airflow:{run_id}/{self.task_id}/{self._share}",
            launcher="airflow",
            logical_date=moment_of(interval, self._pipeline.schedule) or dag_run.logical_date,
            share=self._share,
            asks=asks_for_splits(self._pipeline, self._region),
            again=is_retry(context["ti"], self.retries or 0),
            waits=self._waits(context),
            redact=redacted,
            secret_places=airflow_places(load_settings(project=self.project)),
        )

    def _place(self, dag_run: Any) -> DagPlace:
        dag = self.get_dag()
        places = places_in(dag) if dag else {}
        return places.get(self.pipeline_name, DagPlace(dag_run.dag_id))

    def _waits(self, context: Context) -> bool:
        """Whether Airflow starts later tasks, which go on with this run's state, only when this run has succeeded."""
        from stagehold.run.backfill.backfill_runs import keeps_state

        if self.depends_on_past or not keeps_state(self._pipeline):
            return False
        before = context["ti"].get_previous_dagrun()
        return before is not None and before.state != DagRunState.SUCCESS

    def _interval(self, dag_run: Any, asked: str | None) -> str:
        try:
            interval = run_interval(dag_run, asked, self._pipeline.schedule)
        except InvalidInterval as error:  # the text in the form stays as it is
            raise AirflowFailException(str(error)) from error
        if others := [other for other in intervals_of_news(dag_run) if other != interval]:
            self.log.info("Assets have news of %s, too, which this run is not for", ", ".join(others))
        return interval

    def _wish(self, context: Context) -> tuple[dict[str, Any], Sequence[str]]:
        """The parameters that count, and the remarks on those that do not."""
        params, dag = context["params"], self.get_dag()
        fields = dag.params.keys() if dag else params.keys()
        return wish_of_task(params, context["dag_run"].conf, fields)

    def _asked_restore(self, context: Context) -> AskedRestore | None:
        try:
            return AskedRestore.of(context["params"], self.pipeline_name)
        except InvalidParameter as error:  # two fields of the form that exclude each other
            raise AirflowFailException(str(error)) from error

    def _params(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Airflow's form checks types less strictly: for it, 7.0 is a whole number."""
        try:
            return checked_params(pipeline_params(self._pipeline, given), self._pipeline.params)
        except InvalidParameter as error:
            raise AirflowFailException(str(error)) from error


def redacted(text: str) -> str:
    """``text`` without the secrets that Airflow has met in this process, which are passwords of connections and
    variables of sensitive names, and without those of pipelines.
    """
    from airflow.sdk._shared.secrets_masker import redact

    return masked(str(redact(text)))


def is_retry(task_instance: Any, retries: int) -> bool:
    """Whether Airflow tries again by itself. Somebody asked for the first try, and for the first one after a clear."""
    return bool(task_instance.try_number > task_instance.max_tries - retries + 1)


def run_interval(dag_run: Any, asked: str | None, schedule: str | None) -> str:
    """The interval of an Airflow run, from the task's view of the run or from the metadata row.

    A backfill's dates win over an interval that was asked for: otherwise all of them would be for that one.

    :raises InvalidInterval: the interval that was asked for does not exist.
    """
    return interval_of(
        asked=None if dag_run.run_type == BACKFILL_RUN else asked,
        partition_key=dag_run.partition_key,
        data_interval_start=dag_run.data_interval_start,
        logical_date=dag_run.logical_date,
        run_after=dag_run.run_after,
        schedule=schedule,
        by_hand=dag_run.run_type == MANUAL_RUN,
        news=intervals_of_news(dag_run),
    )


def intervals_of_news(dag_run: Any) -> Collection[str]:
    """The intervals of which assets had the news that started the run."""
    return intervals_in(event.extra for event in dag_run.consumed_asset_events) if dag_run.run_type == ASSET_RUN else ()


def pipeline_params(pipeline: Pipeline, given: Mapping[str, Any]) -> dict[str, Any]:
    """The run's values of the pipeline's own params, without the params that only steer Stagehold."""
    return {name: given.get(name, default) for name, default in pipeline.params.items()}


def _region_named(pipeline: Pipeline, name: str) -> Region:
    regions = {region.name: region for region in stage_regions(pipeline)}
    if name not in regions:
        raise UnknownName("region", name, tuple(regions))
    return regions[name]
