"""Where a task of Airflow finds secrets: where every process looks, and then wherever Airflow keeps them, which may be
one of its secrets back ends. Airflow keeps the values out of its logs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from stagehold.secrets import SecretPlace, usual_places
from stagehold.settings import Settings


def airflow_places(settings: Settings) -> tuple[SecretPlace, ...]:
    return (
        *((described, _told_to_airflow(read)) for described, read in usual_places(settings)),
        (lambda name: f"the password of Airflow's connection {name}", _told_to_airflow(_connection_password)),
        (lambda name: f"Airflow's variable {name}", _told_to_airflow(_variable)),
    )


def _told_to_airflow(read: Callable[[str], str | None]) -> Callable[[str], str | None]:
    def told(name: str) -> str | None:
        from airflow.sdk.log import mask_secret

        value = read(name)
        if value is not None:
            mask_secret(value)
        return value

    return told


def _connection_password(name: str) -> str | None:
    from airflow.sdk import Connection
    from airflow.sdk.exceptions import AirflowNotFoundException

    try:
        return cast("str | None", Connection.get(name).password or None)
    except AirflowNotFoundException:
        return None


def _variable(name: str) -> str | None:
    from airflow.sdk import Variable

    return cast("str | None", Variable.get(name, default=None))
