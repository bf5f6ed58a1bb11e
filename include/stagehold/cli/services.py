"""`stagehold up` and `stagehold down`, and the services part of `stagehold status`."""

from __future__ import annotations

import time
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

import typer

from stagehold.cli.output import moment, print_table
from stagehold.local.state import ServicePhase, ServiceState
from stagehold.settings import Settings, load_settings

Foreground = Annotated[
    bool, typer.Option("--foreground", help="Stay until Ctrl-C or `stagehold down` instead of returning when all is ready.")
]


def up(foreground: Foreground = False) -> None:
    """Start Spark and Airflow on this machine; says where Airflow is and how to log in."""
    from stagehold.local.control import living_supervisor, require_free_ports, start_supervisor
    from stagehold.local.supervisor import supervise

    settings = load_settings()
    if living_supervisor(settings):
        typer.echo("Already up.")
        _print_access(settings)
    elif foreground:
        require_free_ports(settings)
        _print_access(settings)
        supervise(settings)
    else:
        begun = time.monotonic()
        start_supervisor(settings, lambda line: typer.echo(line, err=True))
        typer.echo(f"Up after {time.monotonic() - begun:.0f} s.")
        _print_access(settings)


def down() -> None:
    """Stop what `stagehold up` started; returns when nothing of it is left."""
    from stagehold.local.control import stop_supervisor

    begun = time.monotonic()
    stopped = stop_supervisor(load_settings())
    typer.echo(f"Stopped after {time.monotonic() - begun:.0f} s." if stopped else "Nothing was up.")


def services_document(settings: Settings) -> dict[str, Any]:
    """The services part of `stagehold status --json`."""
    from stagehold.local.control import known_state

    state = known_state(settings)
    return {
        "services": [_service_document(service) for service in state.services] if state else [],
        "failure": asdict(state.failure) if state and state.failure else None,
    }


def show_services(settings: Settings) -> None:
    """Print the services of `stagehold up`, or that there are none."""
    from stagehold.local.control import known_state

    state = known_state(settings)
    if state is None:
        typer.echo("Spark and Airflow are not up; `stagehold up` starts them.")
        return
    print_table("Services (times in UTC)", ("service", "state", "pid", "restarts", "since", "address"), map(_cells, state.services))
    if state.failure:
        typer.echo(f"They were stopped: {state.failure.service} {state.failure.what}. `stagehold up` starts them again.")


def _print_access(settings: Settings) -> None:
    from stagehold.local.airflow_settings import USER, admin_password, airflow_url

    typer.echo(f"Airflow: {airflow_url(settings)}  user {USER}  password {admin_password(settings)}")
    typer.echo("`stagehold status` shows what runs, `stagehold down` stops it.")


def _cells(service: ServiceState) -> tuple[str, ...]:
    pid = "" if service.phase is ServicePhase.ENDED else str(service.pid)
    return service.name, service.phase, pid, str(service.restarts), moment(datetime.fromisoformat(service.since)), service.address


def _service_document(service: ServiceState) -> dict[str, Any]:
    document = asdict(service)
    document["state"] = document.pop("phase")
    del document["started"]  # only tells the pid's owners apart
    return document
