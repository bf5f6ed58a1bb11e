"""Start, find and stop the supervisor from another process."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

from stagehold.errors import ServerInUse, ServicesFailed
from stagehold.extras import Extra, require
from stagehold.local.guard import end_leftovers
from stagehold.local.state import ServicePhase, SupervisorState, living_supervisor, read_state, remove_state
from stagehold.local.supervisor import SPARK_ONLY
from stagehold.settings import Settings
from stagehold.spark.ports import require_free
from stagehold.spark.processes import python_environment, wait_until
from stagehold.spark.server.server import running_server, stop_if_unused, stop_server
from stagehold.spark.server.server_record import server_users

READY_SECONDS = 240.0
STOP_SECONDS = 30.0
POLL_SECONDS = 0.1

Progress = Callable[[str], None]

log = logging.getLogger(__name__)


def require_free_ports(settings: Settings, *, spark_only: bool = False) -> None:
    """Refuse before anything is started.

    :raises PackageMissing: Spark would be started here, and is not installed whole.
    :raises ServerInUse: runs of this home have a Spark server of their own now.
    :raises PortTaken: it names the setting.
    """
    if not settings.spark_remote:
        require(Extra.SERVER)
        stop_if_unused(settings)
        if running_server(settings):
            raise ServerInUse([str(user) for user in server_users(settings)])
        if settings.spark_port:
            require_free(settings.spark_port, service="the Spark Connect server", setting="STAGEHOLD_SPARK_PORT")
    if spark_only:
        return
    require_free(settings.airflow_port, service="Airflow's api-server", setting="STAGEHOLD_AIRFLOW_PORT")


def start_supervisor(settings: Settings, progress: Progress = log.info, *, spark_only: bool = False) -> SupervisorState:
    """Start a supervisor that outlives this process; returns when every service is ready.

    :param progress: is told of each service that became ready.

    :raises PortTaken: nothing was started.
    :raises ServicesFailed: what was started is stopped again.
    """
    require_free_ports(settings, spark_only=spark_only)
    remove_state(settings)
    log = settings.home_path / "logs" / "supervisor.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "stagehold.local.supervisor", *([SPARK_ONLY] if spark_only else [])],
            env=dict(python_environment(settings)),
            cwd=settings.home_path,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        return _await_ready(settings, process, progress)
    except BaseException:
        stop_supervisor(settings)
        raise


def stop_supervisor(settings: Settings) -> bool:
    """Stop the supervisor and everything it runs, and the Spark server of runs; False when none was there.

    Either way nothing is left afterwards.
    """
    state = living_supervisor(settings)
    if state:
        os.kill(state.pid, signal.SIGTERM)
        if not wait_until(lambda: not state.process.alive, STOP_SECONDS):
            os.kill(state.pid, signal.SIGKILL)
    end_leftovers(settings)
    remove_state(settings)
    runs_had_one = stop_server(settings)
    return state is not None or runs_had_one


def _await_ready(settings: Settings, process: subprocess.Popen[bytes], progress: Progress) -> SupervisorState:
    begun, told = time.monotonic(), set[str]()
    while (passed := time.monotonic() - begun) < READY_SECONDS:
        state = read_state(settings)
        for service in state.services if state else ():
            if service.phase is ServicePhase.RUNNING and service.name not in told:
                told.add(service.name)
                progress(f"{service.name} is ready after {passed:.0f} s")
        if state and state.ready:
            return state
        if process.poll() is not None:
            raise _failed(settings, process.returncode)
        time.sleep(POLL_SECONDS)
    raise ServicesFailed("supervisor", f"was not ready within {READY_SECONDS:.0f} s; HOME/logs tells why")


def _failed(settings: Settings, code: int) -> ServicesFailed:
    state = read_state(settings)
    if state and state.failure:
        return ServicesFailed(state.failure.service, state.failure.what, state.failure.log_lines)
    return ServicesFailed("supervisor", f"ended with code {code}; HOME/logs/supervisor.log tells why")
