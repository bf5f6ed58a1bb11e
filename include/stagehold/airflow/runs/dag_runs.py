"""Reads what Stagehold needs of Airflow's own record of a run. Only for the api-server: tasks may not read it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow.models.dag import DagTag
from airflow.models.dag_version import DagVersion
from airflow.models.dagrun import DagRun
from airflow.models.serialized_dag import SerializedDagModel
from sqlalchemy import func, select, tuple_

from stagehold.airflow.context.restore_requests import INTERVAL, AskedRestore, known_restore, order_asked
from stagehold.airflow.context.run_names import ledger_run_id
from stagehold.airflow.dag.region_operator import (
    TAG,
    RegionOperator,
    pipeline_named,
    pipeline_params,
    project_named,
    run_interval,
    shares_named,
)
from stagehold.airflow.runs.task_clearing import UNMAPPED, DagTask
from stagehold.errors.request_errors import ForeignDag, UnknownName
from stagehold.ledger.ledger import Ledger
from stagehold.model.kept import Shelf
from stagehold.model.partition_set import Share
from stagehold.run.planning.planning import RunRequest
from stagehold.run.planning.restoring import asked_again
from stagehold.settings import Settings, load_settings
from stagehold.spec.loading.loader import find_pipeline
from stagehold.spec.pipeline import Pipeline

NEWEST_RUNS = 3  # runs that an error names if the run that was asked for does not exist

if TYPE_CHECKING:
    from airflow.models.taskinstance import TaskInstance
    from sqlalchemy.orm import Session


@dataclass(frozen=True)
class StageholdDagRun:
    """An Airflow run of a DAG that has region tasks, and the run that it is for Stagehold.

    ``reference`` is what its user wrote for the checkpoint or savepoint that it begins with.
    """

    dag_id: str
    run_id: str
    state: str
    tasks: tuple[DagTask, ...]
    request: RunRequest
    reference: str | None = None


def read_dag_run(dag_id: str, run_id: str, session: Session, settings: Settings, ledger: Ledger) -> StageholdDagRun:
    """Find the run, its region tasks and what it was asked to do.

    The regions are those of the newest DAG: a run that is cleared executes that one, too.

    :raises UnknownName: there is no such run, or its pipeline has no file any more.
    :raises ForeignDag: the DAG has no region tasks.
    """
    dag_run = session.scalar(select(DagRun).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id))
    if dag_run is None:
        raise UnknownName("run", f"{dag_id}/{run_id}", _newest_runs(dag_id, session))
    dag = declared_dag(dag_id, session)
    given: Mapping[str, Any] = {**dag.params, **(dag_run.conf or {})}
    asked = AskedRestore.of(given)
    instances = dag_run.get_task_instances(session=session)
    pipeline = find_pipeline(dag.pipeline, settings)
    interval = run_interval(dag_run, given.get(INTERVAL), pipeline.schedule)
    order = order_asked(asked, pipeline.name, interval, ledger) if asked else None
    began = known_restore(dag_run, asked, ledger, order) if asked else None
    return StageholdDagRun(
        dag_id=dag_id,
        run_id=run_id,
        state=str(dag_run.state),
        tasks=tuple(one for task_id in dag.tasks for one in _tasks(task_id, dag.regions.get(task_id), instances)),
        request=RunRequest(
            pipeline=pipeline,
            run_id=ledger_run_id(dag_run.dag_id, dag_run.run_id),
            interval=interval,
            params=pipeline_params(pipeline, given),
            restore=asked_again(ledger_run_id(dag_run.dag_id, dag_run.run_id), began, ledger),
        ),
        reference=asked.reference if asked else None,
    )


def _newest_runs(dag_id: str, session: Session) -> Sequence[str]:
    of_dag = select(DagRun.run_id).where(DagRun.dag_id == dag_id).order_by(DagRun.run_after.desc(), DagRun.id.desc())
    return [f"{dag_id}/{run_id}" for run_id in session.scalars(of_dag.limit(NEWEST_RUNS))]


def pipeline_of(dag_id: str, session: Session, settings: Settings) -> Pipeline:
    """The pipeline that a DAG runs.

    :raises UnknownName: the pipeline has no file any more.
    :raises ForeignDag: the DAG has no region tasks.
    """
    return find_pipeline(declared_dag(dag_id, session).pipeline, settings)


def dag_settings(dag_id: str, session: Session) -> Settings:
    """The settings of a DAG's project.

    :raises ForeignDag: the DAG has no region tasks.
    """
    return load_settings(project=declared_dag(dag_id, session).project)


def known_settings(dag_ids: Collection[str], session: Session) -> Collection[Settings]:
    """The settings of each project that one of these DAGs belongs to, and of Airflow's processes themselves."""
    ours = session.scalars(select(DagTag.dag_id).where(DagTag.name == TAG)).all()
    declared = _declared_dags({*ours} & {*dag_ids}, session)
    # The DAG that cleans up has the tag as well.
    projects = dict.fromkeys(one.project for _, one in sorted(declared.items()) if one.regions)
    return tuple(dict.fromkeys([load_settings(), *(load_settings(project=one) for one in projects)]))


