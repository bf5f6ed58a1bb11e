"""docker-compose.yaml is what it says, without a container engine:
fields, paths, variables, images, health checks and addresses.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import yaml
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import make_url

from stagehold.local.demo.sample import TOOL
from stagehold.local.setup.own_secrets import KNOWN
from stagehold.settings import PROJECT, Settings
from stagehold.spark.session.remote_server import server_named

COMPOSE_FILE = PROJECT / "docker-compose.yaml"
VARIABLE = re.compile(r"\$\{(?P<name>[A-Z_]+):-(?P<default>[^}]*)\}")
PINNED_IMAGE = re.compile(r"[a-z0-9./-]+:(?!latest)[A-Za-z0-9][\w.-]*\d[\w.-]*")
PUBLISHED_PORT = re.compile(r"127\.0\.0\.1:\d+:\d+")
Duration = Annotated[str, Field(pattern=r"^\d+(s|m)$")]


class Strict(BaseModel):
    """A field that Compose does not know, or that this project has no use for, is a mistake."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Build(Strict):
    context: str
    dockerfile: str
    args: dict[str, str]

    @property
    def file(self) -> Path:
        return PROJECT / self.context / self.dockerfile


class HealthCheck(Strict):
    test: list[str] = Field(min_length=2)
    interval: Duration
    timeout: Duration
    retries: int = Field(gt=0)
    start_period: Duration = "0s"


class Dependency(Strict):
    condition: Literal["service_started", "service_healthy", "service_completed_successfully"]


class Service(Strict):
    image: str
    build: Build | None = None
    entrypoint: list[str] | None = None
    command: list[str] | None = None
    working_dir: str | None = None
    user: str | None = None
    init: bool = False
    read_only: bool = False
    cap_drop: list[str] = []
    security_opt: list[str] = []
    tmpfs: list[str] = []
    restart: Literal["unless-stopped", "on-failure"]
    environment: dict[str, str] = {}
    ports: list[str] = []
    volumes: list[str] = []
    depends_on: dict[str, Dependency] = {}
    healthcheck: HealthCheck | None = None

    @property
    def ends(self) -> bool:
        """Does one thing and exits, unlike a service that stays."""
        return self.restart == "on-failure"


class Compose(Strict):
    name: str
    services: dict[str, Service]
    volumes: dict[str, None]


def substituted(text: str) -> str:
    """What Compose makes of the file when nobody sets a variable."""
    return VARIABLE.sub(lambda match: match["default"], text)


def last_user(dockerfile: Path) -> str:
    return re.findall(r"^USER (\S+)", dockerfile.read_text(), re.MULTILINE)[-1]


def read(text: str) -> Compose:
    document: dict[str, Any] = yaml.safe_load(text)
    return Compose.model_validate({key: value for key, value in document.items() if not key.startswith("x-")})


def example_variables() -> Mapping[str, str]:
    lines = (line for line in (PROJECT / ".env.example").read_text().splitlines() if line and not line.startswith("#"))
    return dict(line.split("=", 1) for line in lines)


TEXT = COMPOSE_FILE.read_text()
COMPOSE = read(substituted(TEXT))
SERVICES = [pytest.param(service, id=name) for name, service in COMPOSE.services.items()]


def test_every_service_that_a_run_needs_is_there() -> None:
    assert set(COMPOSE.services) == {
        "postgres",
        "object-store",
        "object-store-bucket",
        "spark-connect",
        "airflow-init",
        "airflow-api-server",
        "airflow-scheduler",
        "airflow-dag-processor",
    }


def test_every_variable_has_one_default_and_the_example_names_it() -> None:
    used = {(match["name"], match["default"]) for match in VARIABLE.finditer(TEXT)}
    assert used == set(example_variables().items())


def test_no_variable_is_used_in_a_form_without_a_default() -> None:
    assert re.findall(r"(?<!\$)\$(?!\$)[^{\s]|\$\{[A-Z_]+\}", VARIABLE.sub("", TEXT).replace("$$", "")) == []


