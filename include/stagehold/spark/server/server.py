"""The one local Spark Connect server per STAGEHOLD_HOME: started, found again and stopped by us, never by hand."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import IO

from stagehold.errors import SparkUnavailable
from stagehold.settings import SECRET_PREFIX, Settings
from stagehold.spark.ports import usual_or_free
from stagehold.spark.processes import (
    foreign_environment,
    identify,
    own_process,
    python_environment,
    start_process,
    stop_session,
    wait_until,
)
from stagehold.spark.server.class_archive import ArchiveMaking, ArchivePlace, archive_place, begin_making, whole_archive
from stagehold.spark.server.configuration import (
    ADDRESS,
    USUAL_PORT,
    class_path,
    on_this_machine,
    require_submittable,
    scala_version,
    server_command,
    server_fingerprint,
    spark_home,
    workers_python,
    write_configuration,
)
from stagehold.spark.server.java import java_home
from stagehold.spark.server.python_daemon import STACKS
from stagehold.spark.server.server_record import (
    ServerState,
    begin_use,
    python_stacks,
    read_state,
    remove_state,
    server_folder,
    server_log,
    server_users,
    using,
    write_state,
)

STOP_SECONDS = 10.0
PORT_SECONDS = 3.0  # for the system to take back the port of a server that has just ended
LOG_LINES = 8
TRIES = 2  # starts of a server whose keeper is killed

log = logging.getLogger(__name__)

READY = "ready"  # what a keeper says when all is well

# Keepers that this process started: their parent has to reap them.
_keepers: list[subprocess.Popen[bytes]] = []


class LaunchedServer:
    """A server's process, and the one that sends it the first queries; whoever launched them has to reap both."""

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        warm_up: subprocess.Popen[bytes],
        state: ServerState,
        making: ArchiveMaking | None,
    ) -> None:
        """:param making: of an archive of classes, when the server ends by itself."""
        self.child, self.warm_up, self.state, self.making = child, warm_up, state, making

    def ready(self) -> bool:
        """Whether the first queries were answered; a server that fails them is killed. Does not wait."""
        if self.warm_up.poll():
            self.child.kill()
        return self.warm_up.returncode == 0 and self.child.poll() is None

    def stop_warm_up(self) -> None:
        self.warm_up.kill()
        self.warm_up.wait()


def running_server(settings: Settings) -> ServerState | None:
    """The server of this home, if its process lives and its port answers; it may still be warming up."""
    state = read_state(settings)
    return state if state and state.process.alive and port_answers(state.port) else None


def start_server(
    settings: Settings, purpose: str = "a program of yours", meanwhile: Callable[[], object] | None = None
) -> ServerState:
    """Find or start the server of this home; returns when a query has been answered.

    From now on this process is one of its users, and it stays for as long as one of them lives; `spark_server` ends the
    use sooner. Of two processes that start one at once, the second finds the first's. One with another configuration is
    replaced if nobody else uses it. One that is killed while it starts is started again, once, and so is its keeper.

    :param meanwhile: is called while Java starts, which leaves a core idle; not if a server is found.
    :raises SparkUnavailable: it did not start, or others use one with another configuration.
    """
    begin_use(settings, purpose)
    with start_lock(settings) as lock:
        for _ in range(TRIES):
            _end_left_server(settings)
            if server := _usable_server(settings):
                return server
            keeper = _start_keeper(settings, lock)
            if meanwhile:
                meanwhile()
            if server := _started_by(keeper, settings):
                return server
    raise SparkUnavailable("its keeper was killed twice while the server started.")


def _end_left_server(settings: Settings) -> None:
    """A server whose keeper was killed is itself being killed by the kernel. It may still answer, but is of no use."""
    state = read_state(settings)
    if state is not None and not state.keeper.alive:
        stop_server(settings)


def _start_keeper(settings: Settings, lock: IO[str]) -> subprocess.Popen[bytes]:
    """Begin a keeper, which starts the server. A keeper is soon nobody's child, so that the server does not end with
    one of its users.

    The keeper holds the lock as well, until the server is ready: if this process is killed meanwhile, whoever comes
    next waits for that server and starts no second one beside it.
    """
    _require_startable(settings)
    log_file = _keeper_log(settings)
    log_file.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "stagehold.spark.server.keeper", str(lock.fileno())]
    with log_file.open("wb") as errors:
        keeper = subprocess.Popen(
            command,
            env=dict(python_environment(settings)),
            cwd=server_folder(settings),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
            pass_fds=(lock.fileno(),),
        )
    _keepers.append(keeper)
    import_module("pyspark.sql.connect.session")  # whoever waits for a server needs it next, and it takes a second
    return keeper


