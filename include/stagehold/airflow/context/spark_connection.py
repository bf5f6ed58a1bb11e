"""The master that Airflow's connection `spark_default` names, as the operators of its Spark provider go by it."""

from __future__ import annotations

from dataclasses import replace

from stagehold.settings import Settings
from stagehold.spec.pipeline import Pipeline
from stagehold.spec.settings.launch_settings import Launcher

SPARK_DEFAULT = "spark_default"


def with_master(settings: Settings, pipeline: Pipeline) -> Settings:
    """The settings with the connection's master, for a pipeline that submits, where no setting names one."""
    if pipeline.launcher is not Launcher.SUBMIT or settings.spark_master:
        return settings
    return replace(settings, spark_master=_master_of_connection())


def _master_of_connection() -> str:
    """``spark://HOST:PORT``, ``yarn``, ``k8s://...``, ``local[*]``; empty if there is no such connection."""
    from airflow.sdk import Connection
    from airflow.sdk.exceptions import AirflowNotFoundException

    try:
        known = Connection.get(SPARK_DEFAULT)
    except AirflowNotFoundException:
        return ""
    host, port = known.host or "", f":{known.port}" if known.port else ""
    return f"spark://{host}{port}" if port and "://" not in host else f"{host}{port}"
