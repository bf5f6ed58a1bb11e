"""The files of deploy/ fit each other, the settings and the local server. No cluster is asked."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator
from tests.test_compose import COMPOSE

from stagehold.settings import PROJECT, Settings
from stagehold.spark.session.remote_server import server_named
from stagehold.spec.settings.run_settings import RunSettings

DEPLOY = PROJECT / "deploy"
BETWEEN_POLLS = 5  # seconds of a load balancer that has not heard yet
NO_REGISTRY = re.compile(r"[a-z0-9-]+(/[a-z0-9._-]+)*")


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


VALUES = documents("helm-values.yaml")[0]
CHART = Draft7Validator(json.loads(Path(__file__).with_name("airflow_chart.schema.json").read_text()))
SECRETS = {each["metadata"]["name"]: set(each["stringData"]) for each in documents("secrets.example.yaml")}
SPARK = {each["kind"]: each for each in documents("spark-connect.yaml")}
POD = SPARK["Deployment"]["spec"]["template"]
(CONTAINER,) = POD["spec"]["containers"]


def named(given: Any, field: str) -> Iterator[Any]:
    """The values of all fields of this name, at any depth."""
    if isinstance(given, Mapping):
        for name, value in given.items():
            if name == field:
                yield value
            yield from named(value, field)
    for item in given if isinstance(given, list) else ():
        yield from named(item, field)


def environment() -> dict[str, str]:
    return {each["name"]: each["value"] for each in VALUES["env"]}


def test_airflows_chart_has_each_value_and_deprecates_none() -> None:
    assert [f"{error.json_path}: {error.message}" for error in CHART.iter_errors(VALUES)] == []


@pytest.mark.parametrize(
    ("place", "given", "said"),
    [
        (
            ("securityContexts",),
            {"container": {}},
            "Additional properties are not allowed ('container' was unexpected)",
        ),
        (("workers",), {"terminationGracePeriodSeconds": 60}, "'terminationGracePeriodSeconds' was unexpected"),
        (("scheduler", "resource"), {}, "'resource' was unexpected"),
        (("apiServer", "resources", "requests"), 2, "2 is not of type 'object'"),
        (("env",), [{"name": "A", "vlaue": "b"}], "'vlaue' was unexpected"),
        (("executor",), [], "[] is not of type 'string'"),
    ],
)
def test_what_the_chart_would_read_past_is_found(place: tuple[str, ...], given: Any, said: str) -> None:
    values = deepcopy(VALUES)
    around = values
    for name in place[:-1]:
        around = around[name]
    around[place[-1]] = given
    assert [error.message for error in CHART.iter_errors(values) if said in error.message]


def test_what_a_server_needs_is_there() -> None:
    assert SPARK.keys() == {"Deployment", "Service", "NetworkPolicy", "PodDisruptionBudget"}
    assert {each["apiVersion"] for each in SPARK.values()} == {"apps/v1", "v1", "networking.k8s.io/v1", "policy/v1"}


def test_everything_that_means_the_server_means_its_pod() -> None:
    labels = POD["metadata"]["labels"]
    assert SPARK["Service"]["spec"]["selector"] == labels
    assert SPARK["Deployment"]["spec"]["selector"] == {"matchLabels": labels}
    assert SPARK["NetworkPolicy"]["spec"]["podSelector"] == {"matchLabels": labels}
    assert SPARK["PodDisruptionBudget"]["spec"]["selector"] == {"matchLabels": labels}


def test_airflow_finds_the_server_and_nobody_else_is_let_in() -> None:
    server = server_named(environment()["STAGEHOLD_SPARK_REMOTE"])
    service = SPARK["Service"]
    assert (server.host, server.port) == (service["metadata"]["name"], service["spec"]["ports"][0]["port"])
    assert not server.secure
    assert service["spec"]["ports"][0]["targetPort"] == CONTAINER["ports"][0]["name"]
    (rule,) = SPARK["NetworkPolicy"]["spec"]["ingress"]
    assert rule["from"] == [{"podSelector": {"matchLabels": {"tier": "airflow"}}}]
    assert rule["ports"] == [{"port": CONTAINER["ports"][0]["name"], "protocol": "TCP"}]
    assert f"spark.connect.grpc.binding.port {server.port}" in re.sub(" +", " ", configuration_text())


def test_each_secret_that_is_named_is_in_the_example_and_none_is_left_over() -> None:
    read = [(each["name"], each["key"]) for each in named(SPARK["Deployment"], "secretKeyRef")]
    given = [(each["secretName"], each["secretKey"]) for each in VALUES["secret"]]
    mounted = [(each["secretName"], item["key"]) for each in named(VALUES, "secret") for item in items_of(each)]
    for_the_chart = {"connection": "metadataSecretName", "fernet-key": "fernetKeySecretName"}
    for_the_chart |= {"api-secret-key": "apiSecretKeySecretName", "jwt-secret": "jwtSecretName"}
    charts = [(name, key) for key, field in for_the_chart.items() for name in named(VALUES, field)]
    assert {*read, *given, *mounted, *charts} == {(name, key) for name, keys in SECRETS.items() for key in keys}


def items_of(secret: Any) -> list[dict[str, str]]:
    return secret.get("items", []) if isinstance(secret, Mapping) else []


def test_no_secret_stands_in_a_file() -> None:
    plain = {*environment(), *(each["name"] for each in CONTAINER["env"] if "value" in each)}
    assert not [name for name in plain if re.search("PASSWORD|SECRET|TOKEN$|LEDGER|ACCESS_KEY", name)]
    assert environment()["STAGEHOLD_SPARK_TOKEN_FILE"] == "/etc/stagehold/spark-token"


def test_settings_that_pods_are_given_exist() -> None:
    known = {f"STAGEHOLD_{field.name.upper()}" for field in fields(Settings)}
    given = {*environment(), *(each["envName"] for each in VALUES["secret"])}
    assert {name for name in given if name.startswith("STAGEHOLD_")} <= known


def test_airflow_is_told_what_it_is_told_everywhere() -> None:
    told = COMPOSE.services["airflow-scheduler"].environment
    for section, options in VALUES["config"].items():
        for option, value in options.items():
            if option != "auth_manager":
                assert told[f"AIRFLOW__{section.upper()}__{option.upper()}"] == value, option
    of_api_server = COMPOSE.services["airflow-api-server"].environment
    assert VALUES["apiServer"]["env"] == [
        {"name": name, "value": value} for name, value in of_api_server.items() if name.endswith("MAX_OVERFLOW")
    ]
    assert f"apache-airflow=={VALUES['airflowVersion']} " in (PROJECT / "requirements.in").read_text()


def test_no_container_runs_as_root_or_may_become_it() -> None:
    for pod, container in (
        (POD["spec"]["securityContext"], CONTAINER["securityContext"]),
        (VALUES["securityContexts"]["pod"], VALUES["securityContexts"]["containers"]),
    ):
        assert (pod["runAsNonRoot"], pod["runAsUser"]) == (True, 50000)
        assert (container["allowPrivilegeEscalation"], container["capabilities"]) == (False, {"drop": ["ALL"]})
    assert CONTAINER["securityContext"]["readOnlyRootFilesystem"]
    assert "useradd --uid 50000" in (PROJECT / "docker" / "Dockerfile").read_text()


def test_a_pod_that_is_drained_has_time_for_a_wave() -> None:
    (sleep,) = named(CONTAINER["lifecycle"], "command")
    wave = RunSettings().wave
    assert not isinstance(wave, str)
    assert int(sleep[1]) >= wave.total_seconds() + BETWEEN_POLLS
    assert POD["spec"]["terminationGracePeriodSeconds"] >= int(sleep[1]) + 20  # of `STOP_SECONDS`, twice
    assert VALUES["workers"]["kubernetes"]["terminationGracePeriodSeconds"] >= 30


def test_images_name_no_registry_and_the_version_of_this_project() -> None:
    version = re.search(r'^version = "(.+)"', (PROJECT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version
    (kustomized,) = documents("kustomization.yaml")[0]["images"]
    image = VALUES["images"]["airflow"]
    assert {CONTAINER["image"], kustomized["name"], image["repository"]} == {"stagehold"}
    assert {kustomized["newTag"], image["tag"], VALUES["defaultAirflowTag"]} == {version[1]}
    assert all(NO_REGISTRY.fullmatch(name) for name in (CONTAINER["image"], image["repository"]))


def test_what_kustomize_puts_together_is_there() -> None:
    (kustomized,) = documents("kustomization.yaml")
    (generated,) = kustomized["configMapGenerator"]
    (volume,) = (each for each in POD["spec"]["volumes"] if "configMap" in each)
    assert volume["configMap"]["name"] == generated["name"]
    for name in (*kustomized["resources"], *generated["files"]):
        assert (DEPLOY / name).is_file()
    mounted = {each["mountPath"] for each in CONTAINER["volumeMounts"]}
    assert {each["name"]: each.get("value") for each in CONTAINER["env"]}["SPARK_CONF_DIR"] in mounted
    assert CONTAINER["workingDir"] in mounted  # its file system is read-only elsewhere
    assert {each["name"] for each in CONTAINER["volumeMounts"]} == {each["name"] for each in POD["spec"]["volumes"]}


def configuration_text() -> str:
    return (DEPLOY / "spark-defaults.conf").read_text()


def settings_in(text: str) -> dict[str, str]:
    return dict(line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#"))


def test_spark_is_configured_as_in_compose_but_for_the_store() -> None:
    compose = settings_in((PROJECT / "docker" / "spark" / "spark-defaults.conf").read_text())
    store = {"spark.hadoop.fs.s3a.endpoint", "spark.hadoop.fs.s3a.path.style.access"}
    store.add("spark.hadoop.fs.s3a.connection.ssl.enabled")
    assert settings_in(configuration_text()) == {name: text for name, text in compose.items() if name not in store}
    for name in ("log4j2.properties",):
        assert (DEPLOY / name).read_text() == (PROJECT / "docker" / "spark" / name).read_text()


@pytest.mark.parametrize("token", ["", "replace"])
def test_nothing_starts_with_the_tokens_of_the_example(token: str) -> None:
    begun = subprocess.run(
        ["/bin/sh", *CONTAINER["command"][1:], CONTAINER["args"][0]],
        env={"SPARK_CONNECT_AUTHENTICATE_TOKEN": token, "PATH": "/nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (begun.returncode, "32 characters" in begun.stderr) == (1, True)
