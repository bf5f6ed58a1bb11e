"""`stagehold status`: what is up and what happened last, or what happened in one run."""

from __future__ import annotations

from typing import Annotated

import typer

from stagehold.cli.common.request import AsJson
from stagehold.settings import load_settings

RunName = Annotated[
    str | None,
    typer.Argument(metavar="[RUN]", help="Id of a run. Default: the services and the newest runs of all pipelines."),
]


Trace = Annotated[bool, typer.Option("--trace", help="Of a run: print the whole trace of each failure, too.")]


def status(run: RunName = None, trace: Trace = False, as_json: AsJson = False) -> None:
    """Show what is up and the newest runs, or one run in detail."""
    from stagehold.cli.common.output import print_document
    from stagehold.cli.running.runs import recent_runs_document, show_recent_runs, show_run
    from stagehold.cli.services import services_document, show_services
    from stagehold.lake.chronicle.chronicle import open_ledger

    settings = load_settings()
    with open_ledger(settings) as ledger:
        if run is not None:
            show_run(run, ledger, settings, as_json=as_json, trace=trace)
        elif as_json:
            print_document({**services_document(settings), **recent_runs_document(ledger)})
        else:
            show_services(settings)
            show_recent_runs(ledger, settings)
