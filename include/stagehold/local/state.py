"""What the supervisor says about itself and its services, in HOME/supervisor.json."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from stagehold.settings import Settings
from stagehold.spark.processes import ProcessIdentity
from stagehold.spark.server.server_record import write_private


class ServicePhase(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    WAITING = "waiting"  # it crashed, and is started again after a while
    ENDED = "ended"


@dataclass(frozen=True)
class ServiceState:
    """The state of a service; ``pid`` and ``started`` are those of its newest process, which leads a session of its
    own.
    """

    name: str
    phase: ServicePhase
    address: str
    restarts: int
    since: str
    pid: int
    started: int

    @property
    def process(self) -> ProcessIdentity:
        return ProcessIdentity(self.pid, self.started)


@dataclass(frozen=True)
class ServiceFailure:
    """Why a supervisor ended by itself: the facts of a ServicesFailed."""

    service: str
    what: str
    log_lines: tuple[str, ...]


@dataclass(frozen=True)
class SupervisorState:
    """``failure`` is None for a supervisor that runs or was told to stop."""

    pid: int
    started: int
    failure: ServiceFailure | None
    services: tuple[ServiceState, ...]

    @property
    def process(self) -> ProcessIdentity:
        return ProcessIdentity(self.pid, self.started)

    @property
    def ready(self) -> bool:
        return bool(self.services) and all(service.phase is ServicePhase.RUNNING for service in self.services)


def state_file(settings: Settings) -> Path:
    return settings.home_path / "supervisor.json"


def read_state(settings: Settings) -> SupervisorState | None:
    """What was written last, be the supervisor alive or not; None when nothing usable was."""
    try:
        stored = json.loads(state_file(settings).read_text())
        services = tuple(
            ServiceState(**{**service, "phase": ServicePhase(service["phase"])}) for service in stored.pop("services")
        )
        failure = stored.pop("failure")
        return SupervisorState(**stored, services=services, failure=_failure(failure) if failure else None)
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None


def living_supervisor(settings: Settings) -> SupervisorState | None:
    state = read_state(settings)
    return state if state and state.process.alive else None


def known_state(settings: Settings) -> SupervisorState | None:
    """What was last written, with the services of a supervisor that is gone shown as ended."""
    state = read_state(settings)
    if state is None or state.process.alive:
        return state
    return replace(state, services=tuple(replace(service, phase=ServicePhase.ENDED) for service in state.services))


def write_state(settings: Settings, state: SupervisorState) -> None:
    write_private(state_file(settings), json.dumps(asdict(state), indent=2))


def remove_state(settings: Settings) -> None:
    state_file(settings).unlink(missing_ok=True)


def _failure(stored: dict[str, Any]) -> ServiceFailure:
    return ServiceFailure(stored["service"], stored["what"], tuple(stored["log_lines"]))
