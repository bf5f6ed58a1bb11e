"""The supervisor with services that cost nothing: what it starts again, when it gives up, and what it leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pytest

from stagehold.errors import AlreadyUp, ServicesFailed
from stagehold.local.state import ServicePhase, read_state
from stagehold.local.supervisor import RestartPolicy, Supervisor
from stagehold.settings import Settings
from stagehold.spark.processes import identify, start_process, wait_until

POLICY = RestartPolicy(delays=(0, 0.1), window=60)


@dataclass
class Sleeper:
    """A service that is ready as soon as it is started; ``code`` is what its process runs."""

    name: str
    folder: Path
    code: str = "import time; time.sleep(60)"
    address: str = ""
    stop_signal: signal.Signals = signal.SIGTERM
    started: list[int] = field(default_factory=list)

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    def start(self) -> subprocess.Popen[bytes]:
        process = start_process(
            [sys.executable, "-c", self.code], environment=os.environ, folder=self.folder, log=self.log
        )
        self.started.append(process.pid)
        return process

    def ready(self, since: datetime) -> bool:
        return True


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=str(tmp_path))


def phases(settings: Settings) -> list[ServicePhase]:
    state = read_state(settings)
    return [service.phase for service in state.services] if state else []


def run_while(supervisor: Supervisor, actions: Callable[[], None]) -> None:
    """Run the supervisor in this thread, as it must be, and ``actions`` in another; then stop it."""
    failures: list[BaseException] = []

    def act() -> None:
        try:
            actions()
        except BaseException as error:  # noqa: BLE001 - told to the test's own thread below
            failures.append(error)
        supervisor.stop(signal.SIGTERM, None)

    actor = threading.Thread(target=act)
    actor.start()
    supervisor.run()
    actor.join()
    if failures:
        raise failures[0]


def test_all_run_until_it_is_stopped_and_then_none_does(settings: Settings, tmp_path: Path) -> None:
    services = [Sleeper("one", tmp_path), Sleeper("two", tmp_path)]

    def watch() -> None:
        assert wait_until(lambda: phases(settings) == [ServicePhase.RUNNING] * 2, 10)

    run_while(Supervisor(settings, services, POLICY), watch)
    assert phases(settings) == [ServicePhase.ENDED] * 2
    assert [identify(pid) for service in services for pid in service.started] == [None, None]


def test_a_service_that_is_killed_is_started_again_and_the_others_are_not(settings: Settings, tmp_path: Path) -> None:
    services = [Sleeper("one", tmp_path), Sleeper("two", tmp_path)]

    def kill_one() -> None:
        assert wait_until(lambda: phases(settings) == [ServicePhase.RUNNING] * 2, 10)
        os.kill(services[0].started[0], signal.SIGKILL)
        assert wait_until(lambda: len(services[0].started) == 2 and phases(settings) == [ServicePhase.RUNNING] * 2, 10)

    run_while(Supervisor(settings, services, POLICY), kill_one)
    state = read_state(settings)
    assert state is not None
    assert [service.restarts for service in state.services] == [1, 0]
    assert len(services[1].started) == 1


def test_when_one_crashes_too_often_all_are_stopped_and_the_reason_is_kept(settings: Settings, tmp_path: Path) -> None:
    # It lives long enough to be seen ready: one that never was is given up sooner.
    broken = Sleeper(
        "broken", tmp_path, code="import time; print('no such thing', flush=True); time.sleep(0.5); raise SystemExit(3)"
    )
    healthy = Sleeper("healthy", tmp_path)
    with pytest.raises(ServicesFailed, match="broken ended 3 times, last with code 3"):
        Supervisor(settings, [broken, healthy], POLICY).run()
    state = read_state(settings)
    assert state is not None
    assert state.failure is not None
    assert (state.failure.service, state.failure.log_lines) == ("broken", ("no such thing",))
    assert [identify(pid) for pid in healthy.started] == [None]


def test_a_second_supervisor_of_one_home_is_refused(settings: Settings, tmp_path: Path) -> None:
    def start_second() -> None:
        assert wait_until(lambda: phases(settings) == [ServicePhase.RUNNING], 10)
        with pytest.raises(AlreadyUp):
            Supervisor(settings, [], POLICY).run()

    run_while(Supervisor(settings, [Sleeper("one", tmp_path)], POLICY), start_second)


def test_a_stop_waits_for_no_back_off(settings: Settings, tmp_path: Path) -> None:
    service = Sleeper("one", tmp_path)

    def kill() -> None:
        assert wait_until(lambda: phases(settings) == [ServicePhase.RUNNING], 10)
        os.kill(service.started[0], signal.SIGKILL)
        assert wait_until(lambda: phases(settings) == [ServicePhase.WAITING], 10)

    run_while(Supervisor(settings, [service], RestartPolicy(delays=(100_000,))), kill)
