"""Who may call the web API: Airflow's own rights on every route, and no changes on behalf of another site."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from airflow.configuration import conf
from airflow.models.dag import DagModel
from fastapi import Depends, HTTPException, Request, status

from stagehold.airflow.context.dag_places import DagPlace

if TYPE_CHECKING:
    from airflow.api_fastapi.auth.managers.base_auth_manager import ResourceMethod
    from airflow.api_fastapi.auth.managers.models.base_user import BaseUser

JSON = "application/json"


def _with_right(method: ResourceMethod, entity: DagAccessEntity) -> Any:
    """Airflow's right on the DAG of the place in the address, whichever of its pipelines that names."""

    def check(request: Request, user: GetUserDep) -> None:
        place = DagPlace.parse(request.path_params["dag_id"])
        requires_access_dag(method, entity, place.dag_id)(request, user)

    return Depends(check)


# A mounted app inherits no authentication from Airflow, so each route names one of these.
MAY_SEE_PIPELINES = Depends(requires_access_dag("GET"))
MAY_SEE_RUN = _with_right("GET", DagAccessEntity.TASK_INSTANCE)
MAY_BACKFILL = _with_right("POST", DagAccessEntity.RUN)  # what Airflow's own route asks for
MAY_RESUME = _with_right("PUT", DagAccessEntity.TASK_INSTANCE)
MAY_STOP = _with_right("PUT", DagAccessEntity.RUN)  # what Airflow asks of who marks a run as failed


def may_resume(place: DagPlace, user: BaseUser) -> bool:
    """Whether MAY_RESUME would let the user, for a page that shows the button before it is pressed."""
    return _may("PUT", DagAccessEntity.TASK_INSTANCE, _details(place), user)


def may_stop(place: DagPlace, user: BaseUser) -> bool:
    """The answer MAY_STOP would give, likewise."""
    return _may("PUT", DagAccessEntity.RUN, _details(place), user)


def may_see_runs(dag_ids: Collection[str], user: BaseUser) -> frozenset[str]:
    """The DAGs whose runs MAY_SEE_RUN would let the user see, for a page that shows many."""
    teams = DagModel.get_dag_id_to_team_name_mapping([*dag_ids])
    return frozenset(
        dag_id
        for dag_id in dag_ids
        if _may("GET", DagAccessEntity.TASK_INSTANCE, DagDetails(id=dag_id, team_name=teams.get(dag_id)), user)
    )


def may_trigger(place: DagPlace, user: BaseUser) -> bool:
    """Whether Airflow's own routes that start a run or a backfill would let the user: the answer of MAY_BACKFILL."""
    return _may("POST", DagAccessEntity.RUN, _details(place), user)


def same_origin_json(request: Request) -> None:
    """Refuse a change that another site's page could have sent with the user's cookie.

    Airflow has no CSRF token; its cookie is SameSite=Lax, which lets requests from sister domains through. A foreign
    page cannot send JSON without a preflight request, and browsers say truthfully where a request comes from.
    """
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != JSON:
        raise HTTPException(status.HTTP_415_UNSUPPORTED_MEDIA_TYPE, f"Send the request as {JSON}.")
    if request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none") or not _own_origin(request):
        raise HTTPException(status.HTTP_403_FORBIDDEN, "This request came from another site and was not carried out.")


SAME_ORIGIN_JSON = Depends(same_origin_json)


def _details(place: DagPlace) -> DagDetails:
    return DagDetails(id=place.dag_id, team_name=DagModel.get_team_name(place.dag_id))


def _may(method: ResourceMethod, entity: DagAccessEntity, dag: DagDetails, user: BaseUser) -> bool:
    return get_auth_manager().is_authorized_dag(method=method, access_entity=entity, details=dag, user=user)


def _own_origin(request: Request) -> bool:
    """Whether the request comes from this site. Behind a proxy the public name is the one in Airflow's base_url. A
    client that is no browser sends no Origin.
    """
    origin = request.headers.get("origin")
    if origin is None:
        return True
    own = {request.headers.get("host"), urlsplit(conf.get("api", "base_url", fallback="")).netloc}
    # A sandboxed page sends the origin "null", which has no name and must not equal an unset base_url.
    return bool(name := urlsplit(origin).netloc) and name in own
