"""The plugin for an Airflow that runs this source tree without having it installed. Where the package's entry point is,
this holds nothing: Airflow would report that it finds the plugin twice.
"""

from __future__ import annotations

from importlib.metadata import entry_points

if not entry_points(group="airflow.plugins", name="stagehold"):
    from stagehold.airflow.plugin import StageholdPlugin

    __all__ = ["StageholdPlugin"]
