"""Turns a pipeline into an Airflow DAG: one task per region, mapped where it is split,
edges where a region reads another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.configuration import conf
from airflow.sdk import DAG, Param, task_group
from airflow.sdk.definitions._internal.contextmanager import TaskGroupContext

from stagehold.airflow.context.restore_requests import ALLOW_NON_RESTORED, INTERVAL, RESTORE, RESTORE_FROM_STAGE
from stagehold.airflow.context.task_retries import retry_arguments
from stagehold.airflow.dag.dag_pages import PipelineDag, dag_documentation, task_documentation, write_code_page
from stagehold.airflow.dag.dag_schedule import dag_schedule, wait_for_the_next_time
from stagehold.airflow.dag.region_operator import TAG, RegionOperator
from stagehold.airflow.telling.ends import failure_callback
from stagehold.airflow.telling.outlets import outlets_of
from stagehold.checkpoints.restore_sources import LATEST, LATEST_OR_NONE
from stagehold.errors.base import StageholdError
from stagehold.errors.service_errors import ToolMissing
from stagehold.gates.suite import check_scope
from stagehold.gates.suite_files import suite_of
from stagehold.model.keys.interval_key import ALLOWED, LONGEST, form_of_keys
from stagehold.plan.split.regions import Region, stage_regions
from stagehold.plan.split.shares import region_shares
from stagehold.plan.split.task_graph import share_chains
from stagehold.plan.split.task_slots import NO_LIMIT, task_slots
from stagehold.settings import PROJECT, SPARK_POOL, Settings
from stagehold.spec.loading.executor_checks import POD, knows_pods, pod_of
from stagehold.spec.loading.loader import load_each_pipeline
from stagehold.spec.pipeline import Pipeline
from stagehold.spec.settings.airflow_settings import CALLBACKS, DagSettings, TaskSettings
from stagehold.spec.settings.run_settings import ScheduleMode
from stagehold.spec.suites import is_of_python

if TYPE_CHECKING:
    from airflow.sdk.definitions.mappedoperator import MappedOperator

# More than one, so that a resumed run need not wait behind tonight's; few, because they share one Spark server. Of an
# eager pipeline only one: tasks that wait keep their slots, and another run's could keep those that they wait for.
MAX_ACTIVE_RUNS = 4
NO_STAGE = "No stage: only what is not consumable runs"  # in place of Airflow's text for no choice
IN_A_BACKFILL = (
    "In a backfill, also tick “Override parameters on existing runs”: else Airflow passes nothing of this form on."
)
JSON_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


@dataclass(frozen=True)
class CompiledFolder:
    """The DAGs of the good files in a folder of pipeline files, and the problem of each bad file."""

    dags: tuple[DAG, ...]
    problems: tuple[StageholdError, ...]


def compile_folder(settings: Settings, place: str = "") -> CompiledFolder:
    """Compile every YAML file of the pipelines folder. A bad file never stops a good one.

    :param place: the project, if the environment of Airflow's processes does not name it.
    """
    results = [
        _compiled(loaded, settings, place) if isinstance(loaded, Pipeline) else loaded
        for loaded in load_each_pipeline(settings)
    ]
    return CompiledFolder(
        dags=tuple(result for result in results if isinstance(result, DAG)),
        problems=tuple(result for result in results if isinstance(result, StageholdError)),
    )


def compile_pipeline(
    pipeline: Pipeline,
    slots: int = 0,
    *,
    project: str = str(PROJECT),
    place: str = "",
) -> PipelineDag:
    """The DAG of ``pipeline``. The DAG id is the pipeline's name, and the task ids are the names of its regions.

    :param slots: slots of the Spark server's pool, which must exist; 0 for no pool.
    :param project: the folder that functions are imported from.
    :param place: as of `compile_folder`.
    :raises ScheduleRefused: the schedule mode cannot run the pipeline with so many slots.
    """
    own = dag_arguments(pipeline, project)
    told = [failure_callback(pipeline, place), *own.pop("on_failure_callback", ())]
    most_runs = 1 if pipeline.schedule_mode is ScheduleMode.EAGER else MAX_ACTIVE_RUNS
    dag = PipelineDag(
        dag_id=pipeline.name,
        schedule=dag_schedule(pipeline, project),
        # No start date: with one, switching the DAG on would at once start a run for the schedule's last time.
        catchup=False,
        dagrun_timeout=pipeline.run_timeout,
        tags=[TAG, *pipeline.airflow.tags],
        params=run_params(pipeline),
        default_args=retry_arguments(pipeline),
        doc_md=dag_documentation(pipeline),
        on_failure_callback=[one for one in told if one is not None] or None,
        **{"max_active_runs": most_runs, **own},
    )
    wait_for_the_next_time(dag)
    region_tasks(pipeline, dag, slots, project=project, place=place)
    return dag


def region_tasks(
    pipeline: Pipeline,
    dag: DAG,
    slots: int,
    *,
    project: str,
    place: str,
    wanted: Collection[str] | None = None,
    before: Mapping[str, RegionOperator | MappedOperator] | None = None,
) -> Mapping[str, RegionOperator | MappedOperator]:
    """The tasks of a pipeline's regions in ``dag``, by region, with the edges between them.

    :param wanted: the regions; all by default.
    :param before: tasks of regions that are there already.
    """
    tasks, options = dict(before or {}), _task_options(pipeline, slots)
    new = [region.name for region in options if wanted is None or region.name in wanted]
    lone = tuple((region,) for region in options if region.name in new)
    chains = lone if pipeline.schedule_mode is ScheduleMode.EAGER else share_chains(pipeline, new)
    for chain in chains:
        arguments = {
            region.name: {
                **options[region],
                "depends_on_past": _goes_on(pipeline, region),
                "doc_md": task_documentation(pipeline, region, Path(project)),
                "project": place,
                **task_arguments(pipeline, region, project),
            }
            for region in chain
        }
        tasks |= _chain_tasks(pipeline, chain, dag, arguments)
    for upstream, downstream in _edges(pipeline):
        if upstream in tasks and downstream in tasks and {upstream, downstream} - (before or {}).keys():
            tasks[upstream] >> tasks[downstream]
    return tasks


def _chain_tasks(
    pipeline: Pipeline, chain: Sequence[Region], dag: DAG, arguments: Mapping[str, Mapping[str, Any]]
) -> Mapping[str, RegionOperator | MappedOperator]:
    """The tasks of regions that are read share by share: in a task group that is mapped over the shares, as there
    Airflow starts a task's instance when the same instance of the one before it is done, and not all of them.
    """
    if len(chain) == 1:
        (region,) = chain
        return {region.name: region_task(pipeline, region, dag, arguments[region.name])}
    outer = TaskGroupContext.get_current(dag) or dag.task_group
    shares, tasks = [str(share) for share in region_shares(pipeline, chain[0])], dict[str, Any]()

    def shared(share: str) -> None:  # noqa: ARG001 - each instance finds its share by its place
        for region in chain:
            tasks[region.name] = RegionOperator(
                task_id=outer.child_id(region.name),  # type: ignore[no-untyped-call]
                dag=dag,
                pipeline=pipeline,
                region=region.name,
                shares=shares,
                map_index_template=_map_index_template(region),
                **arguments[region.name],
            )

    # Its name is no part of those of its tasks, and a hyphen is in the name of no region.
    name = f"{chain[0].name}-to-{chain[-1].name}"
    task_group(group_id=name, prefix_group_id=False, parent_group=outer, dag=dag)(shared).expand(share=shares)
    return tasks


def region_task(
    pipeline: Pipeline, region: Region, dag: DAG, options: Mapping[str, Any]
) -> RegionOperator | MappedOperator:
    """The task of a region; for a split region, a task that is mapped over the shares. Their number follows from the
    file alone.
    """
    arguments = {"task_id": region.name, "dag": dag, "pipeline": pipeline, "region": region.name, **options}
    arguments["outlets"] = outlets_of(pipeline, region)  # Airflow reads those of a mapped task here
    shares = [str(share) for share in region_shares(pipeline, region) if share is not None]
    if not shares:
        return RegionOperator(**arguments)
    return RegionOperator.partial(**arguments, map_index_template=_map_index_template(region)).expand(share=shares)


def _map_index_template(region: Region) -> str:
    """How Airflow's pages call one of its tasks."""
    return f"{region.name} [{{{{ share }}}}]"