def _started_by(keeper: subprocess.Popen[bytes], settings: Settings) -> ServerState | None:
    """Wait for the server that the keeper starts; None if the keeper was killed meanwhile.

    :raises SparkUnavailable: it did not start.
    """
    assert keeper.stdout is not None
    with keeper.stdout as answer:
        word, *log_lines = json.loads(answer.readline() or "[]") or (
            "its keeper ended; the end of its log:",
            *_last_lines(_keeper_log(settings)),
        )
    state = read_state(settings)
    if word != READY or state is None:
        if keeper.wait() == -signal.SIGKILL:
            return None
        raise SparkUnavailable(word, log_lines)
    return state


def _keeper_log(settings: Settings) -> Path:
    return server_log(settings).with_name("spark-keeper.log")


def launch_server(settings: Settings, *, kept_up: bool) -> LaunchedServer:
    """Start the server's process and return at once; it can be used when it is `ready`, some seconds later.

    It dies with the calling thread. ``kept_up`` says that it stays though nobody uses it.
    """
    home = _require_startable(settings)
    chosen = replace(settings, spark_port=settings.spark_port or usual_or_free(USUAL_PORT))
    folder = server_folder(settings)
    shutil.rmtree(folder / "local", ignore_errors=True)  # a killed server leaves its shuffle files behind
    token = secrets.token_hex(32)
    jars = class_path(settings)
    options, making = _archive_options(archive_place(settings, home, jars), kept_up=kept_up)
    child = start_process(
        server_command(chosen, home, jars, options),
        environment=server_environment(chosen, home, token),
        folder=folder,
        log=server_log(settings),
    )
    process = identify(child.pid)
    state = ServerState(
        pid=child.pid,
        started=process.started if process else 0,
        port=chosen.spark_port,
        token=token,
        fingerprint=server_fingerprint(settings),
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        keeper_pid=os.getpid(),
        keeper_started=own_process().started,
        kept_up=kept_up,
    )
    write_state(settings, state)
    log.info("spark server started: pid=%d port=%d fingerprint=%s", state.pid, state.port, state.fingerprint)
    return LaunchedServer(child, _start_warm_up(settings), state, making)


def _archive_options(place: ArchivePlace | None, *, kept_up: bool) -> tuple[tuple[str, ...], ArchiveMaking | None]:
    """Use the archive of classes, or else make it. A server that is kept up ends while somebody waits for its end."""
    try:
        if place and (archive := whole_archive(place)):
            return (f"-XX:SharedArchiveFile={archive}",), None
        making = begin_making(place) if place and not kept_up else None
    except OSError as error:  # a cache that cannot be written costs time, and nothing else
        log.warning("no archive of classes: %s", error)
        making = None
    return (making.options, making) if making else ((), None)


def stop_server(settings: Settings) -> bool:
    """End the server of this home and everything it started, whoever uses it. False when there is none."""
    state = read_state(settings)
    if state is None:
        return False
    lived = state.process.alive
    stop_session(state.process, seconds=STOP_SECONDS)
    if state.keeper_pid != os.getpid():
        wait_until(lambda: not state.keeper.alive, STOP_SECONDS)
    remove_state(settings)
    _keepers[:] = [keeper for keeper in _keepers if keeper.poll() is None]
    return lived


def stop_if_unused(settings: Settings) -> None:
    """End a server that its users have left.

    A server that `stagehold up` keeps stays, and so does a server that somebody starts or stops just now.
    """
    state = read_state(settings)
    if state is None or state.kept_up or server_users(settings):
        return
    with suppress(BlockingIOError), start_lock(settings, fcntl.LOCK_NB):
        if not server_users(settings):
            stop_server(settings)


@contextmanager
def spark_server(
    settings: Settings, purpose: str = "a program of yours", meanwhile: Callable[[], object] | None = None
) -> Iterator[None]:
    """The server for the length of the block: the remote or running one, else one that ends after its last user.

    :param meanwhile: as `start_server` has it.
    """
    if settings.spark_remote:
        yield
        return
    with using(settings, purpose):
        start_server(settings, meanwhile=meanwhile)
        yield


