"""What a pipeline and its stages say of DAG and tasks in Airflow's own words: `airflow:`, and notifiers by hook."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, JsonValue

from stagehold.model.units import PositiveDuration
from stagehold.spec.settings.fields import Count, Names, Params, SpecPart, Switch


class WeightRule(StrEnum):
    DOWNSTREAM = "downstream"
    UPSTREAM = "upstream"
    ABSOLUTE = "absolute"


class TaskSettings(SpecPart):
    """Settings of a stage's task; in the pipeline's own section, of each task whose stage says nothing else. Retries
    are not among them: `restart` decides.
    """

    owner: str | None = None
    """Who is shown as the owner. Without it: `airflow`. Example: `owner: sales-team`"""

    pool: str | None = None
    """The pool that the task takes slots of. Without it: that of the Spark server where there is one, else Airflow's
    default. Not with a `schedule_mode` that counts slots.
    Example: `pool: nightly`"""

    pool_slots: Count | None = None
    """How many slots of the pool it takes. Needs `pool`. Example: `pool: nightly, pool_slots: 2`"""

    queue: str | None = None
    """The queue of the executor that it goes to. Example: `queue: large`"""

    priority_weight: Annotated[int, Field(strict=True)] | None = None
    """Which task starts first where slots are short: the one with the greater number. Not with `schedule_mode: eager`.
    Example: `priority_weight: 10`"""

    weight_rule: WeightRule | None = None
    """Whether weights add up along the DAG: `downstream`, `upstream` or `absolute`. Not with `schedule_mode: eager`.
    Example: `weight_rule: absolute`"""

    executor: str | None = None
    """The executor, one of those that Airflow has configured. Example: `executor: LocalExecutor`"""

    executor_config: Mapping[str, JsonValue] | None = None
    """What that executor is to do for this task. KubernetesExecutor takes `pod_override`, a pod as in a manifest, which
    it lays over its own, and `pod_template_file`. A stage's counts in place of its pipeline's, wholly. Airflow's pages
    show it.
    Example: `executor_config: {pod_override: {spec: {containers: [{name: base, resources: {requests: {memory: 4Gi}}}],
    nodeSelector: {disk: ssd}}}}`"""

    execution_timeout: PositiveDuration | None = None
    """A try that takes longer is interrupted; what it made is kept. Example: `execution_timeout: 2h`"""

    max_active_tis_per_dag: Count | None = None
    """How many instances of the task may go on at a time, in all runs. Example: `max_active_tis_per_dag: 4`"""

    max_active_tis_per_dagrun: Count | None = None
    """Likewise in one run, for a stage with `max_parallel_tasks`. Example: `max_active_tis_per_dagrun: 2`"""

    on_execute_callback: Names = ()
    """Functions of the project, as `module:function`, one or a list; each is given Airflow's context when a try
    begins. They are imported when they are called.
    Example: `on_execute_callback: "jobs.alerts:tell"`"""

    on_success_callback: Names = ()
    """Likewise when the task has succeeded. Example: `on_success_callback: "jobs.alerts:tell"`"""

    on_retry_callback: Names = ()
    """Likewise when it will be tried again. Example: `on_retry_callback: "jobs.alerts:tell"`"""

    on_failure_callback: Names = ()
    """Likewise when it has failed for good. Example: `on_failure_callback: ["jobs.alerts:tell"]`"""


class DagSettings(TaskSettings):
    """Settings of the DAG, and of all its tasks."""

    description: str | None = None
    """One line below the DAG's name, and the first one of its docs. Example: `description: The best orders`"""

    display_name: str | None = None
    """What Airflow's pages call the DAG. Without it: the pipeline's name. Example: `display_name: Best orders`"""

    tags: Names = ()
    """Tags of the DAG besides `stagehold`, one or a list. Example: `tags: [sales, nightly]`"""

    owner_links: Mapping[str, str] = Field(default_factory=dict)
    """Where a click on an owner leads. Example: `owner_links: {sales-team: "https://example.com/sales"}`"""

    max_active_runs: Count | None = None
    """How many runs may go on at a time. Without it: 4; with `schedule_mode: eager` it is always 1.
    Example: `max_active_runs: 1`"""

    max_active_tasks: Count | None = None
    """How many tasks of one run may go on at a time. Without it: as Airflow is configured.
    Example: `max_active_tasks: 8`"""

    max_consecutive_failed_dag_runs: Count | None = None
    """After so many failed runs in a row the DAG is paused. Without it: as Airflow is configured.
    Example: `max_consecutive_failed_dag_runs: 3`"""

    is_paused_upon_creation: Switch | None = None
    """Whether a new DAG is paused at first. Without it: as Airflow is configured.
    Example: `is_paused_upon_creation: false`"""

    on_run_success_callback: Names = ()
    """Functions of the project that are given Airflow's context when a run has succeeded; the DAG's own
    `on_success_callback`.
    Example: `on_run_success_callback: "jobs.alerts:tell"`"""

    on_run_failure_callback: Names = ()
    """Likewise when a run has failed. Example: `on_run_failure_callback: "jobs.alerts:tell"`"""


