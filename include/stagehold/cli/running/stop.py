"""`stagehold suspend` and `stagehold cancel`: stop a run that goes on, behind its waves or at once."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from stagehold.cli.common.output import print_document
from stagehold.cli.common.request import AsJson
from stagehold.errors import RunNotUnderWay
from stagehold.settings import Settings, load_settings

if TYPE_CHECKING:
    from stagehold.ledger.ledger import Ledger
    from stagehold.model.records import Attempt, Run

RunId = Annotated[str, typer.Argument(metavar="RUN", help="The run, as `stagehold status` lists it.")]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Do not wait until nobody is at work for it any more.")]


def suspend(run_id: RunId, no_wait: NoWait = False, as_json: AsJson = False) -> None:
    """End a run behind the waves that are under way; `stagehold resume` goes on from there."""
    from stagehold.chronicle.chronicle import open_ledger
    from stagehold.run.stopping.stopping import suspend_run

    with open_ledger(load_settings()) as ledger:
        suspend_run(run_id, ledger)
        _tell(_ended(run_id, ledger, "ends behind its wave", no_wait=no_wait), as_json=as_json)


def cancel(run_id: RunId, no_wait: NoWait = False, as_json: AsJson = False) -> None:
    """End a run at once; what is consumable is kept.

    A run of Airflow is marked as failed there, which stops its tasks.
    """
    from stagehold.chronicle.chronicle import open_ledger
    from stagehold.run.stopping.stopping import cancel_run_here, refuse_over

    settings = load_settings()
    with open_ledger(settings) as ledger:
        run = ledger.runs.get(run_id)
        refuse_over(run)
        if run.launcher == "airflow":
            _fail_in_airflow(run_id, settings)
            with suppress(RunNotUnderWay):  # what Airflow stopped, or Airflow itself, has recorded the end meanwhile
                cancel_run_here(run_id, ledger)
        else:
            cancel_run_here(run_id, ledger)
        _tell(_ended(run_id, ledger, "is being interrupted", no_wait=no_wait), as_json=as_json)


def _fail_in_airflow(run_id: str, settings: Settings) -> None:
    from stagehold.airflow.context.dag_places import DagPlace
    from stagehold.local.airflow_access import airflow_client

    place, airflow_run_id = DagPlace.of_run(run_id)
    with airflow_client(settings) as airflow:
        airflow.fail_run(place.dag_id, airflow_run_id)


def _ended(run_id: str, ledger: Ledger, what_happens: str, *, no_wait: bool) -> Run:
    from stagehold.run.stopping.stopping import await_stop

    if no_wait:
        return ledger.runs.get(run_id)

    def tell(attempt: Attempt) -> None:
        typer.echo(f"{attempt.subject} {what_happens}", err=True)

    return await_stop(run_id, ledger, tell, time.sleep)


def _tell(run: Run, *, as_json: bool) -> None:
    if as_json:
        print_document({"run": asdict(run)})
    else:
        typer.echo(
            f"{run.run_id} is {run.state}. What is consumable is kept; `stagehold resume {run.run_id}` goes on from "
            "there."
        )
