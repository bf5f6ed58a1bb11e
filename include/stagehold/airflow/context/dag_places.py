"""The place of a pipeline in Airflow: what the ledger's ids of its runs, its leases, its pages and the API name it by.

All that is made from a place, and all that finds one, is here. Commands use it, so it imports no Airflow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

OF_SEVERAL = "~"  # which Airflow allows in the id of no DAG
REGION_TASK = "RegionOperator"  # what Airflow calls the type of a region's task


class DagPlace(NamedTuple):
    """A DAG, and which of its pipelines if it has several: as text ``DAG`` or ``DAG~PIPELINE``."""

    dag_id: str
    pipeline: str | None = None

    @staticmethod
    def parse(text: str) -> DagPlace:
        dag_id, _, pipeline = text.partition(OF_SEVERAL)
        return DagPlace(dag_id, pipeline or None)

    @staticmethod
    def of_run(ledger_id: str) -> tuple[DagPlace, str]:
        """The place and Airflow's id of a run that the ledger knows by this id: the inverse of `run`."""
        place, _, run_id = ledger_id.partition("/")
        return DagPlace.parse(place), run_id

    def run(self, run_id: str) -> str:
        """The ledger's id of an Airflow run. Airflow's ids repeat across DAGs (two daily DAGs share every scheduled
        one), and a run of a DAG with several pipelines is a run of each; the ledger's ids must not repeat.
        """
        return f"{self}/{run_id}"

    def __str__(self) -> str:
        return self.dag_id if self.pipeline is None else f"{self.dag_id}{OF_SEVERAL}{self.pipeline}"


def places_of(dag_id: str, pipelines: Iterable[str]) -> Mapping[str, DagPlace]:
    """The places of the pipelines of a DAG, by their names."""
    names = tuple(dict.fromkeys(pipelines))
    return {name: DagPlace(dag_id, name if len(names) > 1 else None) for name in names}


def places_in(dag: Any) -> Mapping[str, DagPlace]:
    """The places of the pipelines that a DAG has tasks of, as it was loaded from its file or serialized."""
    return places_of(dag.dag_id, map(pipeline_named, region_tasks_of(dag)))


def region_tasks_of(dag: Any) -> Iterator[Any]:
    yield from (task for task in dag.tasks if task.task_type == REGION_TASK)


def project_named(task: Any) -> str:
    """The project that a serialized task names, also a mapped one."""
    return str(task.partial_kwargs["project"] if task.is_mapped else task.project)


def shares_named(task: Any) -> Sequence[str]:
    """The shares of the instances of a serialized task that is mapped, or in a mapped group, by map index."""
    if task.is_mapped:
        return tuple(task.expand_input.value["share"])
    return tuple(getattr(task, "shares", ()))  # which DAGs lack that 0.5 stored


def region_named(task: Any) -> str:
    """The region of a serialized task, also of a mapped one."""
    return str(task.partial_kwargs["region"] if task.is_mapped else task.region_name)


def pipeline_named(task: Any) -> str:
    """The pipeline of a task, serialized or not, also of a mapped one."""
    return str(task.partial_kwargs["pipeline"] if task.is_mapped else task.pipeline_name)
