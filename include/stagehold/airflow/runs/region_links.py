"""Links below a region's task on Airflow's pages. The api-server makes them, so they work while the task runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseOperatorLink
from sqlalchemy import select

from stagehold.airflow.answering.api_server import server_ledger
from stagehold.airflow.context.dag_places import DagPlace, pipeline_named, places_in, project_named
from stagehold.airflow.context.run_names import run_tab
from stagehold.airflow.dag.region_operator import RegionOperator
from stagehold.airflow.runs.declared_dags import declared_region
from stagehold.model.records import Attempt
from stagehold.plan.split.regions import stage_regions
from stagehold.settings import load_settings
from stagehold.spark.session.sessions import session_id
from stagehold.spec.loading.loader import find_pipeline

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


class _RegionLink(BaseOperatorLink):
    operators: ClassVar[list[type[BaseOperator]]] = [RegionOperator]


class StageholdLink(_RegionLink):
    """The link to the run's Stagehold tab."""

    name = "Stagehold"

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:
        return run_tab(_place(operator, ti_key), ti_key.run_id)


class SparkLink(_RegionLink):
    """The link to the task's newest Spark session, if the address of Spark's pages is known: `STAGEHOLD_SPARK_UI`."""

    name = "Spark UI"

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:
        settings = load_settings(project=project_named(operator))
        began = [one for one in _attempts(operator, ti_key) if one.began] if settings.spark_ui else []
        if not began:
            return ""
        session = session_id(settings, max(began, key=lambda one: one.epoch).attempt_id)
        return f"{settings.spark_ui.rstrip('/')}/connect/session/?id={session}"


class TableLink(_RegionLink):
    """The link to the table that the task publishes, as an asset of Airflow, once a task has written to it."""

    name = "Table"

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002
        from airflow.models.asset import AssetModel
        from airflow.sdk.configuration import conf
        from airflow.utils.session import create_session

        tables = tuple(_tables(operator))
        with create_session(scoped=False) as session:
            found = session.scalar(select(AssetModel.id).where(AssetModel.name.in_(tables)).order_by(AssetModel.id))
        base = conf.get("api", "base_url", fallback="").rstrip("/")
        return "" if found is None else f"{base}/assets/{found}"


REGION_LINKS: tuple[BaseOperatorLink, ...] = (StageholdLink(), SparkLink(), TableLink())


def _place(operator: Any, ti_key: TaskInstanceKey) -> DagPlace:
    return places_in(operator.dag).get(pipeline_named(operator), DagPlace(ti_key.dag_id))


def _attempts(operator: Any, ti_key: TaskInstanceKey) -> list[Attempt]:
    """The attempts of the task, or of one instance of a mapped task."""
    declared = declared_region(operator)
    share = declared.shares[ti_key.map_index] if declared.shares else None
    run_id = _place(operator, ti_key).run(ti_key.run_id)
    return [
        one
        for one in server_ledger(load_settings(project=declared.project)).attempts.of_run(run_id)
        if one.region == declared.region and one.share == (None if share is None else str(share))
    ]


def _tables(operator: Any) -> Iterator[str]:
    declared = declared_region(operator)
    pipeline = find_pipeline(declared.pipeline, load_settings(project=declared.project))
    stages = next((region.stages for region in stage_regions(pipeline) if region.name == declared.region), ())
    yield from filter(None, (pipeline.stage(name).output.table for name in stages))
