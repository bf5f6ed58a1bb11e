"""The pipelines that a reader may see, and those whose runs they may see, too: Airflow's rights on their DAGs
decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow.api_fastapi.app import get_auth_manager

from stagehold.airflow.answering.access import may_see_runs
from stagehold.airflow.runs.dag_runs import known_settings
from stagehold.settings import Settings
from stagehold.spec.loading.loader import load_each_pipeline
from stagehold.spec.pipeline import Pipeline

if TYPE_CHECKING:
    from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
    from sqlalchemy.orm import Session


@dataclass(frozen=True)
class VisiblePipeline:
    """A pipeline whose DAG the reader may see. Without the right to see its runs, nothing is shown that follows from
    them: no state, no lease, no size.
    """

    pipeline: Pipeline
    settings: Settings
    runs: bool

    @property
    def name(self) -> str:
        return self.pipeline.name


def visible_pipelines(user: BaseUser, session: Session) -> tuple[VisiblePipeline, ...]:
    """The pipelines by name. A file with problems is left out: Airflow reports it as an import error."""
    allowed = get_auth_manager().get_authorized_dag_ids(user=user, method="GET")
    named = {
        one.name: (one, settings)
        for settings in known_settings(allowed, session)
        for one in load_each_pipeline(settings)
        if isinstance(one, Pipeline) and one.name in allowed
    }
    with_runs = may_see_runs(named.keys(), user)
    return tuple(
        VisiblePipeline(pipeline, settings, name in with_runs) for name, (pipeline, settings) in sorted(named.items())
    )
