"""The plugin for an Airflow that runs this source tree. Where the entry point is installed as well, Airflow takes one."""

from __future__ import annotations

from stagehold.airflow.plugin import StageholdPlugin

__all__ = ["StageholdPlugin"]