def test_settings_that_containers_are_given_exist() -> None:
    known = {f"STAGEHOLD_{field.name.upper()}" for field in fields(Settings)}
    given = {
        name for service in COMPOSE.services.values() for name in service.environment if name.startswith("STAGEHOLD_")
    }
    assert given
    assert given <= known
    image = set(re.findall(r"STAGEHOLD_[A-Z_]+", (PROJECT / "docker" / "Dockerfile").read_text()))
    assert image <= known


@pytest.mark.parametrize("service", SERVICES)
def test_image_is_pinned(service: Service) -> None:
    assert PINNED_IMAGE.fullmatch(service.image), service.image


def test_the_image_has_what_makes_the_sample() -> None:
    """`docker compose run --rm airflow-scheduler python -m stagehold.local.demo.sample` is in the guide."""
    assert re.search(rf"^{TOOL}==", (PROJECT / "requirements.txt").read_text(), re.MULTILINE)


DOCKERFILES = sorted({service.build.file for service in COMPOSE.services.values() if service.build})


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: str(path.name))
def test_the_image_that_is_built_is_based_on_a_pinned_one(dockerfile: Path) -> None:
    (base,) = re.findall(r"^FROM \$\{IMAGE_PREFIX\}(\S+)", dockerfile.read_text(), re.MULTILINE)
    assert PINNED_IMAGE.fullmatch(base), base


def test_every_image_that_is_pulled_can_come_from_a_mirror() -> None:
    prefixed = read(substituted(TEXT.replace("${IMAGE_PREFIX:-}", "mirror.example/hub/")))
    for name, service in prefixed.services.items():
        prefix = service.build.args["IMAGE_PREFIX"] if service.build else service.image
        assert prefix.startswith("mirror.example/hub/"), name


@pytest.mark.parametrize("service", SERVICES)
def test_no_container_runs_as_root_or_can_become_it(service: Service) -> None:
    assert (service.cap_drop, service.security_opt) == (["ALL"], ["no-new-privileges:true"])
    user = service.user or (last_user(service.build.file) if service.build else "root")
    assert user not in ("root", "0")


@pytest.mark.parametrize("service", SERVICES)
def test_only_volumes_are_written_and_what_goes_with_the_container(service: Service) -> None:
    assert service.read_only
    assert "/tmp" in [place.split(":")[0] for place in service.tmpfs]
    assert service.init, "a killed program ends the container, which is then started again"


@pytest.mark.parametrize("service", SERVICES)
def test_mounted_paths_and_volumes_exist(service: Service) -> None:
    for mount in service.volumes:
        source, target = mount.split(":")[:2]
        assert target.startswith("/")
        assert (PROJECT / source).exists() if source.startswith("./") else source in COMPOSE.volumes, mount


def test_every_volume_is_used() -> None:
    mounted = {mount.split(":")[0] for service in COMPOSE.services.values() for mount in service.volumes}
    assert set(COMPOSE.volumes) <= mounted


@pytest.mark.parametrize("service", SERVICES)
def test_what_is_built_and_copied_exists(service: Service) -> None:
    if service.build:
        dockerfile = PROJECT / service.build.context / service.build.dockerfile
        copied = re.findall(r"^COPY (\S+)", dockerfile.read_text(), re.MULTILINE)
        assert copied or dockerfile.name != "Dockerfile"
        assert [path for path in copied if not (PROJECT / service.build.context / path).exists()] == []


