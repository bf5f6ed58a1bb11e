"""Run by the Python of an environment with Airflow's provider for Kubernetes: prints the pod of each task, as JSON."""

from __future__ import annotations

import json
import pickle
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
from airflow.models.serialized_dag import SerializedDagModel
from airflow.models.taskinstance import TaskInstance
from airflow.providers.cncf.kubernetes.pod_generator import PodGenerator
from airflow.utils.db import initdb
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState
from airflow.utils.types import DagRunTriggeredByType, DagRunType
from kubernetes.client import ApiClient, V1Container, V1ObjectMeta, V1Pod, V1PodSpec, V1ResourceRequirements
from sqlalchemy import select

DUE = datetime(2026, 11, 20, 2, tzinfo=UTC)


def made(dags: Path) -> dict[str, Any]:
    """What the scheduler finds in its database of the tasks of a run, and KubernetesExecutor makes of that."""
    initdb()
    DagBundlesManager().sync_bundles_to_db()
    bag = DagBag(dags, bundle_path=dags)
    sync_bag_to_db(bag, "dags-folder", None)
    (dag,) = bag.dags
    begin(dag)
    with create_session() as session:
        tasks = {one.task_id: one.executor_config for one in session.scalars(select(TaskInstance))}
    pods = {name: pod_of_task(name, PodGenerator.from_obj(config)) for name, config in tasks.items()}
    return {"import_errors": bag.import_errors, "pods": pods}


def begin(name: str) -> None:
    with create_session() as session:
        dag = SerializedDagModel.get_dag(name, session=session)
        assert dag is not None
        dag.create_dagrun(
            run_id="one",
            run_after=DUE,
            run_type=DagRunType.MANUAL,
            triggered_by=DagRunTriggeredByType.TEST,
            state=DagRunState.QUEUED,
            session=session,
        )


def pod_of_task(name: str, override: Any) -> Any:
    """Over that of a template, which a chart would have."""
    resources = V1ResourceRequirements(requests={"cpu": "250m", "memory": "512Mi"})
    container = V1Container(name="base", image="stagehold", resources=resources)
    template = V1Pod(metadata=V1ObjectMeta(labels={"tier": "airflow"}), spec=V1PodSpec(containers=[container]))
    pickle.dumps(override)  # the executor's own process is sent it
    pod = PodGenerator.construct_pod(
        dag_id="customer_totals",
        task_id=name,
        pod_id=name,
        try_number=1,
        kube_image="stagehold",
        date=None,
        args=["airflow"],
        pod_override_object=override,
        base_worker_pod=template,
        namespace="airflow",
        scheduler_job_id="1",
    )
    return ApiClient().sanitize_for_serialization(pod)


print(json.dumps(made(Path(sys.argv[1]))))
