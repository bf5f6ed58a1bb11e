"""`stagehold up` and `stagehold down`, and the services part of `stagehold status`."""

from __future__ import annotations

import time
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

import typer

from stagehold.cli.common.output import moment, print_progress, print_table
from stagehold.errors import InvalidArgument
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
        "spark_users": [asdict(user) for user in server_users(settings)],
    }


def show_services(settings: Settings) -> None:
    """Print the services of `stagehold up`, or that there are none, and who uses the Spark server."""
    from stagehold.spark.server.server_record import server_users

    state = known_state(settings)
    _print_services(state)
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
