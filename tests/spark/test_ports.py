from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from stagehold.errors import PortTaken
from stagehold.spark.ports import is_free, require_free, usual_or_free


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_port_that_nothing_listens_on_is_accepted(taken: int) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    require_free(free, service="Airflow", setting="STAGEHOLD_AIRFLOW_PORT")


def test_a_taken_port_is_refused_with_the_setting_and_a_port_that_works(taken: int) -> None:
    with pytest.raises(PortTaken) as caught:
        require_free(taken, service="Airflow", setting="STAGEHOLD_AIRFLOW_PORT")
    assert caught.value.port == taken
    assert is_free(caught.value.free)
    assert f"Port {taken}, which Airflow wants, is taken" in str(caught.value)
    assert f"STAGEHOLD_AIRFLOW_PORT={caught.value.free}" in str(caught.value)


def test_where_the_usual_port_is_taken_another_one_is(taken: int) -> None:
    other = usual_or_free(taken)
    assert other != taken
    assert usual_or_free(other) == other


def test_a_port_of_a_service_that_has_just_stopped_is_free() -> None:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as every server does
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            answered, _ = listener.accept()
            answered.close()  # this side closes first, so the connection lingers on the listener's port
    assert is_free(port)


def test_a_port_that_may_not_be_used_at_all_is_not_called_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with pytest.raises(PermissionError):
        is_free(80)
