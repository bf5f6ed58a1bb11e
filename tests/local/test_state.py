from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from stagehold.local.state import (
    ServiceFailure,
    ServicePhase,
    ServiceState,
    SupervisorState,
    known_state,
    living_supervisor,
    read_state,
    remove_state,
    state_file,
    write_state,
)
from stagehold.settings import Settings
from stagehold.spark.processes import identify

SERVICE = ServiceState(
    name="spark",
    phase=ServicePhase.RUNNING,
    address="sc://127.0.0.1:1",
    restarts=1,
    since="2026-01-01T00:00:00+00:00",
    pid=2,
    started=3,
)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=str(tmp_path))


@pytest.fixture
def state() -> SupervisorState:
    """Of a supervisor that lives: this process."""
    own = identify(os.getpid())
    assert own is not None
    return SupervisorState(own.pid, own.started, None, (SERVICE,))


@pytest.mark.parametrize("failure", [None, ServiceFailure("spark", "ended 7 times", ("line 1", "line 2"))])
def test_what_is_written_is_read_back(
    settings: Settings, state: SupervisorState, failure: ServiceFailure | None
) -> None:
    write_state(settings, replace(state, failure=failure))
    assert read_state(settings) == replace(state, failure=failure)
    assert stat.S_IMODE(state_file(settings).stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"pid": 1}', '{"services": [{"phase": "flying"}]}', '{"services": [{}]}']
)
def test_a_file_that_cannot_be_read_is_as_good_as_none(settings: Settings, text: str) -> None:
    state_file(settings).write_text(text)
    assert read_state(settings) is None


def test_a_file_that_is_not_there_is_none_and_removing_it_says_nothing(settings: Settings) -> None:
    remove_state(settings)
    assert read_state(settings) is None


def test_a_supervisor_lives_while_its_very_process_does(settings: Settings, state: SupervisorState) -> None:
    write_state(settings, state)
    assert living_supervisor(settings) == state
    write_state(settings, replace(state, started=state.started - 1))
    assert living_supervisor(settings) is None


def test_the_services_of_a_supervisor_that_is_gone_are_shown_as_ended(
    settings: Settings, state: SupervisorState
) -> None:
    write_state(settings, replace(state, started=state.started - 1))
    known = known_state(settings)
    assert known is not None
    assert [service.phase for service in known.services] == [ServicePhase.ENDED]


@pytest.mark.parametrize(
    ("phases", "ready"),
    [
        ([], False),
        ([ServicePhase.RUNNING], True),
        ([ServicePhase.RUNNING, ServicePhase.STARTING], False),
        ([ServicePhase.RUNNING, ServicePhase.WAITING], False),
    ],
)
def test_all_is_ready_when_every_service_is(state: SupervisorState, phases: list[ServicePhase], ready: bool) -> None:
    assert replace(state, services=tuple(replace(SERVICE, phase=phase) for phase in phases)).ready is ready
