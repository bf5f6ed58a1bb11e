"""What a serialized DAG says of the pipelines in it: the place of each, its project, and its regions by their tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from stagehold.airflow.context.dag_places import (
    DagPlace,
    pipeline_named,
    places_of,
    project_named,
    region_named,
    region_tasks_of,
    shares_named,
)
from stagehold.model.partition_set import Share
from stagehold.settings import Settings, load_settings
from stagehold.spec.loading.loader import find_pipeline
from stagehold.spec.pipeline import Pipeline


@dataclass(frozen=True)
class DeclaredDag:
    """The facts of a serialized DAG: its tasks, the defaults of its form, and its regions, by ids of their tasks."""

    dag_id: str
    tasks: tuple[str, ...]
    params: Mapping[str, Any]
    regions: Mapping[str, DeclaredRegion]

    @staticmethod
    def of(dag: Any) -> DeclaredDag:
        regions = {one.task_id: declared_region(one) for one in region_tasks_of(dag)}
        return DeclaredDag(dag.dag_id, tuple(one.task_id for one in dag.tasks), dag.params.dump(), regions)

    @property
    def pipelines(self) -> Sequence[PlacedPipeline]:
        """In the order of their first tasks; none if the DAG is not ours."""
        return [self._placed(name, place) for name, place in self.places.items()]

    @cached_property
    def places(self) -> Mapping[str, DagPlace]:
        """Of its pipelines, by their names."""
        return places_of(self.dag_id, (region.pipeline for region in self.regions.values()))

    def _placed(self, name: str, place: DagPlace) -> PlacedPipeline:
        own = {task_id: region for task_id, region in self.regions.items() if region.pipeline == name}
        others = self.regions.keys() - own.keys()
        tasks = tuple(task_id for task_id in self.tasks if task_id not in others)
        return PlacedPipeline(place, name, tasks, self.params, own, self.places)


@dataclass(frozen=True)
class PlacedPipeline:
    """A pipeline of a DAG, without the tasks of the DAG's other pipelines. Tasks of no pipeline are there. ``places``
    are those of all pipelines of the DAG, by their names.
    """

    place: DagPlace
    name: str
    tasks: tuple[str, ...]
    params: Mapping[str, Any]
    regions: Mapping[str, DeclaredRegion]
    places: Mapping[str, DagPlace]

    @cached_property
    def settings(self) -> Settings:
        """Of its project."""
        return load_settings(project=next(iter(self.regions.values())).project)

    @property
    def pipeline(self) -> Pipeline:
        """:raises UnknownName: the pipeline has no file any more."""
        return find_pipeline(self.name, self.settings)


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
    shares = tuple(map(Share.parse, shares_named(task)))
    return DeclaredRegion(pipeline_named(task), region_named(task), project_named(task), shares)
