"""`stagehold status`: what happened last, or in one run."""

from __future__ import annotations

from typing import Annotated

import typer

from stagehold.cli.request import AsJson
from stagehold.settings import load_settings

RunName = Annotated[str | None, typer.Argument(metavar="[RUN]", help="Id of a run. Default: the newest runs of all pipelines.")]


def status(run: RunName = None, as_json: AsJson = False) -> None:
    """Show the newest runs, or one run in detail."""
    from stagehold.cli.runs import show_recent_runs, show_run
    from stagehold.ledger.ledger import Ledger

    settings = load_settings()
    with Ledger.open(settings.ledger_url) as ledger:
        if run is None:
            show_recent_runs(ledger, as_json=as_json)
        else:
            show_run(run, ledger, as_json=as_json)