@dataclass(frozen=True)
class DeclaredDag:
    """The facts of a serialized DAG: its tasks, the defaults of its form, and its regions, by ids of their tasks."""

    tasks: tuple[str, ...]
    params: Mapping[str, Any]
    regions: Mapping[str, DeclaredRegion]

    @property
    def pipeline(self) -> str:
        return next(iter(self.regions.values())).pipeline

    @property
    def project(self) -> str:
        return next(iter(self.regions.values())).project


_DECLARED = Shelf[DeclaredDag]("DAGs")


def declared_dag(dag_id: str, session: Session) -> DeclaredDag:
    """The newest DAG of that name.

    :raises ForeignDag: the DAG has no region tasks.
    """
    found = _declared_dags([dag_id], session).get(dag_id)
    if found is None or not found.regions:
        raise ForeignDag(dag_id)
    return found


def _declared_dags(dag_ids: Collection[str], session: Session) -> Mapping[str, DeclaredDag]:
    """The facts of the newest DAGs, by id. A serialized DAG is read once, as long as it stays the same."""
    newest = _newest_hashes(dag_ids, session)
    found = {dag_id: _DECLARED.get((dag_id, newest[dag_id])) for dag_id in newest}
    unread = [dag_id for dag_id, kept in found.items() if kept is None]
    for row in SerializedDagModel.get_latest_serialized_dags(dag_ids=unread, session=session) if unread else ():
        declared = _declared(row)
        _DECLARED.put((row.dag_id, row.dag_hash), declared)
        found[row.dag_id] = declared
    return {dag_id: one for dag_id, one in found.items() if one is not None}


def _newest_hashes(dag_ids: Collection[str], session: Session) -> Mapping[str, str]:
    numbers = select(DagVersion.dag_id, func.max(DagVersion.version_number))
    numbers = numbers.join(SerializedDagModel, SerializedDagModel.dag_version_id == DagVersion.id)
    numbers = numbers.where(DagVersion.dag_id.in_(dag_ids)).group_by(DagVersion.dag_id)
    hashes = select(SerializedDagModel.dag_id, SerializedDagModel.dag_hash)
    hashes = hashes.join(DagVersion, SerializedDagModel.dag_version_id == DagVersion.id)
    newest = hashes.where(tuple_(DagVersion.dag_id, DagVersion.version_number).in_(numbers))
    return {dag_id: found for dag_id, found in session.execute(newest)}


def _declared(row: SerializedDagModel) -> DeclaredDag:
    dag = row.dag
    regions = {one.task_id: declared_region(one) for one in dag.tasks if one.task_type == RegionOperator.__name__}
    return DeclaredDag(tuple(one.task_id for one in dag.tasks), dag.params.dump(), regions)


@dataclass(frozen=True)
class DeclaredRegion:
    """The facts that the serialized DAG has of a region's task; for a mapped task its ``shares``, too, in the order of
    the map indexes.
    """

    pipeline: str
    region: str
    project: str
    shares: tuple[Share | None, ...] = ()


def declared_region(task: Any) -> DeclaredRegion:
    """The region of a task. Airflow stores the operator's fields with the serialized DAG; for a mapped task, its
    arguments.
    """
    region = task.partial_kwargs["region"] if task.is_mapped else task.region_name
    shares = tuple(map(Share.parse, shares_named(task)))
    return DeclaredRegion(pipeline_named(task), region, project_named(task), shares)


def _tasks(task_id: str, declared: DeclaredRegion | None, instances: Sequence[TaskInstance]) -> Iterator[DagTask]:
    """The states of the task's instances in this run; for a mapped task one instance for each share, whether it exists
    yet or not.
    """
    states = {instance.map_index: _word(instance.state) for instance in instances if instance.task_id == task_id}
    if declared is None:
        yield from (
            DagTask(task_id, None, state, index) for index, state in sorted(states.items()) or [(UNMAPPED, None)]
        )
    elif not declared.shares:
        yield DagTask(task_id, declared.region, states.get(UNMAPPED))
    else:
        for index, share in enumerate(declared.shares):
            place = index if index in states else UNMAPPED
            yield DagTask(task_id, declared.region, states.get(place), place, share)


def _word(state: object) -> str | None:
    return None if state is None else str(state)