def _goes_on(pipeline: Pipeline, region: Region) -> bool:
    """Whether the region goes on with state of the run before. Airflow then starts it when that run's task has
    succeeded, and waits while a person repairs that.
    """
    return any(pipeline.stage(name).state for name in region.stages)


def _task_options(pipeline: Pipeline, slots: int) -> Mapping[Region, Mapping[str, Any]]:
    """Airflow's arguments for each region: its slots in the pool,
    and its place in the queue where no edges give it one.
    """
    regions, taken = stage_regions(pipeline), _slots_taken(pipeline, slots)
    pools = {region: {"pool": SPARK_POOL, "pool_slots": taken[region.name]} if slots else {} for region in regions}
    if pipeline.schedule_mode is not ScheduleMode.EAGER:
        return pools
    first = len(regions)
    return {
        region: {**pools[region], "priority_weight": first - place, "weight_rule": "absolute"}
        for place, region in enumerate(regions)
    }


def _slots_taken(pipeline: Pipeline, slots: int) -> Mapping[str, int]:
    """The slots that a region takes. Looks at every partition, which takes a second for 10,000 of them; so it is left
    out where nothing could be refused.
    """
    if not slots and pipeline.schedule_mode is ScheduleMode.LAZY_FROM_SOURCES:
        return {}
    return task_slots(pipeline, slots or NO_LIMIT)


