"""`stagehold demo`: see a run fail and go on, in a few minutes, on this machine."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from stagehold.cli.common.output import print_document, print_progress
from stagehold.cli.common.request import AsJson
from stagehold.settings import Settings, load_settings

if TYPE_CHECKING:
    from stagehold.local.demo.demo_run import DemoReport

Scale = Annotated[
    float, typer.Option("--scale", min=0.001, help="TPC-H scale factor of the sample data; 1 is about a gigabyte.")
]


def demo(scale: Scale = 0.05, as_json: AsJson = False) -> None:
    """Make a real run fail half-way, resume it, and compare its result with DuckDB's."""
    from stagehold.local.demo.demo_run import run_demo

    settings = load_settings()
    report = run_demo(settings, scale, print_progress)
    if as_json:
        print_document(asdict(report))
    else:
        _print_report(report, settings)
    raise typer.Exit(0 if report.equal else 1)


def _print_report(report: DemoReport, settings: Settings) -> None:
    from stagehold.local.airflow_configuration import USER, admin_password, airflow_url

    equal = "yes" if report.equal else "NO"
    seconds = f"First part {report.first_seconds:.0f} s, second part {report.second_seconds:.0f} s"
    lines = (
        f"The run failed at stage {report.failed_stage} after {report.consumable} of {report.total} partitions.",
        "(A fault was switched on for the demo.)",
        f"Resumed: reused {report.reused} partitions, ran {report.computed}.",
        f"{seconds}; a full rerun takes {report.full_seconds:.0f} s (measured).",
        f"Result equal to DuckDB: {equal}",
        "",
        f"Airflow is up: {airflow_url(settings)}/dags/shipping_priority/runs/{report.run_id}",
        f"User {USER}, password {admin_password(settings)}. Look at the run's Stagehold tab.",
        "`make down` stops it; `make clean` also removes all state.",
    )
    for line in ("", *lines):
        typer.echo(line)
