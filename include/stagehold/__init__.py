"""Batch pipelines of PySpark stages that go on from the last consumable partition."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from stagehold.model.context import StageCheckpoint, StageContext, stage

if TYPE_CHECKING:
    from airflow.sdk import DAG

__all__ = ["StageCheckpoint", "StageContext", "dags", "stage"]


def dags(path: str | Path) -> Mapping[str, DAG]:
    """The DAGs of a project's pipelines, for a file in Airflow's DAGs folder. One line is enough:

        import stagehold  # makes Airflow DAGs

        stagehold.dags("..")

    Airflow finds them by itself; they are also returned, by name. It reads only files in which the words "airflow" and
    "dag" stand somewhere, in a comment too.

    :param path: of the project, or of the folder of its pipeline files; seen from the calling file's folder.
    """
    from stagehold.airflow.dag.project_dags import project_dags

    caller = Path(inspect.stack(0)[1].filename).parent
    return project_dags((caller / path).resolve())
