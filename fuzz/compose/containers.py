"""The containers of docker-compose.yaml, under a name, on ports and with passwords of their own.

What is asked of an engine is in all of them: Docker with `docker compose`, Podman with podman-compose.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from stagehold.local.airflow_client import AirflowClient
from stagehold.local.setup.own_secrets import KNOWN
from stagehold.settings import PROJECT
from stagehold.spark.ports import free_port
from stagehold.spark.processes import wait_until

NAME = "stagehold-test"
PORTS = ("AIRFLOW_PORT", "OBJECT_STORE_PORT", "OBJECT_STORE_CONSOLE_PORT")
COMMANDS = {"docker compose": "docker", "podman-compose": "podman"}
# Podman does not start a container again that died, if podman-compose has tied it to one that has ended.
WITHOUT_TIES = {"podman": ("--no-deps",)}
# podman-compose builds and starts all containers at the same time, and those of one image build it several times over.
ONE_BY_ONE = {"COMPOSE_PARALLEL_LIMIT": "1"}
ONCE = ("airflow-init", "object-store-bucket")
STAYING = (
    "postgres",
    "object-store",
    "spark-connect",
    "airflow-api-server",
    "airflow-scheduler",
    "airflow-dag-processor",
)
UP_SECONDS, HEALTHY_SECONDS = 3600, 300
KILL = "kill -9 -1"  # all that the container runs but its init, which then ends as well


def chosen_command(given: str, answers: Callable[[Sequence[str]], bool] | None = None) -> str:
    """The command of compose: the one that somebody gives, or the first that answers."""
    works = answers or _answers
    for command in [given] if given else COMMANDS:
        if works([*shlex.split(command), "version"]):
            return command
    what = f"{given!r} does not answer" if given else f"neither of {', '.join(map(repr, COMMANDS))} answers"
    raise SystemExit(
        f"COMPOSE: {what}. Allowed is a command that takes the words of `docker compose`. Install Docker, or podman "
        "and podman-compose, and run `make compose-test COMPOSE=podman-compose`."
    )


def _answers(command: Sequence[str]) -> bool:
    return bool(shutil.which(command[0])) and subprocess.run(command, capture_output=True, check=False).returncode == 0


def own_environment() -> dict[str, str]:
    """Free ports, and passwords that nobody knows, unless somebody sets others."""
    made = {name: str(free_port()) for name in PORTS} | {name: secrets.token_urlsafe(16) for name in KNOWN}
    made["AIRFLOW_FERNET_KEY"] = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
    return made | ONE_BY_ONE | dict(os.environ)


@dataclass(frozen=True)
class Containers:
    compose: str
    environment: Mapping[str, str]

    @property
    def engine(self) -> str:
        return COMMANDS.get(self.compose) or ("podman" if "podman" in self.compose else "docker")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.environment['AIRFLOW_PORT']}"

    def client(self) -> AirflowClient:
        return AirflowClient.logged_in(self.url, "admin", self.environment["AIRFLOW_PASSWORD"])

    def do(self, *words: str, given: str | None = None, may_fail: bool = False) -> str:
        """What the command of compose prints; its own messages go where ours go."""
        command = [*shlex.split(self.compose), "--project-name", NAME, *words]
        done = subprocess.run(
            command,
            cwd=PROJECT,
            env=self.environment,
            input=given,
            stdout=subprocess.PIPE,
            text=True,
            timeout=UP_SECONDS,
            check=False,
        )
        if done.returncode and not may_fail:
            raise SystemExit(f"{shlex.join(command)} ended with {done.returncode}:\n{done.stdout[-3000:]}")
        return done.stdout

    def python(self, *words: str, given: str | None = None) -> str:
        """What a Python with Airflow's settings prints."""
        return self.do("exec", "-T", "airflow-scheduler", "python", *words, given=given)

    @contextmanager
    def up(self, keep: bool) -> Iterator[None]:
        """:param keep: leave all of it up."""
        try:
            self.do("up", "--build", "--detach", *WITHOUT_TIES.get(self.engine, ()))
            self.await_health(STAYING, UP_SECONDS)
            yield
        finally:
            if not keep:
                self.do("down", "--volumes")

    def await_health(self, services: Sequence[str], seconds: float = HEALTHY_SECONDS) -> None:
        if not wait_until(lambda: all(map(self.is_healthy, services)), seconds, 1):
            ill = [service for service in services if not self.is_healthy(service)]
            raise SystemExit(f"Not healthy after {seconds} s: {', '.join(ill)}\n{self.do('logs', *ill)[-3000:]}")

    def is_healthy(self, service: str) -> bool:
        """Podman is asked for a check: where there is no systemd, nobody else asks."""
        if self.engine == "podman":
            return self._engine("healthcheck", "run", self._container(service)).returncode == 0
        health: str = self.state(service).get("Health", {}).get("Status", "")
        return health == "healthy"

    def state(self, service: str) -> Mapping[str, Any]:
        """Empty if there is no such container."""
        said = self._engine("inspect", self._container(service))
        return dict(json.loads(said.stdout)[0]["State"]) if said.returncode == 0 else {}

    def _container(self, service: str) -> str:
        labels = {"project": NAME, "service": service}
        filters = [f"--filter=label=com.docker.compose.{name}={value}" for name, value in labels.items()]
        return (self._engine("ps", "--all", "--quiet", *filters).stdout.split() or ["none"])[0]

    def _engine(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [self.engine, *words]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)

    def kill(self, service: str) -> datetime:
        """As if its programs had crashed: nobody but the engine starts it again.

        :returns: when they were dead.
        :raises SystemExit: the engine does not.
        """
        before = self.state(service)["StartedAt"]
        self.do("exec", "-T", service, "sh", "-c", KILL, may_fail=True)
        dead = datetime.now(UTC)
        if not wait_until(lambda: self._runs_since(service, before), HEALTHY_SECONDS, 0.5):
            raise SystemExit(f"{service} was killed and not started again: {dict(self.state(service))}")
        return dead

    def _runs_since(self, service: str, before: str) -> bool:
        now = self.state(service)
        return bool(now.get("Running") and now["StartedAt"] != before)
