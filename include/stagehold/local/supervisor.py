"""One process that runs the services of the embedded default: `python -m stagehold.local.supervisor`.

It starts them, starts again what crashes, and ends them all when it is told to or when one crashes too often. It has
one thread, because each service dies with the thread that forked it. Before Airflow's first start it makes Airflow's
SQLite database: migrated once per Airflow version and then copied, with the pool of slots in it.
"""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import FrameType

from stagehold.errors import AlreadyUp, ServicesFailed
from stagehold.local.airflow_configuration import airflow_database, airflow_home, service_environment
from stagehold.local.local_services import AirflowService, Service, local_services
from stagehold.local.state import ServiceFailure, ServicePhase, ServiceState, SupervisorState, write_state
from stagehold.settings import SPARK_POOL, Settings, load_settings
from stagehold.spark.processes import (
    ProcessIdentity,
    identify,
    kill_session,
    own_process,
    python_environment,
    signal_group,
    start_process,
    wait_until,
)

STEP_SECONDS = 0.2
STOP_SECONDS = 20.0
LOG_LINES = 8
SPARK_ONLY = "--spark-only"

NO_PROCESS = ProcessIdentity(0, 0)

log = logging.getLogger(__name__)

# What `airflow pools set` does, which takes it five seconds.
POOL = """
    INSERT INTO slot_pool (pool, slots, description, include_deferred)
    VALUES (?, ?, 'Slots of the Spark server, taken by region tasks', FALSE)
    ON CONFLICT (pool) DO UPDATE SET slots = excluded.slots
"""


@dataclass
class Supervised:
    """A service and its newest process. ``start_at`` is set while it waits to be started again."""

    service: Service
    policy: RestartPolicy
    process: subprocess.Popen[bytes] | None = None
    identity: ProcessIdentity = NO_PROCESS
    since: datetime = field(default_factory=lambda: datetime.now(UTC))
    phase: ServicePhase = ServicePhase.STARTING
    was_ready: bool = False
    crashes: list[float] = field(default_factory=list)
    start_at: float | None = None

    def start(self) -> None:
        self.since, self.start_at, self.phase = datetime.now(UTC), None, ServicePhase.STARTING
        self.process = self.service.start()
        self.identity = identify(self.process.pid) or ProcessIdentity(self.process.pid, 0)
        log.info("service=%s started pid=%d", self.service.name, self.process.pid)

    def step(self) -> None:
        """Notice one change at most: the process ended, the wait for the next start is over, or it became ready."""
        if self.start_at is not None:
            if time.monotonic() >= self.start_at:
                self.start()
        elif self.process and self.process.poll() is not None:
            self._crashed(self.process.returncode)
        elif self.phase is ServicePhase.STARTING and self.service.ready(self.since):
            self.phase, self.was_ready = ServicePhase.RUNNING, True
            log.info(
                "service=%s ready after %.1f s", self.service.name, (datetime.now(UTC) - self.since).total_seconds()
            )

    def state(self) -> ServiceState:
        return ServiceState(
            name=self.service.name,
            phase=self.phase,
            address=self.service.address,
            restarts=len(self.crashes),
            since=self.since.isoformat(timespec="seconds"),
            pid=self.identity.pid,
            started=self.identity.started,
        )

    def _crashed(self, code: int) -> None:
        kill_session(self.identity)
        now = time.monotonic()
        self.crashes.append(now)
        self.phase, self.since = ServicePhase.WAITING, datetime.now(UTC)
        delay = self.policy.delay(self.crashes, now, was_ready=self.was_ready)
        log.warning(
            "service=%s ended with code %d; crashes=%d next start in %s s",
            self.service.name,
            code,
            len(self.crashes),
            delay,
        )
        if delay is None:
            raise ServicesFailed(
                self.service.name, f"ended {len(self.crashes)} times, last with code {code}", self._last_lines()
            )
        self.start_at = now + delay

    def _last_lines(self) -> list[str]:
        return (
            self.service.log.read_text(errors="replace").splitlines()[-LOG_LINES:] if self.service.log.exists() else []
        )


