"""The pipeline that a call of the web API is about: the one whose place is in the address. A call that only looks may
name a DAG with several pipelines: it is shown the first, and where the others are.
"""

from __future__ import annotations

from typing import Annotated

from airflow.api_fastapi.common.db.common import SessionDep
from fastapi import Depends, Request

from stagehold.airflow.answering.api_server import answering
from stagehold.airflow.context.dag_places import DagPlace
from stagehold.airflow.runs.dag_runs import placed_pipeline
from stagehold.airflow.runs.declared_dags import PlacedPipeline


def _asked(dag_id: str, session: SessionDep, request: Request) -> PlacedPipeline:
    with answering():
        return placed_pipeline(DagPlace.parse(dag_id), session, to_change=request.method != "GET")


PlacedDep = Annotated[PlacedPipeline, Depends(_asked)]
