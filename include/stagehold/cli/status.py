"""`stagehold status`: what is up and what happened last, or what happened in one run."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stagehold.cli.common.output import ShownTable, moment, print_document, tell_target
from stagehold.cli.common.request import AsJson
from stagehold.settings import Settings, load_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stagehold.ledger.ledger import Ledger
    from stagehold.model.records import Run
    from stagehold.run.lease.lost_attempts import Loss

SHOWN_RUNS = 20
NO_RUNS = (
    "There are no runs yet. `stagehold run PIPELINE` makes one here; `stagehold up` starts Airflow to make them there."
)

RunName = Annotated[
    str | None,
    typer.Argument(metavar="[RUN]", help="Id of a run. Default: the services and the newest runs of all pipelines."),
]
Trace = Annotated[bool, typer.Option("--trace", help="Of a run: print the whole trace of each failure, too.")]


def status(run: RunName = None, trace: Trace = False, as_json: AsJson = False) -> None:
    """Show what is up and the newest runs, or one run in detail."""
    from stagehold.chronicle.chronicle import open_ledger
    from stagehold.cli.service_commands import services_document, show_services

    settings = load_settings()
    if not as_json:
        tell_target(settings)
    with open_ledger(settings) as ledger:
        if run is not None:
            from stagehold.cli.run_report import show_run

            show_run(run, ledger, settings, as_json=as_json, trace=trace)
        elif as_json:
            target = {"target": settings.target} if settings.target else {}
            print_document({**target, **services_document(settings), **recent_runs_document(ledger)})
        else:
            show_services(settings)
            recent_runs(ledger, settings).print()


def recent_runs_document(ledger: Ledger) -> dict[str, Any]:
    return {"runs": [{**asdict(run), "lost": asdict(loss) if loss else None} for run, loss in _runs_and_losses(ledger)]}


def recent_runs(ledger: Ledger, settings: Settings) -> ShownTable:
    columns = ("pipeline", "interval", "state", "launcher", "started", "ended", "run")
    told = _runs_and_losses(ledger)
    foot = [f"`stagehold resume {run.run_id}` goes on with a lost run." for run, loss in told if loss][:1]
    if not told:
        foot = [lost_ledger(settings) or NO_RUNS]
    rows = [_run_cells(run, loss) for run, loss in told]
    return ShownTable("Newest runs (times in UTC)", columns, rows, tuple(foot))


def _runs_and_losses(ledger: Ledger) -> Sequence[tuple[Run, Loss | None]]:
    """The newest runs. Who only looks at runs that have ended does not wait for what tells losses to be imported."""
    from stagehold.model.states import RUN

    recent = ledger.runs.recent(SHOWN_RUNS)
    if all(RUN.is_terminal(run.state) for run in recent):
        return [(run, None) for run in recent]
    from stagehold.run.lease.lost_attempts import run_loss

    return [(run, run_loss(run, ledger)) for run in recent]


def lost_ledger(settings: Settings) -> str | None:
    """What to say of a ledger without runs, if there were any."""
    from stagehold.chronicle.chronicle import is_chronicled

    if not is_chronicled(settings.lake_uri):
        return None
    known = f"the lake {settings.lake_uri} knows some"
    return f"The ledger has no runs, but {known}: `stagehold reconcile` rebuilds the ledger."


def _run_cells(run: Run, lost: Loss | None) -> tuple[str, ...]:
    from stagehold.cli.common.lease_texts import state_of_run

    state, times = state_of_run(run, lost), (moment(run.started_at), moment(run.ended_at))
    return run.pipeline, run.interval, state, run.launcher, *times, run.run_id
