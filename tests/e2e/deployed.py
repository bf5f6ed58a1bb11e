"""An Airflow as it is deployed: PostgreSQL, by pgbouncer if asked, several schedulers, and LocalExecutor or Celery's.

Nobody supervises its processes: what a test ends stays away until it starts another one.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import distributions
from pathlib import Path

from sqlalchemy import create_engine, make_url, text
from tests.conftest import QUICK_JAVA, free_port
from tests.e2e.driven_airflow import DrivenAirflow
from tests.e2e.stack import until
from tests.pooler import own_pooler
from tests.postgres import own_server

from stagehold.ledger.ledger import Ledger
from stagehold.local.airflow_configuration import airflow_home, service_environment
from stagehold.local.local_services import airflow_health
from stagehold.settings import PROJECT, Settings
from stagehold.spark.processes import ProcessIdentity, identify, kill_session, signal_group, start_process, wait_until
from stagehold.spark.server.configuration import ADDRESS
from stagehold.spark.server.server import port_answers, spark_server, stop_server

CELERY, LOCAL = "CeleryExecutor", "LocalExecutor"
REDIS = shutil.which("redis-server")
HAS_CELERY = bool(REDIS) and any(distributions(name="apache-airflow-providers-celery"))
DATABASES = ("airflow", "ledger")
CONNECTIONS, POOLED = 300, 20  # of the server, and of a pooler to each database
START_SECONDS, STOP_SECONDS = 240, 30
# `stagehold up` has one scheduler and a database in a file. Of several schedulers that are busy, those with thresholds
# so short take each other's tasks away.
OF_ONE_SCHEDULER = (
    "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT",
)
# Behind a pooler, the next transaction may be on a connection that does not know what was prepared.
LOCAL_SETTINGS = """\
from uuid import uuid4

