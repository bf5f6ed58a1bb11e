"""`stagehold up` and `stagehold down`, and the services part of `stagehold status`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import typer

from stagehold.cli.common.output import moment, print_progress, print_table
from stagehold.errors import InvalidArgument, StageholdError, Transient
from stagehold.local.state import ServicePhase, ServiceState, SupervisorState, known_state, living_supervisor
from stagehold.settings import Settings, load_settings

Foreground = Annotated[
    bool,
    typer.Option("--foreground", help="Stay until Ctrl-C or `stagehold down` instead of returning when all is ready."),
]


SparkOnly = Annotated[
    bool,
    typer.Option(
        "--spark-only",
        help="Keep only a Spark server, which `stagehold run` then finds warm: each run starts 10 s sooner.",
    ),
]


def up(foreground: Foreground = False, spark_only: SparkOnly = False) -> None:
    """Start Spark and Airflow on this machine; says where Airflow is and how to log in."""
    from stagehold.local.control import require_free_ports, start_supervisor
    from stagehold.local.supervisor import supervise

    settings = load_settings()
    if settings.sandbox and not spark_only:
        raise InvalidArgument("STAGEHOLD_SANDBOX", settings.sandbox, "nothing: Airflow runs production")
    if spark_only and settings.spark_remote:
        raise InvalidArgument(
            "--spark-only", "given", "a home without STAGEHOLD_SPARK_REMOTE, whose server somebody else runs"
        )
    if living := living_supervisor(settings):
        typer.echo("Already up.")
        _print_access(settings, spark_only=all(service.name == "spark" for service in living.services))
    elif foreground:
        require_free_ports(settings, spark_only=spark_only)
        _print_access(settings, spark_only=spark_only)
        supervise(settings, spark_only=spark_only)
    else:
        begun = time.monotonic()
        start_supervisor(settings, print_progress, spark_only=spark_only)
        typer.echo(f"Up after {time.monotonic() - begun:.0f} s.")
        _print_access(settings, spark_only=spark_only)


def down() -> None:
    """Stop what `stagehold up` started, and the Spark server of runs; returns when nothing of it is left."""
    from stagehold.local.control import stop_supervisor

    begun = time.monotonic()
    stopped = stop_supervisor(load_settings())
    typer.echo(f"Stopped after {time.monotonic() - begun:.0f} s." if stopped else "Nothing was up.")


def services_document(settings: Settings) -> dict[str, Any]:
    """The services part of `stagehold status --json`."""
    from stagehold.spark.server.server_record import server_users

    state = known_state(settings)
    return {
        "services": [_service_document(service) for service in state.services] if state else [],
        "failure": asdict(state.failure) if state and state.failure else None,
        "elsewhere": [asdict(service) for service in services_elsewhere(settings)],
        "spark_users": [asdict(user) for user in server_users(settings)],
    }


class StateElsewhere(StrEnum):
    """How a service is that somebody else runs, seen from here."""

    ANSWERS = "answers"
    SILENT = "does not answer"
    MISCONFIGURED = "set wrongly"


@dataclass(frozen=True)
class ServiceElsewhere:
    """A service that somebody else runs; ``known`` is what it says of itself, or why it says nothing."""

    service: str
    state: StateElsewhere
    address: str
    known: str


def services_elsewhere(settings: Settings) -> Iterator[ServiceElsewhere]:
    """What is known of a Spark server and an Airflow that settings, or Airflow's configuration, name."""
    from stagehold.local.airflow_access import url_elsewhere

    if settings.spark_remote:
        from stagehold.spark.session.remote_server import without_token

        address = without_token(settings.spark_remote).partition("/;")[0]
        yield _asked("spark", address, lambda: _spark_elsewhere(settings))
    if url := url_elsewhere(settings):
        yield _asked("airflow", url, lambda: _airflow_elsewhere(url, settings))


def _asked(service: str, address: str, ask: Callable[[], str]) -> ServiceElsewhere:
    try:
        return ServiceElsewhere(service, StateElsewhere.ANSWERS, address, ask())
    except StageholdError as error:
        silent = isinstance(error, Transient)
        state = StateElsewhere.SILENT if silent else StateElsewhere.MISCONFIGURED
        return ServiceElsewhere(service, state, address, str(error))


def _spark_elsewhere(settings: Settings) -> str:
    from stagehold.spark.session.sessions import remote_version

    return f"Spark {remote_version(settings)}"


def _airflow_elsewhere(url: str, settings: Settings) -> str:
    """Its parts as it sees them, and whether commands are let in."""
    from stagehold.local.airflow_access import airflow_client
    from stagehold.local.airflow_elsewhere import health

    parts = ", ".join(f"{name} {state}" for name, state in health(url).items())
    with airflow_client(settings) as airflow:
        airflow.plugin_health()
    return f"{parts}; commands are let in"


def show_services(settings: Settings) -> None:
    """Print the services of `stagehold up`, or that there are none, those that somebody else runs, and who uses the
    Spark server.
    """
    from stagehold.spark.server.server_record import server_users

    state, others = known_state(settings), tuple(services_elsewhere(settings))
    if state or not others:
        _print_services(state)
    if others:
        rows = ((other.service, str(other.state), other.address) for other in others)
        print_table("Services that somebody else runs", ("service", "state", "address"), rows)
        for other in others:
            typer.echo(f"{other.service}: {other.known}")
    users = server_users(settings)
    if users:
        rows = ((user.purpose, str(user.pid), moment(datetime.fromisoformat(user.since))) for user in users)
        print_table("Users of the Spark server", ("who", "pid", "since"), rows)


def _print_services(state: SupervisorState | None) -> None:
    if state is None:
        typer.echo("Spark and Airflow are not up; `stagehold up` starts them.")
        return
    print_table(
        "Services (times in UTC)",
        ("service", "state", "pid", "restarts", "since", "address"),
        map(_cells, state.services),
    )
    if state.failure:
        typer.echo(
            f"They were stopped: {state.failure.service} {state.failure.what}. `stagehold up` starts them again."
        )


def _print_access(settings: Settings, *, spark_only: bool) -> None:
    from stagehold.local.airflow_configuration import USER, admin_password, airflow_url

    if spark_only:
        typer.echo("Spark alone is up. `stagehold down`, then `stagehold up`, starts Airflow as well.")
    else:
        typer.echo(f"Airflow: {airflow_url(settings)}  user {USER}  password {admin_password(settings)}")
    typer.echo("`stagehold status` shows what runs, `stagehold down` stops it.")


def _cells(service: ServiceState) -> tuple[str, ...]:
    pid = "" if service.phase is ServicePhase.ENDED else str(service.pid)
    return (
        service.name,
        service.phase,
        pid,
        str(service.restarts),
        moment(datetime.fromisoformat(service.since)),
        service.address,
    )


def _service_document(service: ServiceState) -> dict[str, Any]:
    document = asdict(service)
    document["state"] = document.pop("phase")
    del document["started"]  # only tells the pid's owners apart
    return document