def _edges(pipeline: Pipeline) -> Iterator[tuple[str, str]]:
    """Edges between tasks. An eager pipeline has none: its tasks start at once, and wait for the partitions that they
    read.
    """
    if pipeline.schedule_mode is not ScheduleMode.EAGER:
        yield from ((upstream, region.name) for region in stage_regions(pipeline) for upstream in region.upstream)


def run_params(pipeline: Pipeline) -> dict[str, Param]:
    """What the trigger and backfill forms ask: where to start again, for which interval, and the pipeline's own params.

    Nothing in them depends on past runs: they are part of the DAG, and Airflow keeps a new version of a DAG that has
    changed. The tab of the DAG shows what there is to choose from.
    """
    return {
        **_restore_params(pipeline),
        INTERVAL: _interval_param(pipeline.schedule),
        **{name: _declared_param(default) for name, default in pipeline.params.items()},
    }


def _restore_params(pipeline: Pipeline) -> dict[str, Param]:
    return {
        RESTORE_FROM_STAGE: Param(
            None,
            type=["null", "string"],
            enum=[None, *(stage.name for stage in pipeline.stages)],
            values_display={"null": NO_STAGE},
            title="Restore from stage",
            description="Compute this stage and all that reads it again, once for each time that you ask; what is "
            "before it is taken as it is. An interval that never ran is computed whole. Empty: only what is not "
            "consumable runs. " + IN_A_BACKFILL,
        ),
        RESTORE: Param(
            None,
            type=["null", "string"],
            examples=[LATEST, LATEST_OR_NONE],
            title="Restore",
            description="Begin with what a savepoint or checkpoint has, in place of what the interval has: the name of "
            "a savepoint, RUN_ID or RUN_ID#NUMBER, the address of a manifest, or `latest` for the newest of the "
            "interval that verifies (`latest_or_none` begins with nothing where there is none). The tab Stagehold "
            "intervals has their names. Not together with a stage to restore from. " + IN_A_BACKFILL,
        ),
        ALLOW_NON_RESTORED: Param(
            False,
            type="boolean",
            title="Allow non-restored state",
            description="Leave behind what the savepoint or checkpoint has and no stage of the pipeline takes.",
        ),
    }


