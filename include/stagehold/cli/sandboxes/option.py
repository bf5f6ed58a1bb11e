"""`--sandbox NAME`, an option of every command that reads or writes a lake or a ledger."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Annotated, Any

import typer

from stagehold.errors import InvalidArgument

VARIABLE = "STAGEHOLD_SANDBOX"
SandboxName = Annotated[
    str | None,
    typer.Option(
        "--sandbox", metavar="NAME", help=f"Work in this sandbox: production is only read. Default: {VARIABLE}."
    ),
]


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
