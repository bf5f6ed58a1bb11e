"""`stagehold sandbox`: which sandboxes there are, and throwing one away; and `--sandbox NAME`, an option of every
command that reads or writes a lake or a ledger.
"""

from __future__ import annotations

import getpass
import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stagehold.cli.common.output import moment, print_document, print_progress, print_table
from stagehold.cli.common.request import AsJson, Interval, PipelineName
from stagehold.errors import InvalidArgument, StageholdError, UnknownName
from stagehold.settings import Settings, load_settings

if TYPE_CHECKING:
    from stagehold.run.clearing.sandboxes import Sandbox

COLUMNS = ("sandbox", "size", "written (UTC)", "ledger", "lake")

sandbox = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Sandboxes: lakes and ledgers for trying something out, which read production and never write to it.",
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The sandbox, as `stagehold sandbox list` names it.")]

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be taken over.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; kept with your name.")]
By = Annotated[str | None, typer.Option("--by", help="Who does it. Default: you.")]

VARIABLE = "STAGEHOLD_SANDBOX"

SandboxName = Annotated[
    str | None,
    typer.Option(
        "--sandbox", metavar="NAME", help=f"Work in this sandbox: production is only read. Default: {VARIABLE}."
    ),
]


@sandbox.command("list")
def list_them(as_json: AsJson = False) -> None:
    """List sandboxes with their sizes. `stagehold run PIPELINE --sandbox NAME` makes one."""
    found = sandboxes_of(load_settings())
    if as_json:
        print_document({"sandboxes": [asdict(sandbox) for sandbox in found]})
    elif found:
        print_table("Sandboxes", COLUMNS, map(_cells, found))
    else:
        typer.echo("There are no sandboxes. `stagehold run PIPELINE --sandbox NAME` makes one.")


@sandbox.command()
def remove(name: Name, as_json: AsJson = False) -> None:
    """Delete a sandbox's lake and ledger, unless somebody works in it. Nothing else is deleted."""
    from rich.filesize import decimal

    from stagehold.run.clearing.sandboxes import remove_sandbox

    gone = remove_sandbox(name, load_settings())
    if as_json:
        print_document({"removed": asdict(gone)})
    else:
        typer.echo(f"Removed sandbox {gone.name}: {decimal(gone.bytes)}, of {gone.lake} and {gone.ledger}.")


@sandbox.command()
def promote(
    name: Name,
    pipeline: PipelineName,
    interval: Interval = None,
    dry_run: DryRun = False,
    reason: Reason = "",
    by: By = None,
    as_json: AsJson = False,
) -> None:
    """Make what a sandbox has of an interval what production has, without computing it again.

    It is a run of production that begins with what the sandbox's newest run of the interval has reached: with its
    lease, judged by its gates, published by one commit for each table. What would be computed is refused.
    """
    from stagehold.cli.common.request import interval_asked
    from stagehold.run.here.promotion import Promotion
    from stagehold.spec.loading.loader import find_pipeline

    settings, who = load_settings(), by or getpass.getuser()
    if settings.sandbox:
        raise InvalidArgument(VARIABLE, settings.sandbox, "nothing: what is promoted becomes what production has")
    if name not in (known := [each.name for each in sandboxes_of(settings)]):
        raise UnknownName("sandbox", name, known)
    declared = find_pipeline(pipeline, settings)
    wanted = interval_asked(interval, declared.schedule)
    promotion = Promotion.of(name, declared, wanted, settings, who=who, progress=print_progress)
    try:
        taken = len(promotion.plan().decisions)
    except StageholdError:
        promotion.clean_up(print_progress)
        raise
    outcome = None if dry_run else promotion.carry_out(who, reason, print_progress)
    promotion.clean_up(print_progress)
    found = {"sandbox": name, "pipeline": pipeline, "interval": wanted, "partitions": taken}
    if as_json:
        print_document({**found, "run_id": promotion.request.run_id if outcome else None})
    elif outcome:
        typer.echo(f"{pipeline} for {wanted} has what sandbox {name} had: run {promotion.request.run_id}, {outcome}")
    else:
        typer.echo(f"{taken} partitions would be taken over, and nothing computed; nothing was changed")


def sandboxes_of(settings: Settings) -> tuple[Sandbox, ...]:
    from stagehold.run.clearing.sandboxes import sandboxes

    return sandboxes(settings)


def _cells(sandbox: Sandbox) -> tuple[str, ...]:
    from rich.filesize import decimal

    return sandbox.name, decimal(sandbox.bytes), moment(sandbox.changed_at), sandbox.ledger, sandbox.lake


def offer_sandboxes(app: typer.Typer) -> None:
    """Give the option to each command of ``app`` and of its groups."""
    for command in app.registered_commands:
        if command.callback:
            command.callback = _with_option(command.callback)
    for group in app.registered_groups:
        if group.typer_instance:
            offer_sandboxes(group.typer_instance)


def _with_option(command: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(command)
    def in_its_sandbox(*, sandbox: str | None, **given: Any) -> Any:
        with _working_in(sandbox):
            return command(**given)

    signature = inspect.signature(command, eval_str=True)
    option = inspect.Parameter("sandbox", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=SandboxName)
    in_its_sandbox.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), option]
    )
    in_its_sandbox.__annotations__ = {**inspect.get_annotations(command, eval_str=True), "sandbox": SandboxName}
    return in_its_sandbox


@contextmanager
def _working_in(name: str | None) -> Iterator[None]:
    """Settings that are read in the block, also by processes that it starts, are those of the sandbox.

    :raises InvalidArgument: they would be of another one already.
    """
    before = os.environ.get(VARIABLE)
    if name is not None and before and before != name:
        raise InvalidArgument("--sandbox", name, f"{before}, which {VARIABLE} names: a sandbox has none of its own")
    if name is not None:
        os.environ[VARIABLE] = name
    try:
        yield
    finally:
        if name is not None and before is None:
            del os.environ[VARIABLE]
        elif before is not None:
            os.environ[VARIABLE] = before
