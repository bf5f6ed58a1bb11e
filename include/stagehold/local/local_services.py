"""The processes that `stagehold up` runs: how each is started, when it is ready, and how it likes to be stopped."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import httpx

from stagehold.local.airflow_configuration import airflow_home, airflow_url, service_environment
from stagehold.settings import Settings
from stagehold.spark.processes import start_process
from stagehold.spark.server.configuration import ADDRESS
from stagehold.spark.server.server import LaunchedServer, launch_server
from stagehold.spark.server.server_record import server_log

PROBE_SECONDS = 2.0


class Service(Protocol):
    """A process of the embedded default. Every start is a new process; `ready` is asked only about the newest."""

    @property
    def name(self) -> str: ...
    @property
    def address(self) -> str: ...
    @property
    def log(self) -> Path: ...
    @property
    def stop_signal(self) -> signal.Signals: ...

    def start(self) -> subprocess.Popen[bytes]: ...
    def ready(self, since: datetime) -> bool:
        """Whether the process that was started at ``since`` can be used; does not wait."""


class SparkService:
    """The Spark Connect server."""

    name, stop_signal = "spark", signal.SIGTERM

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._launched: LaunchedServer | None = None

    @property
    def address(self) -> str:
        return f"sc://{ADDRESS}:{self._launched.state.port}" if self._launched else ""

    @property
    def log(self) -> Path:
        return server_log(self.settings)

    def start(self) -> subprocess.Popen[bytes]:
        if self._launched:
            self._launched.stop_warm_up()
        self._launched = launch_server(self.settings, kept_up=True)
        return self._launched.child

    def ready(self, since: datetime) -> bool:  # noqa: ARG002 - it is asked of the newest process, which needs no date
        return self._launched is not None and self._launched.ready()


class AirflowService:
    """A service of Airflow's; ready when Airflow's own health page has heard from it since it was started."""

    def __init__(
        self,
        settings: Settings,
        name: str,
        arguments: tuple[str, ...],
        stop_signal: signal.Signals = signal.SIGTERM,
        address: str = "",
    ) -> None:
        self.settings, self.name, self.arguments = settings, name, arguments
        self.stop_signal, self.address = stop_signal, address

    @property
    def log(self) -> Path:
        return self.settings.home_path / "logs" / f"{self.name}.log"

    def start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "stagehold.local.airflow_process", *self.arguments]
        folder = airflow_home(self.settings)
        return start_process(command, environment=service_environment(self.settings), folder=folder, log=self.log)

    def ready(self, since: datetime) -> bool:
        health = airflow_health(self.settings)
        if self.name == "api-server":
            return bool(health)
        component = self.name.replace("-", "_")
        heartbeat = health.get(component, {}).get(f"latest_{component}_heartbeat")
        return heartbeat is not None and datetime.fromisoformat(heartbeat) >= since


def local_services(settings: Settings, *, spark_only: bool = False) -> tuple[Service, ...]:
    """The services in the order of their start. There is no triggerer, since nothing of ours defers. A remote Spark is
    somebody else's to run.
    """
    spark = () if settings.spark_remote else (SparkService(settings),)
    if spark_only:
        return spark
    return (
        *spark,
        AirflowService(settings, "api-server", ("api-server",), address=airflow_url(settings)),
        # Logs are read from the folder they are in, so its log server, which listens on every address, is not needed.
        AirflowService(settings, "scheduler", ("scheduler", "--skip-serve-logs"), stop_signal=signal.SIGINT),
        AirflowService(settings, "dag-processor", ("dag-processor",)),
    )


def airflow_health(settings: Settings) -> Mapping[str, Any]:
    """What Airflow says about its own parts; empty while its api-server does not answer."""
    try:
        answer = _http().get(f"{airflow_url(settings)}/api/v2/monitor/health").raise_for_status()
        return dict(answer.json())
    except (httpx.HTTPError, ValueError):
        return {}


@cache
def _http() -> httpx.Client:
    """Making one reads the machine's certificates, which is most of the work of asking."""
    return httpx.Client(timeout=PROBE_SECONDS)
