"""Reads what Stagehold needs of Airflow's own record of a run. Only for the api-server: tasks may not read it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow.models.dag import DagTag
from airflow.models.dag_version import DagVersion
from airflow.models.dagrun import DagRun
from airflow.models.serialized_dag import SerializedDagModel
from sqlalchemy import func, select, tuple_

from stagehold.airflow.context.dag_places import DagPlace
from stagehold.airflow.context.restore_requests import INTERVAL, AskedRestore, known_restore, order_asked
from stagehold.airflow.dag.region_operator import TAG, pipeline_params, run_interval
from stagehold.airflow.runs.declared_dags import DeclaredDag, DeclaredRegion, PlacedPipeline
from stagehold.airflow.runs.task_clearing import UNMAPPED, DagTask
from stagehold.errors.request_errors import ForeignDag, SeveralPipelines, UnknownName
from stagehold.ledger.ledger import Ledger
from stagehold.model.kept import Shelf
from stagehold.run.planning.planning import RunRequest
from stagehold.run.planning.restoring import asked_again

NEWEST_RUNS = 3  # runs that an error names if the run that was asked for does not exist

if TYPE_CHECKING:
    from airflow.models.taskinstance import TaskInstance
    from sqlalchemy.orm import Session


@dataclass(frozen=True)
class StageholdDagRun:
    """An Airflow run of a DAG that has region tasks, and the run that it is for Stagehold.

    ``reference`` is what its user wrote for the checkpoint or savepoint that it begins with. ``places`` are those of
    all pipelines of its DAG.
    """

    place: DagPlace
    run_id: str
    state: str
    tasks: tuple[DagTask, ...]
    request: RunRequest
    reference: str | None = None
    places: Mapping[str, DagPlace] = field(default_factory=dict)


def read_dag_run(dag: PlacedPipeline, run_id: str, session: Session, ledger: Ledger) -> StageholdDagRun:
    """Find the run, the pipeline's region tasks and what it was asked to do.

    The regions are those of the newest DAG: a run that is cleared executes that one, too.

    :raises UnknownName: there is no such run, or its pipeline has no file any more.
    """
    place = dag.place
    dag_run = session.scalar(select(DagRun).where(DagRun.dag_id == place.dag_id, DagRun.run_id == run_id))
    if dag_run is None:
        raise UnknownName("run", place.run(run_id), _newest_runs(place, session))
    given: Mapping[str, Any] = {**dag.params, **(dag_run.conf or {})}
    asked = AskedRestore.of(given, dag.name)
    instances = dag_run.get_task_instances(session=session)
    pipeline, own = dag.pipeline, place.run(dag_run.run_id)
    interval = run_interval(dag_run, given.get(INTERVAL), pipeline.schedule)
    order = order_asked(asked, pipeline.name, interval, ledger) if asked else None
    began = known_restore(place, dag_run, asked, ledger, order) if asked else None
    return StageholdDagRun(
        place=place,
        run_id=run_id,
        state=str(dag_run.state),
        tasks=tuple(one for task_id in dag.tasks for one in _tasks(task_id, dag.regions.get(task_id), instances)),
        request=RunRequest(
            pipeline=pipeline,
            run_id=own,
            interval=interval,
            params=pipeline_params(pipeline, given),
            restore=asked_again(own, began, ledger),
        ),
        reference=asked.reference if asked else None,
        places=dag.places,
    )


def _newest_runs(place: DagPlace, session: Session) -> Sequence[str]:
    of_dag = select(DagRun.run_id).where(DagRun.dag_id == place.dag_id)
    newest = of_dag.order_by(DagRun.run_after.desc(), DagRun.id.desc()).limit(NEWEST_RUNS)
    return [place.run(run_id) for run_id in session.scalars(newest)]


def placed_pipelines(dag_ids: Collection[str], session: Session) -> Sequence[PlacedPipeline]:
    """The pipelines of those of these DAGs that are ours, by the names of the DAGs."""
    ours = session.scalars(select(DagTag.dag_id).where(DagTag.name == TAG)).all()
    declared = _declared_dags({*ours} & {*dag_ids}, session)
    return [one for _, dag in sorted(declared.items()) for one in dag.pipelines]


_DECLARED = Shelf[DeclaredDag]("DAGs")


def placed_pipeline(asked: DagPlace, session: Session, *, to_change: bool = False) -> PlacedPipeline:
    """The pipeline of the newest DAG of that name. If the DAG has several and none is named, it is the first.

    :param to_change: something of it, so that it has to be named.
    :raises ForeignDag: the DAG has no region tasks.
    :raises UnknownName: it has none of that pipeline.
    :raises SeveralPipelines: none is named.
    """
    found = _declared_dags([asked.dag_id], session).get(asked.dag_id)
    if found is None or not found.regions:
        raise ForeignDag(asked.dag_id)
    if to_change and asked.pipeline is None and len(found.places) > 1:
        raise SeveralPipelines(asked.dag_id, [str(place) for place in found.places.values()])
    known = {one.name: one for one in found.pipelines}
    name = asked.pipeline or next(iter(known))
    if name not in known:
        raise UnknownName(f"pipeline in the DAG {asked.dag_id}", name, tuple(known))
    return known[name]


def _declared_dags(dag_ids: Collection[str], session: Session) -> Mapping[str, DeclaredDag]:
    """The facts of the newest DAGs, by id. A serialized DAG is read once, as long as it stays the same."""
    newest = _newest_hashes(dag_ids, session)
    found = {dag_id: _DECLARED.get((dag_id, newest[dag_id])) for dag_id in newest}
    unread = [dag_id for dag_id, kept in found.items() if kept is None]
    for row in SerializedDagModel.get_latest_serialized_dags(dag_ids=unread, session=session) if unread else ():
        declared = DeclaredDag.of(row.dag)
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
