"""The `stagehold` command. Each of its commands is imported when it is called, or when all are listed."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from stagehold.cli.sandbox import offer_sandboxes
from stagehold.errors import StageholdError
from stagehold.settings import load_settings

COMMANDS = {  # as `--help` lists them
    "init": "stagehold.cli.init_command:init",
    "up": "stagehold.cli.service_commands:up",
    "down": "stagehold.cli.service_commands:down",
    "run": "stagehold.cli.running.run:run",
    "check": "stagehold.cli.check_command:check",
    "plan": "stagehold.cli.running.plan:plan",
    "try": "stagehold.cli.running.try_command:try_",
    "sample": "stagehold.cli.running.sample_command:sample",
    "what-if": "stagehold.cli.what_if_command:what_if",
    "backfill": "stagehold.cli.backfill.backfill_command:backfill",
    "resume": "stagehold.cli.running.resume:resume",
    "suspend": "stagehold.cli.running.stop:suspend",
    "cancel": "stagehold.cli.running.stop:cancel",
    "accept": "stagehold.cli.accept:accept",
    "status": "stagehold.cli.status:status",
    "runs": "stagehold.cli.running.runs_command:runs",
    "leases": "stagehold.cli.running.leases_command:leases",
    "partitions": "stagehold.cli.partitions_command:partitions",
    "gates": "stagehold.cli.gates.gates_command:gates",
    "refused": "stagehold.cli.gates.refused_command:refused",
    "waive": "stagehold.cli.gates.waive:waive",
    "verify": "stagehold.cli.verify:verify",
    "inspect": "stagehold.cli.checkpoints.inspect:inspect",
    "gc": "stagehold.cli.gc:gc",
    "reconcile": "stagehold.cli.reconcile_command:reconcile",
    "demo": "stagehold.cli.demo_command:demo",
    "source": "stagehold.cli.source_commands:source",
    "intervals": "stagehold.cli.intervals.interval_commands:intervals",
    "checkpoints": "stagehold.cli.checkpoints.checkpoint_commands:checkpoints",
    "savepoint": "stagehold.cli.checkpoints.savepoint_commands:savepoint",
    "sandbox": "stagehold.cli.sandbox:sandbox",
}
TARGET = "STAGEHOLD_TARGET"
OF_NO_SANDBOX = ("init", "up", "down", "demo", "sandbox")


class LazyCommands(Mapping[str, Any]):
    """Typer's commands by name, each imported when it is asked for: a command that is called waits for no other's."""

    def __getitem__(self, name: str) -> Any:
        return load_command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class Commands(TyperGroup):
    """Shows an error that was raised on purpose, or by a disk or folder, as its text, since that says what to do; only
    others get a traceback.
    """

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        spare_conversions(self)
        self.commands = LazyCommands()  # type: ignore[assignment]  # Typer adds none to those that it was made with

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:
            told = _told(error)
            if told is None:
                raise
            typer.secho("\n".join([str(told), *getattr(told, "__notes__", ())]), fg="red", err=True)
            raise typer.Exit(1) from None


@cache
def load_command(name: str) -> Any:
    """:raises KeyError: there is none of that name."""
    path, _, attribute = COMMANDS[name].partition(":")
    module = import_module(path)
    found = getattr(module, attribute)
    alone = typer.Typer(rich_markup_mode=None)
    if isinstance(found, typer.Typer):
        alone.add_typer(found, name=name)
    else:
        alone.command(name, cls=getattr(module, "COMMAND_CLASS", None))(found)
    if name not in OF_NO_SANDBOX:
        offer_sandboxes(alone)
    command = typer.main.get_group(alone).commands[name]
    spare_conversions(command)
    return command


def _told(error: Exception) -> StageholdError | None:
    if isinstance(error, StageholdError):
        return error
    from stagehold.run.equipment.storage_failures import storage_failure

    return storage_failure(error, load_settings())


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # importing Rich takes longer than all of --help
    context_settings={"max_content_width": 140},
)


def _print_version(wanted: bool) -> None:
    if not wanted:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        typer.echo(f"stagehold {version('stagehold')}")
    except PackageNotFoundError:
        typer.echo("stagehold, from a source tree that is not installed")
    raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
]


Target = Annotated[
    str | None, typer.Option("--target", help="Settings of this target of the project, as STAGEHOLD_TARGET.")
]


# Of objects and collections. Plans are large and have no cycles: with Python's own (700, 10, 10), `stagehold plan` for
# 100,000 partitions spends a fifth of its time on looking for some.
COLLECTED_AFTER = (50_000, 20, 20)


@app.callback()
def stagehold(context: typer.Context, version: Version = False, target: Target = None) -> None:  # noqa: ARG001
    """Run batch pipelines of PySpark stages that go on from the last consumable partition."""
    gc.set_threshold(*COLLECTED_AFTER)
    if target is not None:
        before = os.environ.get(TARGET)
        os.environ[TARGET] = target  # also for processes that the command starts
        context.call_on_close(lambda: _put_back(before))


def _put_back(target: str | None) -> None:
    if target is None:
        os.environ.pop(TARGET, None)
    else:
        os.environ[TARGET] = target


def spare_conversions(command: Any) -> None:
    """Have only those values converted that need it: numbers, paths and words of a list that somebody gave.

    Typer 0.29 has Pydantic convert every value, also a text that stays a text and an option that was left out. To
    import Pydantic takes longer than `stagehold status` needs for its answer.

    :param command: of Typer, or a group of them.
    """
    for part in vars(command).get("commands", {}).values():
        spare_conversions(part)
    all_parameters = command.get_params

    def get_params(context: Any) -> list[Any]:
        found: list[Any] = all_parameters(context)  # with --help, which is made when it is asked for
        for parameter in found:
            _spare_conversion(parameter)
        return found

    command.get_params = get_params


def _spare_conversion(parameter: Any) -> None:
    if "process_value" in vars(parameter) or not _is_converted_by_pydantic(parameter):
        return
    convert = parameter.process_value

    def process_value(context: Any, value: Any) -> Any:
        if not _is_converted(parameter, value):
            return convert(context, value)
        return parameter.callback(context, parameter, value) if parameter.callback else value

    parameter.process_value = process_value


def _is_converted_by_pydantic(parameter: Any) -> bool:
    """Whether Typer has pydantic convert the value. A Typer before 0.29 does not. This function can go once
    pyproject.toml asks for 0.29.
    """
    return hasattr(parameter, "type_descriptor")


def _is_converted(parameter: Any, value: Any) -> bool:
    if value is None or value == ():
        return not parameter.required
    kind = parameter.type_descriptor.annotation
    if kind == list[str]:
        return isinstance(value, list | tuple) and all(isinstance(text, str) for text in value)
    return isinstance(kind, type) and isinstance(value, kind)