def _interval_param(schedule: str | None) -> Param:
    return Param(
        None,
        type=["null", "string"],
        # Two, as Airflow's error is then not about the expression, and tells the comment.
        anyOf=[{"$comment": f"allowed: {ALLOWED}", "type": "null"}, {"pattern": form_of_keys(schedule)}],
        maxLength=LONGEST,
        title="Interval",
        description="Run for this interval instead of the run's own, reusing what earlier runs of it left. "
        "A date (2026-11-20), a moment (2026-11-20T02:00:00Z), or a key of your own. "
        "In a backfill leave it empty: each date is run for itself.",
    )


def _compiled(loaded: Pipeline, settings: Settings, place: str) -> DAG | StageholdError:
    try:
        for stage in loaded.stages:
            if stage.gate and not is_of_python(stage.gate):
                check_scope(suite_of(loaded, stage.gate, settings), stage, loaded)
        dag = compile_pipeline(loaded, settings.spark_slots, project=settings.project, place=place)
    except StageholdError as error:
        return error
    dag.code_page = write_code_page(loaded, settings)
    return dag


def _declared_param(default: Any) -> Param:
    kind = JSON_TYPES.get(type(default))
    return Param(default, type=kind) if kind else Param(default)


OF_THE_DAG = ("description", "owner_links", "max_active_runs", "max_active_tasks")
OF_THE_DAG_TOO = ("max_consecutive_failed_dag_runs", "is_paused_upon_creation")
OTHER_NAMES = {
    "display_name": "dag_display_name",
    "on_run_success_callback": "on_success_callback",
    "on_run_failure_callback": "on_failure_callback",
}


@dataclass(frozen=True)
class ProjectFunction:
    """A function of the project that Airflow calls. It is imported when it is called, so that a DAG file imports no
    job.
    """

    reference: str
    project: str

    def __call__(self, context: Any) -> None:
        from stagehold.spark.session.project_modules import load_function

        function: Callable[[Any], Any] = load_function(self.reference, Path(self.project))
        function(context)


def dag_arguments(pipeline: Pipeline, project: str) -> dict[str, Any]:
    """Arguments of the DAG alone; tags and all that the file does not declare are left to the caller and to Airflow."""
    said = _said(pipeline.airflow, project)
    arguments = {name: said[name] for name in (*OF_THE_DAG, *OF_THE_DAG_TOO) if name in said}
    return arguments | {theirs: said[ours] for ours, theirs in OTHER_NAMES.items() if ours in said}


def task_arguments(pipeline: Pipeline, region: Region, project: str) -> dict[str, Any]:
    """What the region's stages declare; the pipeline's declaration counts where they have none."""
    said = _said(pipeline.airflow, project)
    for name in region.stages:
        said |= _said(pipeline.stage(name).airflow, project)
    if POD in said.get("executor_config", ()):
        said["executor_config"] = _with_pod(said["executor_config"], pipeline, region)
    return {name: value for name, value in said.items() if name in TaskSettings.model_fields}


def _with_pod(said: Mapping[str, Any], pipeline: Pipeline, region: Region) -> dict[str, Any]:
    """KubernetesExecutor takes a pod as an object alone; for any other executor it has no meaning.

    :raises ToolMissing: Airflow has that executor, and nothing here can make the object.
    """
    if knows_pods():
        return {**said, POD: pod_of(said[POD])}
    if "Kubernetes" in conf.get("core", "executor"):
        raise ToolMissing(
            "kubernetes, a Python package,",
            f"hand `executor_config.{POD}` of task {region.name}, in {pipeline.file}, to Airflow's KubernetesExecutor",
            "pip install apache-airflow-providers-cncf-kubernetes",
        )
    return dict(said)


def _said(section: DagSettings | TaskSettings, project: str) -> dict[str, Any]:
    given: Mapping[str, Any] = {name: getattr(section, name) for name in section.model_fields_set}
    return {
        name: _functions(value, project) if name in CALLBACKS else value
        for name, value in given.items()
        if value is not None
    }


def _functions(references: Sequence[str], project: str) -> list[ProjectFunction]:
    return [ProjectFunction(one, project) for one in references]