CALLBACKS = tuple(name for name in DagSettings.model_fields if name.endswith("_callback"))
OF_SLOTS = ("pool", "pool_slots")
OF_THE_ORDER = ("priority_weight", "weight_rule")


class Hook(StrEnum):
    """What notifiers are called for; each is a field of a pipeline file."""

    ON_FAILURE = "on_failure"
    ON_GATE_WARNING = "on_gate_warning"
    ON_RESUME = "on_resume"


class NotifierDeclaration(SpecPart):
    """A class that is imported when there is something to say, and what it is made with."""

    notifier: str
    """The class, as `module:Class`: a subclass of Airflow's `BaseNotifier`, from a provider or of your own. Needed.
    Example: `notifier: "airflow.providers.smtp.notifications.smtp:SmtpNotifier", arguments: {to: me@example.com}`"""

    arguments: Mapping[str, JsonValue] = Field(default_factory=dict)
    """What it is made with. Those that it takes for templates may use `stagehold.message` and the other facts of
    notifications.md.
    Example: `notifier: "airflow.providers.smtp.notifications.smtp:SmtpNotifier", arguments: {to: me@example.com,
    subject: "{{ stagehold.pipeline }}", html_content: "{{ stagehold.message }}"}`"""


class ScheduleForm(SpecPart):
    """What starts runs of a pipeline in Airflow. A bare word stands for `cron` alone."""

    cron: str | None = None
    """A cron expression with five fields, or `@daily` and its like. It also says which intervals there are, so that a
    backfill and stages with state know them.
    Example: `cron: "0 2 * * *"`"""

    assets: str | None = None
    """The assets whose news start a run, by names or URIs, joined by `&` (each of them has news) and `|` (one has). A
    table that another pipeline publishes is an asset of its name; the run is then for the interval that is new there.
    Beside `cron`, the times start runs, too.
    Example: `assets: "marts.orders & (marts.rates | marts.countries)"`"""

    timetable: str | None = None
    """A timetable of Airflow in place of `cron`, as `module:Class`.
    Example: `timetable: "airflow.sdk:CronDataIntervalTimetable", arguments: {expression: "@daily", timezone: UTC}`"""

    arguments: Params = Field(default_factory=dict)
    """Arguments of the timetable, by name.
    Example: `timetable: "airflow.sdk:CronDataIntervalTimetable", arguments: {expression: "@daily", timezone: UTC}`"""

    def __str__(self) -> str:
        return self.timetable or " | ".join(filter(None, (self.cron, self.assets)))


def _with_cron(given: Any) -> Any:
    if given is None or isinstance(given, Mapping | ScheduleForm):
        return given or {}
    return {"cron": given}


Schedule = Annotated[ScheduleForm, BeforeValidator(_with_cron, json_schema_input_type=ScheduleForm | str | None)]
