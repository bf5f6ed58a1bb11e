"""The pipelines that a reader may see, and those whose runs they may see, too: Airflow's rights on their DAGs
decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow.api_fastapi.app import get_auth_manager

from stagehold.airflow.answering.access import may_see_runs
from stagehold.airflow.context.dag_places import DagPlace
from stagehold.airflow.runs.dag_runs import placed_pipelines
from stagehold.settings import Settings, load_settings
from stagehold.spec.loading.loader import load_each_pipeline
from stagehold.spec.pipeline import Pipeline

if TYPE_CHECKING:
    from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
    from sqlalchemy.orm import Session

    from stagehold.airflow.runs.declared_dags import PlacedPipeline


@dataclass(frozen=True)
class VisiblePipeline:
    """A pipeline whose DAG the reader may see. Without the right to see its runs, nothing is shown that follows from
    them: no state, no lease, no size. One that is in several DAGs is shown with its own, or else with the first.
    """

    pipeline: Pipeline
    settings: Settings
    place: DagPlace
    runs: bool

    @property
    def name(self) -> str:
        return self.pipeline.name


def visible_pipelines(user: BaseUser, session: Session) -> tuple[VisiblePipeline, ...]:
    """The pipelines by name. A file with problems is left out: Airflow reports it as an import error."""
    allowed = get_auth_manager().get_authorized_dag_ids(user=user, method="GET")
    placed = placed_pipelines(allowed, session)
    places, named = _places(placed), dict[str, tuple[Pipeline, Settings, DagPlace]]()
    for settings in dict.fromkeys([load_settings(), *(one.settings for one in placed)]):
        for one in load_each_pipeline(settings):
            if isinstance(one, Pipeline):
                place = places.get((settings, one.name), DagPlace(one.name))
                named |= {one.name: (one, settings, place)} if place.dag_id in allowed else {}
    with_runs = may_see_runs({place.dag_id for *_, place in named.values()}, user)
    return tuple(
        VisiblePipeline(pipeline, settings, place, place.dag_id in with_runs)
        for _, (pipeline, settings, place) in sorted(named.items())
    )


def _places(placed: Iterable[PlacedPipeline]) -> Mapping[tuple[Settings, str], DagPlace]:
    """By project and pipeline."""
    found: dict[tuple[Settings, str], DagPlace] = {}
    for one in placed:
        if one.place.dag_id == one.name or (one.settings, one.name) not in found:
            found[one.settings, one.name] = one.place
    return found
