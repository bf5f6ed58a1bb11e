"""An Airflow with the provider for Kubernetes: what a pipeline says of pods is in the pods that its executor makes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.packaging.other_airflow import OtherAirflow, build_wheel

from stagehold.settings import PROJECT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

TEMPLATE = PROJECT / "include/stagehold/local/project/template/include/pipelines/customer_totals.yaml.txt"
ALL = "{pod_override: {metadata: {labels: {team: sales}}, spec: {nodeSelector: {disk: ssd}}}}"
LARGE = "{pod_override: {spec: {containers: [{name: base, resources: {requests: {cpu: 2, memory: 4Gi}}}]}}}"
MISTAKES = {
    "{spec: {containers: [{name: base, resorces: {}}]}}": ".spec.containers.0.resorces: got a mapping; allowed: args, ",
    "{spec: {tolerations: {key: spot}}}": ".spec.tolerations: got a mapping; allowed: a list",
    "{spec: {nodeSelector: [ssd]}}": ".spec.nodeSelector: got ['ssd']; allowed: a mapping",
    "{spec: {hostNetwork: maybe}}": ".spec.hostNetwork: got 'maybe'; allowed: true or false",
    "{spec: {volumes: [{emptyDir: {}}]}}": ": got a mapping; allowed: a pod that Kubernetes takes, which",
    "{metadata: {creationTimestamp: x}}": ": got a mapping; allowed: a pod that Kubernetes takes, which",
}


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> OtherAirflow:
    airflow = OtherAirflow(tmp_path_factory.mktemp("kubernetes"))
    airflow.make_environment()
    lock = ("-c", str(PROJECT / "requirements.txt"))
    others = ("apache-airflow-providers-cncf-kubernetes", "kubernetes-validate")
    airflow.add(*lock, str(build_wheel(airflow.folder)), *others)
    airflow.run("stagehold", "init", str(airflow.project))
    return airflow


def declare(other: OtherAirflow, everywhere: str, first: str) -> None:
    """For the pipeline and for its first stage."""
    place = other.project / "include" / "pipelines" / "customer_totals.yaml"
    text = TEMPLATE.read_text().replace("airflow:\n", f"airflow:\n  executor_config: {everywhere}\n")
    text = text.replace("  orders:\n", f"  orders:\n    airflow: {{executor_config: {first}}}\n")
    place.write_text(text)


@pytest.fixture(scope="module")
def pods(other: OtherAirflow) -> dict[str, Any]:
    """Of each task, as KubernetesExecutor asks for it."""
    declare(other, ALL, LARGE)
    script = str(Path(__file__).with_name("made_pods.py"))
    kubernetes = {"AIRFLOW__CORE__EXECUTOR": "KubernetesExecutor"}
    said = json.loads(other.run("python", script, str(other.project / "dags"), **kubernetes).splitlines()[-1])
    assert said["import_errors"] == {}
    return dict(said["pods"])


def test_a_pipelines_pod_is_laid_over_the_one_of_the_chart(pods: dict[str, Any]) -> None:
    pod = pods["customer_totals"]
    assert pod["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert (pod["metadata"]["labels"]["team"], pod["metadata"]["labels"]["tier"]) == ("sales", "airflow")
    (container,) = pod["spec"]["containers"]
    assert (container["name"], container["image"], container["args"]) == ("base", "stagehold", ["airflow"])
    assert container["resources"] == {"requests": {"cpu": "250m", "memory": "512Mi"}}


def test_a_stages_pod_is_in_place_of_its_pipelines(pods: dict[str, Any]) -> None:
    pod = pods["orders"]
    assert "nodeSelector" not in pod["spec"]
    assert pod["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "2", "memory": "4Gi"}}


def test_what_kubernetes_does_not_have_is_refused_at_its_line(other: OtherAirflow) -> None:
    for pod, expected in MISTAKES.items():
        declare(other, "{}", f"{{pod_override: {pod}}}")
        refused = other.refused("stagehold", "plan", "customer_totals")
        assert f"customer_totals.yaml:14: stages.orders.airflow.executor_config.pod_override{expected}" in refused


@pytest.mark.parametrize("version", ["1.28", "1.33", "1.37"])
def test_manifests_are_what_kubernetes_takes(other: OtherAirflow, version: str) -> None:
    files = [str(PROJECT / "deploy" / name) for name in ("spark-connect.yaml", "secrets.example.yaml")]
    said = other.run("kubernetes-validate", "--strict", "--kubernetes-version", version, *files)
    assert len(re.findall(r" passed for resource .* against version ", said)) == 6