class Supervisor:
    """Runs until `stop` is called from a signal handler, or a service fails for good."""

    def __init__(self, settings: Settings, services: Sequence[Service], policy: RestartPolicy) -> None:
        self._settings = settings
        self._supervised = tuple(Supervised(service, policy) for service in services)
        self._stopping = False
        self._written: SupervisorState | None = None

    def run(self) -> None:
        """Start everything and stay. On the way out nothing that was started is left, and the state file says why.

        :raises AlreadyUp: another supervisor has this home.
        :raises ServicesFailed: a service crashed too often; the others were stopped.
        """
        with _home_lock(self._settings), _guard(self._settings):
            failure = None
            try:
                self._start()
                while not self._stopping:
                    for supervised in self._supervised:
                        supervised.step()
                    self._write()
                    time.sleep(STEP_SECONDS)
            except ServicesFailed as error:
                failure = ServiceFailure(error.service, error.what, error.log_lines)
                raise
            except Exception as error:
                failure = ServiceFailure("supervisor", f"ended: {error}", ())
                raise
            finally:
                self._end()
                self._write(failure)

    def stop(self, number: int, _frame: FrameType | None) -> None:
        """Handler for SIGTERM and SIGINT; the stop itself happens in `run`."""
        log.info("stopping on signal %d", number)
        self._stopping = True

    def _start(self) -> None:
        """Spark first: it needs no database, and is the slowest."""
        self._write()
        own = [supervised for supervised in self._supervised if not isinstance(supervised.service, AirflowService)]
        airflow = [supervised for supervised in self._supervised if supervised not in own]
        for supervised in own:
            supervised.start()
        self._write()
        if airflow:
            prepare_database(self._settings)
        for supervised in airflow:
            supervised.start()

    def _end(self) -> None:
        """Ask all at once, give them time together, then kill what is left."""
        started = [supervised for supervised in self._supervised if supervised.process]
        for supervised in started:
            if supervised.identity.alive:
                signal_group(supervised.identity.pid, supervised.service.stop_signal)
        wait_until(lambda: not any(supervised.identity.alive for supervised in started), STOP_SECONDS)
        for supervised in started:
            kill_session(supervised.identity)
            supervised.phase = ServicePhase.ENDED

    def _write(self, failure: ServiceFailure | None = None) -> None:
        own = own_process()
        state = SupervisorState(
            own.pid, own.started, failure, tuple(supervised.state() for supervised in self._supervised)
        )
        if state != self._written:
            write_state(self._settings, state)
            self._written = state


def supervise(settings: Settings, *, spark_only: bool = False) -> None:
    """Run the services of ``settings`` in this process until SIGTERM or SIGINT."""
    supervisor = Supervisor(settings, local_services(settings, spark_only=spark_only), RestartPolicy())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, supervisor.stop)
    supervisor.run()


@contextmanager
def _home_lock(settings: Settings) -> Iterator[None]:
    settings.home_path.mkdir(parents=True, exist_ok=True)
    with (settings.home_path / "supervisor.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyUp(settings.home) from None
        yield


@contextmanager
def _guard(settings: Settings) -> Iterator[None]:
    command = [sys.executable, "-m", "stagehold.local.guard"]
    guard = subprocess.Popen(
        command, env=dict(python_environment(settings)), stdin=subprocess.PIPE, start_new_session=True
    )
    try:
        yield
    finally:
        guard.communicate()


@dataclass(frozen=True)
class RestartPolicy:
    """The n-th crash within ``window`` seconds waits for the n-th delay; one more than there are delays is the last.

    A service that was never ready gets ``first_tries`` starts only: what keeps it from starting will not go away by
    itself.
    """

    delays: tuple[float, ...] = (0.0, 1.0, 2.0, 5.0, 10.0, 15.0)
    window: float = 120.0
    first_tries: int = 2

    def delay(self, crashes: Sequence[float], now: float, *, was_ready: bool) -> float | None:
        """Seconds to wait before the next start; None to give up.

        :param crashes: when the service ended, the present time included, on the clock of ``now``.
        """
        if not was_ready and len(crashes) >= self.first_tries:
            return None
        recent = sum(now - crash < self.window for crash in crashes)
        return self.delays[recent - 1] if 0 < recent <= len(self.delays) else None


def prepare_database(settings: Settings) -> None:
    """Have this Airflow version's schema in the home's database, and the pool with the slots that are set.

    At once when both are there, quick when the database is new.
    """
    _prepare_schema(settings)
    if settings.spark_slots:
        with closing(sqlite3.connect(airflow_database(settings))) as database, database:
            database.execute(POOL, (SPARK_POOL, settings.spark_slots))


def _prepare_schema(settings: Settings) -> None:
    database, marker, template = airflow_database(settings), airflow_home(settings) / "migrated", _template(settings)
    if database.exists() and marker.exists() and marker.read_text() == _version():
        return
    if not database.exists() and template.exists():
        _copy(template, database)
    else:
        fresh = not database.exists()
        _airflow(settings, "db", "migrate")
        if fresh:  # before anything of this home's own is in it
            _copy(database, template)
    marker.write_text(_version())


def _airflow(settings: Settings, *words: str) -> None:
    command, log = [sys.executable, "-m", "airflow", *words], settings.home_path / "logs" / f"airflow-{words[0]}.log"
    code = start_process(
        command, environment=service_environment(settings), folder=airflow_home(settings), log=log
    ).wait()
    if code:
        last_lines = log.read_text(errors="replace").splitlines()[-8:]
        raise ServicesFailed(f"airflow {words[0]} {words[1]}", f"failed with code {code}", last_lines)


def _copy(source: Path, target: Path) -> None:
    """Whole or not at all, and with what SQLite still has in its write-ahead log."""
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(draft)) as new:
        old.backup(new)
    draft.replace(target)


def _template(settings: Settings) -> Path:
    return Path(settings.cache) / "airflow" / f"migrated-{_version()}.db"


def _version() -> str:
    return version("apache-airflow-core")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    supervise(load_settings(), spark_only=SPARK_ONLY in sys.argv)
