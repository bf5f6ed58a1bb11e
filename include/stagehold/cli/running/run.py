"""`stagehold run`: a pipeline without Airflow, through the same attempts an Airflow task makes."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from types import FrameType
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from stagehold.cli.common.output import print_document, print_progress, print_table
from stagehold.cli.common.request import (
    AsJson,
    PipelineName,
    RunOptions,
    ShowTimings,
    keep_asked,
    request_asked,
    with_run_options,
)
from stagehold.cli.running.plan import show_plan
from stagehold.run.equipment.timings import TIMINGS, Lap
from stagehold.settings import Settings, load_settings

if TYPE_CHECKING:
    from stagehold.run.planning.keep_wishes import KeepWishes
    from stagehold.run.planning.planning import RunRequest

CANCELLED = 130  # as shells say of a program that was interrupted
TIMED_OUT = 124  # as `timeout` does
CORES_OF_ONE = 2  # of a local server: one attempt keeps them busy

RunId = Annotated[
    str | None, typer.Option("--run-id", help="Name of the run. Default: made from the pipeline and the time.")
]
Parallel = Annotated[
    int | None,
    typer.Option(
        "--parallel",
        min=1,
        metavar="N",
        help="Attempts of regions and shares that go on side by side, each in a process of its own. Default: the slots "
        "of Spark; 1 on a local server with two cores or fewer.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what it would do, as `stagehold plan` does.")]


@with_run_options
def run(
    pipeline: PipelineName,
    options: RunOptions,
    run_id: RunId = None,
    parallel: Parallel = None,
    dry_run: DryRun = False,
    timings: ShowTimings = False,
    as_json: AsJson = False,
) -> None:
    """Run a pipeline here and now; what is consumable already is reused."""
    TIMINGS.passed(Lap.START)
    settings = load_settings()
    name = run_id or f"{pipeline}/cli__{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}"
    request = request_asked(pipeline, name, options, settings, begins=not dry_run)
    keep = keep_asked(options.keep, options.reason, request.pipeline)
    if dry_run:
        return show_plan(request, settings, keep=keep, as_json=as_json)
    if keep:
        keep_on_record([request], keep, settings)
    TIMINGS.passed(Lap.REQUEST)
    run_here(request, settings, parallel, as_json=as_json, timings=timings)


def attempts_at_a_time(settings: Settings) -> int:
    """How many attempts of a run go on side by side if nobody says it: as many as there are slots to work in. A local
    server with two cores or fewer is busy with one.
    """
    local = not settings.spark_remote and not settings.spark_master
    if local and settings.spark_cores <= CORES_OF_ONE:
        return 1
    return settings.spark_slots or (settings.spark_cores if local else 1)


def keep_on_record(requests: Iterable[RunRequest], wishes: KeepWishes, settings: Settings) -> None:
    from stagehold.chronicle.chronicle import open_ledger
    from stagehold.run.planning.keep_wishes import record_kept

    with open_ledger(settings) as ledger:
        words = [word for request in requests for word in record_kept(request, wishes, ledger, settings)]
    kept = sorted({f"{word.part} of {word.stage}" for word in words})
    print_progress(f"kept, on record: {', '.join(kept)}" if kept else "--keep: nothing is there that it would keep")


class TimeIsUp(KeyboardInterrupt):
    """The pipeline's `run_timeout` is over; whatever Ctrl-C would interrupt is interrupted."""


def run_here(request: RunRequest, settings: Settings, parallel: int | None, *, as_json: bool, timings: bool) -> None:
    """Run it with progress on stderr and the result on stdout.
    SIGTERM cancels it as Ctrl-C does, and so does its `run_timeout`.

    :param parallel: how many attempts go on side by side; None for as many as there are slots.
    """
    from stagehold.run.here.local_run import run_locally

    typer.echo(f"run {request.run_id} of {request.pipeline.name} for {request.interval}", err=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    limit = request.pipeline.run_timeout
    try:
        with limited(limit):
            side_by_side = parallel or attempts_at_a_time(settings)
            outcome = run_locally(request, settings, print_progress, parallel=side_by_side)
    except KeyboardInterrupt as interrupt:
        late = isinstance(interrupt, TimeIsUp)
        why = f"took longer than its run_timeout ({limit}) and was cancelled" if late else "was cancelled"
        typer.secho(
            f"{request.run_id} {why}. What is consumable is kept; `stagehold resume` goes on from there.",
            fg="red",
            err=True,
        )
        raise typer.Exit(TIMED_OUT if late else CANCELLED) from None
    if as_json:
        timed = {"timings": TIMINGS.seconds} if timings else {}
        print_document({"run_id": request.run_id, "interval": request.interval, **asdict(outcome), **timed})
    else:
        typer.echo(f"done: {outcome}, {outcome.seconds:.1f} s")
        if timings:
            _show_timings()


def _show_timings() -> None:
    all_of_it = sum(TIMINGS.seconds.values())
    rows = [(lap, f"{seconds:.1f}", f"{seconds / all_of_it:.0%}") for lap, seconds in TIMINGS.seconds.items()]
    print_table("Where the time went", ("part", "seconds", "share"), [*rows, ("all", f"{all_of_it:.1f}", "")])


@contextmanager
def limited(limit: timedelta | None) -> Iterator[None]:
    """Raise TimeIsUp in the main thread when the block takes longer."""
    if limit is None:
        yield
        return
    signal.signal(signal.SIGALRM, _raise_time_is_up)
    signal.setitimer(signal.ITIMER_REAL, limit.total_seconds())
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _raise_time_is_up(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001
    raise TimeIsUp