def port_answers(port: int) -> bool:
    try:
        with socket.create_connection((ADDRESS, port), timeout=1):
            return True
    except OSError:
        return False


def _require_startable(settings: Settings) -> Path:
    """The home of its Java. Refuses what can be seen before anything is started.

    :raises PackageMissing, JavaMissing, JarsUnusable, InvalidSetting: as they say.
    """
    spark_home()
    require_submittable(settings)
    server_fingerprint(settings)
    home = java_home(settings)
    if settings.spark_port and not wait_until(lambda: not port_answers(settings.spark_port), PORT_SECONDS):
        raise SparkUnavailable(
            f"port {settings.spark_port} is taken by another program; STAGEHOLD_SPARK_PORT chooses another."
        )
    return home


def await_ready(settings: Settings, server: LaunchedServer, is_abandoned: Callable[[], bool] = lambda: False) -> None:
    """:raises SparkUnavailable: with the end of the log that tells why it never was; or everybody went meanwhile."""

    def is_over() -> bool:
        return server.child.poll() is not None or is_abandoned()

    most = settings.spark_start_seconds
    if wait_until(lambda: server.ready() or is_over(), most) and not is_over():
        return
    if server.child.poll() is None and is_abandoned():
        raise SparkUnavailable("nobody waits for it any more.")
    if server.warm_up.returncode:
        raise SparkUnavailable("the first query failed:", _last_lines(_warm_up_log(settings)))
    late = "" if server.child.poll() is not None else f" within {most} s (STAGEHOLD_SPARK_START_SECONDS)"
    raise SparkUnavailable(f"the server did not start{late}; the end of its log:", _last_lines(server_log(settings)))


def _start_warm_up(settings: Settings) -> subprocess.Popen[bytes]:
    """Start the process that sends the first queries. It loads its libraries while the server starts.

    It is a process of its own because the caller may fork later, and must not hold gRPC's threads when it does.
    """
    command, folder = [sys.executable, "-m", "stagehold.spark.session.warm_up"], server_folder(settings)
    return start_process(command, environment=python_environment(settings), folder=folder, log=_warm_up_log(settings))


def _warm_up_log(settings: Settings) -> Path:
    return server_log(settings).with_name("spark-warm-up.log")


def _last_lines(log_file: Path) -> list[str]:
    """The end of a log, without the frames of Java's stack traces."""
    lines = log_file.read_text(errors="replace").splitlines()
    return [line for line in lines if not line.lstrip().startswith("at ")][-LOG_LINES:]


def _usable_server(settings: Settings) -> ServerState | None:
    found = running_server(settings)
    if found is None or found.fingerprint == server_fingerprint(settings):
        return found
    others = [str(user) for user in server_users(settings) if user.pid != os.getpid()]
    if others or found.kept_up:
        used = f" and is used by {', '.join(others)}" if others else ""
        reason = (
            f"the running server (pid {found.pid}) was started with other settings or JARs{used}; `stagehold "
            "down` ends it."
        )
        raise SparkUnavailable(reason)
    stop_server(settings)
    return None


def server_environment(settings: Settings, home: Path, token: str) -> Mapping[str, str]:
    """The server's environment, without what this process or the machine says about Spark. The token is on no command
    line.
    """
    inherited = {
        name: text
        for name, text in foreign_environment(settings).items()
        if not name.startswith(("SPARK_", "PYSPARK_", SECRET_PREFIX))
    }
    return {
        **inherited,
        "JAVA_HOME": str(home),
        "SPARK_HOME": str(spark_home()),
        "SPARK_SCALA_VERSION": scala_version(),
        "SPARK_CONF_DIR": str(write_configuration(settings)),
        "SPARK_CONNECT_AUTHENTICATE_TOKEN": token,
        "PYSPARK_PYTHON": workers_python(settings),  # Spark Connect looks nowhere else
        STACKS: str(python_stacks(settings)),
        **({"SPARK_LOCAL_IP": ADDRESS} if on_this_machine(settings) else {}),
    }


@contextmanager
def start_lock(settings: Settings, manner: int = 0) -> Iterator[IO[str]]:
    """The lock that anybody must hold who starts or ends a server of this home. Child processes to which it is passed
    hold it too.
    """
    folder = server_folder(settings)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "start.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | manner)
        yield lock