connect_args_async = {"statement_cache_size": 0, "prepared_statement_name_func": lambda: f"__{uuid4()}__"}
"""


class Kind(StrEnum):
    API_SERVER = "api-server"
    SCHEDULER = "scheduler"
    DAG_PROCESSOR = "dag-processor"
    WORKER = "worker"


# Logs are read from the folder they are in, so nobody needs to serve them.
COMMANDS: Mapping[Kind, tuple[str, ...]] = {
    Kind.API_SERVER: ("api-server",),
    Kind.SCHEDULER: ("scheduler", "--skip-serve-logs"),
    Kind.DAG_PROCESSOR: ("dag-processor",),
    Kind.WORKER: ("celery", "worker", "--skip-serve-logs", "--without-gossip", "--without-mingle"),
}


@dataclass(frozen=True)
class Shape:
    """What is deployed. ``pipelines`` are files by their names; ``slots`` are tasks at once of a scheduler with
    LocalExecutor, or of a worker; ``silent_seconds`` are those behind which Airflow gives up a task.
    """

    pipelines: Mapping[str, str]
    executor: str = LOCAL
    schedulers: int = 2
    workers: int = 0
    slots: int = 4
    pooled: bool = False
    silent_seconds: int = 300

    @property
    def parts(self) -> list[tuple[Kind, int]]:
        counts = {Kind.API_SERVER: 1, Kind.SCHEDULER: self.schedulers, Kind.DAG_PROCESSOR: 1, Kind.WORKER: self.workers}
        return [(kind, number) for kind, count in counts.items() for number in range(count)]


@dataclass(frozen=True)
class Addresses:
    """Databases, and the broker of Celery. ``server`` is PostgreSQL itself, ``way`` how everybody else comes to it."""

    server: str
    way: str
    broker: str = ""

    def of(self, database: str, *, direct: bool = False) -> str:
        url = make_url(self.server if direct else self.way).set(database=database)
        return url.render_as_string(hide_password=False)


class Deployed:
    """The processes of an Airflow, each with a session of its own. They end with the thread that starts them."""

    def __init__(self, settings: Settings, environment: Mapping[str, str], addresses: Addresses) -> None:
        self.settings, self.addresses = settings, addresses
        self._environment = environment
        self._processes: dict[tuple[Kind, int], subprocess.Popen[bytes]] = {}

    def start(self, kind: Kind, number: int = 0) -> None:
        """Start it, or another one in the place of the one that has ended."""
        command = [sys.executable, "-m", "airflow", *COMMANDS[kind]]
        if kind is Kind.WORKER:
            command += ["--celery-hostname", f"worker-{number}"]
        self._processes[kind, number] = start_process(
            command,
            environment=self._environment,
            folder=airflow_home(self.settings),
            log=self.log(kind, number),
        )

    def log(self, kind: Kind, number: int = 0) -> Path:
        return self.settings.home_path / "logs" / f"{kind}-{number}.log"

    def process(self, kind: Kind, number: int = 0) -> subprocess.Popen[bytes]:
        """The main process, which leads the session of all that it starts."""
        return self._processes[kind, number]

    def kill(self, kind: Kind, number: int = 0) -> None:
        """SIGKILL to it and all that it started, as when its machine is lost."""
        process = self.process(kind, number)
        kill_session(_identity(process))
        process.wait(STOP_SECONDS)

    def await_readiness(self) -> None:
        """Until the api-server has heard of a scheduler and the dag-processor, and each worker takes tasks."""
        until(self._ready, "Airflow is ready", START_SECONDS)

    def _ready(self) -> bool:
        for (kind, number), process in self._processes.items():
            assert process.poll() is None, f"{kind} ended with {process.returncode}:\n{self._said(kind, number)}"
        parts = airflow_health(self.settings)
        healthy = [parts.get(kind.replace("-", "_"), {}).get("status") for kind in (Kind.SCHEDULER, Kind.DAG_PROCESSOR)]
        workers = [number for kind, number in self._processes if kind is Kind.WORKER]
        return healthy == ["healthy", "healthy"] and all(map(self.takes_tasks, workers))

    def takes_tasks(self, worker: int) -> bool:
        return " ready." in self.log(Kind.WORKER, worker).read_text(errors="replace")

    def _said(self, kind: Kind, number: int) -> str:
        return self.log(kind, number).read_text(errors="replace")[-3000:]

    def end(self) -> None:
        """Ask all, give them time together, then kill what is left."""
        identities = [_identity(process) for process in self._processes.values()]
        for identity in identities:
            if identity.alive:
                signal_group(identity.pid, signal.SIGTERM)
        wait_until(lambda: not any(identity.alive for identity in identities), STOP_SECONDS)
        for identity in identities:
            kill_session(identity)
        for process in self._processes.values():
            process.wait(STOP_SECONDS)


def _identity(process: subprocess.Popen[bytes]) -> ProcessIdentity:
    return identify(process.pid) or ProcessIdentity(process.pid, 0)


@contextmanager
def deployed(folder: Path, shape: Shape) -> Iterator[tuple[Deployed, DrivenAirflow]]:
    """All of it in ``folder``, with the pipelines of the shape and one Spark server, to its end."""
    with ExitStack() as started:
        addresses = started.enter_context(_services(folder, shape))
        settings = _settings(folder, shape, addresses)
        started.enter_context(spark_server(settings, "an Airflow that is deployed"))
        started.callback(stop_server, settings)
        environment = _environment(settings, shape, addresses)
        _prepare(settings, environment, addresses)
        airflow = Deployed(settings, environment, addresses)
        started.callback(airflow.end)
        for kind, number in shape.parts:
            airflow.start(kind, number)
        airflow.await_readiness()
        client = started.enter_context(DrivenAirflow.local(settings))
        for name in shape.pipelines:
            client.await_dag(name, START_SECONDS)
        yield airflow, client


@contextmanager
def _services(folder: Path, shape: Shape) -> Iterator[Addresses]:
    with ExitStack() as started:
        server = started.enter_context(own_server(CONNECTIONS)).url
        engine = create_engine(server, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            for name in DATABASES:
                connection.execute(text(f"CREATE DATABASE {name}"))
        engine.dispose()
        way = started.enter_context(own_pooler(server, POOLED)) if shape.pooled else server
        broker = started.enter_context(_redis(folder)) if shape.executor == CELERY else ""
        yield Addresses(server, way, broker)


@contextmanager
def _redis(folder: Path) -> Iterator[str]:
    """A broker that keeps nothing."""
    assert REDIS is not None
    port, place = free_port(), folder / "redis"
    place.mkdir(parents=True, exist_ok=True)
    command = [REDIS, "--bind", ADDRESS, "--port", str(port), "--save", "", "--appendonly", "no"]
    process = start_process(command, environment={}, folder=place, log=place / "log")
    try:
        until(lambda: port_answers(port), "Redis answers", START_SECONDS)
        yield f"redis://{ADDRESS}:{port}/0"
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)


def _settings(folder: Path, shape: Shape, addresses: Addresses) -> Settings:
    for part in ("pipelines", "suites", "dags"):
        (folder / part).mkdir(parents=True)
    for name, declared in shape.pipelines.items():
        (folder / "pipelines" / f"{name}.yaml").write_text(declared)
    shutil.copy(PROJECT / "dags" / "stagehold_pipelines.py", folder / "dags")
    return Settings(
        home=str(folder / "home"),
        ledger=addresses.of("ledger"),
        pipelines=str(folder / "pipelines"),
        suites=str(folder / "suites"),
        spark_port=free_port(),
        airflow_port=free_port(),
        spark_java_options=QUICK_JAVA,
    )


def _environment(settings: Settings, shape: Shape, addresses: Addresses) -> Mapping[str, str]:
    usual = {name: value for name, value in service_environment(settings).items() if name not in OF_ONE_SCHEDULER}
    of_celery = {
        "AIRFLOW__CELERY__BROKER_URL": addresses.broker,
        "AIRFLOW__CELERY__WORKER_CONCURRENCY": str(shape.slots),
        "C_FORCE_ROOT": "true",
    }
    return {
        **usual,
        "AIRFLOW__CORE__DAGS_FOLDER": str(Path(settings.pipelines).with_name("dags")),
        "AIRFLOW__CORE__EXECUTOR": shape.executor,
        "AIRFLOW__CORE__PARALLELISM": str(shape.slots if shape.executor == LOCAL else 2 * shape.slots * shape.workers),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": addresses.of("airflow"),
        # As in docker-compose.yaml, where it says why.
        "AIRFLOW__DATABASE__SQL_ALCHEMY_MAX_OVERFLOW": "40",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": str(shape.silent_seconds),
        **(_by_a_pooler(settings, addresses) if shape.pooled else {}),
        **(of_celery if shape.executor == CELERY else {}),
    }


def _by_a_pooler(settings: Settings, addresses: Addresses) -> Mapping[str, str]:
    file = airflow_home(settings) / "config" / "airflow_local_settings.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(LOCAL_SETTINGS)
    url = make_url(addresses.of("airflow")).set(drivername="postgresql+asyncpg")
    url = url.update_query_dict({"prepared_statement_cache_size": "0"})
    return {
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC": url.render_as_string(hide_password=False),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS_ASYNC": "airflow_local_settings.connect_args_async",
    }


def _prepare(settings: Settings, environment: Mapping[str, str], addresses: Addresses) -> None:
    """Both schemas, by the server itself: Airflow's migration holds a lock for longer than a transaction."""
    Ledger.open(addresses.of("ledger", direct=True)).close()
    log = settings.home_path / "logs" / "migrate.log"
    direct = {"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": addresses.of("airflow", direct=True)}
    command = [sys.executable, "-m", "airflow", "db", "migrate"]
    began = start_process(command, environment={**environment, **direct}, folder=airflow_home(settings), log=log)
    assert began.wait(START_SECONDS) == 0, log.read_text()[-3000:]
