"""What `airflow providers list` and Airflow's pages say of Stagehold. Read by every process of Airflow, so nothing is
imported.
"""

from __future__ import annotations

from typing import Any


def get_provider_info() -> dict[str, Any]:
    """The shape is Airflow's."""
    from importlib.metadata import version

    return {
        "package-name": "stagehold",
        "name": "Stagehold",
        "description": "Batch pipelines of PySpark stages that go on from the last consumable partition.",
        "versions": [version("stagehold")],
    }