def test_what_is_copied_into_the_image_is_not_ignored() -> None:
    admitted = {line[1:] for line in (PROJECT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copies = re.findall(r"^COPY (.+) \S+$", (PROJECT / "docker" / "Dockerfile").read_text(), re.MULTILINE)
    copied = {path.removeprefix("./").split("/")[0] for one in copies for path in one.split()}
    assert copied == admitted


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_that_stays_has_a_health_check_and_one_that_ends_has_none(service: Service) -> None:
    assert (service.healthcheck is None) == service.ends


@pytest.mark.parametrize("service", SERVICES)
def test_only_this_machine_can_reach_a_published_port(service: Service) -> None:
    assert [port for port in service.ports if not PUBLISHED_PORT.fullmatch(port)] == []


def test_no_port_of_this_machine_is_published_twice() -> None:
    ports = [port.split(":")[1] for service in COMPOSE.services.values() for port in service.ports]
    assert len(ports) == len(set(ports))


@pytest.mark.parametrize("service", SERVICES)
def test_what_a_service_waits_for_can_happen(service: Service) -> None:
    for name, dependency in service.depends_on.items():
        awaited = COMPOSE.services[name]
        assert dependency.condition == ("service_completed_successfully" if awaited.ends else "service_healthy")


def test_no_service_waits_for_itself_in_a_circle() -> None:
    def awaited(name: str, seen: tuple[str, ...] = ()) -> Iterator[str]:
        assert name not in seen, (*seen, name)
        for other in COMPOSE.services[name].depends_on:
            yield other
            yield from awaited(other, (*seen, name))

    for name in COMPOSE.services:
        list(awaited(name))


def test_databases_are_reached_by_drivers_that_the_lock_installs() -> None:
    environment = COMPOSE.services["airflow-scheduler"].environment
    for variable, database in (("STAGEHOLD_LEDGER", "ledger"), ("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "airflow")):
        url = make_url(environment[variable])
        assert (url.host, url.database, url.get_driver_name()) == ("postgres", database, "psycopg2")
    assert find_spec("psycopg2")
    assert find_spec("asyncpg"), "Airflow's async sessions on PostgreSQL"


STRANGE = "p/a@b:c\"d'e$f g\\h%i#j?k&l"


def test_no_password_is_part_of_an_address_or_of_json() -> None:
    """So it may have any characters."""
    secrets = {f"{name.lower()}-{STRANGE}": name for name in KNOWN}
    found = yaml.safe_load(VARIABLE.sub(lambda match: f"<{match['name']}>", TEXT))
    for name, service in found["services"].items():
        given = [*service.get("environment", {}).values(), *(service.get("command") or ())]
        with_secret = {text for text in given for secret in secrets.values() if f"<{secret}>" in str(text)}
        assert with_secret <= {f"<{secret}>" for secret in secrets.values()}, name


def run_command(service: str, folder: Path, program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """What the command of a service does, where the program that it starts only tells its environment."""
    stand_in = folder / program
    stand_in.write_text("#!/bin/sh\nenv\n")
    stand_in.chmod(0o755)
    shell, option, script = COMPOSE.services[service].command or ()
    text = script.replace("$$", "$").replace("/tmp/passwords.json", str(folder / "passwords.json"))
    path = f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    given = {**environment, "PATH": path, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([shell, option, text], env=given, capture_output=True, text=True, check=False)


def test_the_password_of_airflow_may_have_any_characters(tmp_path: Path) -> None:
    run_command("airflow-api-server", tmp_path, "airflow", AIRFLOW_PASSWORD=STRANGE, BIND_ADDRESS="127.0.0.1")
    assert json.loads((tmp_path / "passwords.json").read_text()) == {"admin": STRANGE}
    assert (tmp_path / "passwords.json").stat().st_mode & 0o077 == 0


def test_spark_has_a_token_that_is_made_once_and_in_a_file_that_others_cannot_read(tmp_path: Path) -> None:
    file = tmp_path / "token"
    begun = [
        run_command("spark-connect", tmp_path, "spark-submit", TOKEN_FILE=str(file), SPARK_MEMORY="1g") for _ in "ab"
    ]
    token = file.read_text().strip()
    assert len(token) == 64
    assert file.stat().st_mode & 0o077 == 0
    for each in begun:
        assert f"SPARK_CONNECT_AUTHENTICATE_TOKEN={token}" in each.stdout.splitlines()
    environment = COMPOSE.services["airflow-scheduler"].environment
    assert environment["STAGEHOLD_SPARK_TOKEN_FILE"] == COMPOSE.services["spark-connect"].environment["TOKEN_FILE"]
    assert not server_named(environment["STAGEHOLD_SPARK_REMOTE"]).secure


# The container for which all of Airflow waits, and the one that listens: it may have been started without waiting.
@pytest.mark.parametrize("service", ["airflow-init", "airflow-api-server"])
def test_nothing_starts_with_known_secrets_where_others_can_reach_it(service: str, tmp_path: Path) -> None:
    given = COMPOSE.services[service].environment
    here = run_command(service, tmp_path, "airflow", **given)
    assert (here.returncode, "KnownSecrets" in here.stderr) == (0, False), here.stderr
    elsewhere = run_command(service, tmp_path, "airflow", **{**given, "BIND_ADDRESS": "0.0.0.0"})
    assert (elsewhere.returncode, elsewhere.stdout) == (1, "")
    assert all(name in elsewhere.stderr for name in KNOWN)
    assert "Traceback" not in elsewhere.stderr


def test_all_of_airflow_waits_for_the_container_that_looks_at_secrets() -> None:
    waiting = [name for name, service in COMPOSE.services.items() if "airflow-init" in service.depends_on]
    assert len(waiting) == 3


def test_what_counts_as_known_is_what_the_example_has() -> None:
    example = example_variables()
    assert KNOWN.items() <= example.items()
    assert {name for name in example if re.search("PASSWORD|SECRET|KEY", name)} == KNOWN.keys()


def test_seeded_connections_name_services_that_are_there() -> None:
    environment = COMPOSE.services["airflow-scheduler"].environment
    connections = {name: json.loads(text) for name, text in environment.items() if name.startswith("AIRFLOW_CONN_")}
    assert connections["AIRFLOW_CONN_STAGEHOLD_LEDGER"]["host"] in COMPOSE.services
    assert not [name for name, connection in connections.items() if "password" in connection]
    assert connections["AIRFLOW_CONN_STAGEHOLD_LAKE"]["extra"]["endpoint_url"] == environment["AWS_ENDPOINT_URL"]


def test_spark_has_the_delta_confs_of_the_local_server() -> None:
    from stagehold.spark.server.configuration import server_configuration

    lines = (PROJECT / "docker" / "spark" / "spark-defaults.conf").read_text().splitlines()
    given = dict(line.split(maxsplit=1) for line in lines if line and not line.startswith("#"))
    of_one_machine = {
        "spark.master",
        "spark.jars",
        "spark.local.dir",
        "spark.sql.warehouse.dir",
        "spark.sql.shuffle.partitions",
    }
    # for stacks of workers, which nobody can ask for from another container
    of_one_machine.add("spark.python.daemon.module")
    local = server_configuration(Settings())
    kept = {
        name
        for name in local
        if "address" not in name.lower() and name not in {"spark.driver.host", "spark.driver.memory"}
    }
    assert {name: given.get(name) for name in kept - of_one_machine} == {
        name: local[name] for name in kept - of_one_machine
    }


@pytest.mark.parametrize(
    ("mistake", "replacement"),
    [
        ("restart: unless-stopped", "restart: always"),
        ("healthcheck:", "health_check:"),
        ("interval: 5s", "interval: 5"),
        ("ports:", "port:"),
    ],
)
def test_a_mistake_in_the_file_is_found(mistake: str, replacement: str) -> None:
    with pytest.raises(ValueError, match="validation error"):
        read(substituted(TEXT.replace(mistake, replacement)))


@pytest.mark.parametrize(("status", "code"), [("healthy", 0), ("unhealthy", 1), (None, 1)])
def test_the_dag_processor_is_as_healthy_as_airflow_says(status: str | None, code: int, tmp_path: Path) -> None:
    """To ask its own program would start all of Airflow, twice a minute."""
    (tmp_path / "health").write_text(json.dumps({"dag_processor": {"status": status}}))
    check = COMPOSE.services["airflow-dag-processor"].healthcheck
    assert check
    program = check.test[-1].replace("http://airflow-api-server:8080/api/v2/monitor", tmp_path.as_uri())
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode == code


@pytest.mark.parametrize("service", [each for each in SERVICES if not each.values[0].ends])
def test_a_health_check_has_time_on_a_machine_that_is_busy(service: Service) -> None:
    assert service.healthcheck
    assert int(service.healthcheck.timeout.rstrip("s")) >= 10


def test_spark_has_five_minutes_to_start_on_a_machine_that_is_busy() -> None:
    """Compose gives up all that waits for a container which is unhealthy."""
    check = COMPOSE.services["spark-connect"].healthcheck
    assert check
    times = (check.start_period, check.interval)
    start, interval = (int(text.rstrip("s")) for text in times)
    assert start + check.retries * interval >= 300
