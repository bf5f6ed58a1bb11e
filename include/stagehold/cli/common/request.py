"""Options that say which run is meant, shared by run, plan and resume."""

from __future__ import annotations

import getpass
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stagehold.cli.common.output import print_progress
from stagehold.errors import InvalidArgument, InvalidSpec, UnknownName
from stagehold.model.choices import ClaimMode
from stagehold.settings import Settings

if TYPE_CHECKING:
    from stagehold.model.records import Restore
    from stagehold.run.planning.keep_wishes import KeepWishes
    from stagehold.run.planning.planning import RunRequest
    from stagehold.spec.pipeline import Pipeline, Stage

PipelineName = Annotated[str, typer.Argument(help="Name of the pipeline, as its YAML file declares it.")]
StagesPipeline = Annotated[str, typer.Option("--pipeline", help="Name of the stage's pipeline.")]
Interval = Annotated[
    str | None,
    typer.Option(
        "--interval", help="What the run is for: a date, a moment, or a key of your own. Default: today (UTC)."
    ),
]
RestoreFrom = Annotated[
    str | None,
    typer.Option("--restore-from-stage", help="Run this stage and all that read it; take earlier stages as they are."),
]
RestoreSnapshot = Annotated[
    str | None,
    typer.Option(
        "--restore",
        help="Begin with a savepoint, a checkpoint (RUN_ID, RUN_ID#7 or its manifest), or the `latest` that verifies; "
        "`latest_or_none` begins with nothing where there is none.",
    ),
]
AllowNonRestored = Annotated[
    bool, typer.Option("--allow-non-restored-state", help="Leave behind what no stage of the pipeline takes.")
]
OnCodeChange = Annotated[
    list[str] | None,
    typer.Option(
        "--on-code-change",
        metavar="STAGE=WORD",
        help="With --restore, of data that other code made than the stage has now: `recompute` it, `keep` it for this "
        "run, or `accept` it on record for every run. A word alone is for all other stages. Default: what the stage "
        "says. Repeatable.",
    ),
]
ClaimModeAsked = Annotated[
    ClaimMode,
    typer.Option(
        "--claim-mode",
        help="With --restore: `claim` makes the checkpoint or savepoint the run's own, which deletes it when a newer "
        "checkpoint of its replaces it.",
    ),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        "--keep",
        metavar="PART|STAGE=PART",
        help="What is there of the interval counts though this changed: code, params, environment or sources; of one "
        "stage, or of all. From now on, on record with --reason. Repeatable.",
    ),
]
By = Annotated[str | None, typer.Option("--by", help="Who says so. Default: the user of this machine.")]
Reason = Annotated[str, typer.Option("--reason", help="With --keep or --on-code-change: why, kept with your name.")]
Params = Annotated[
    list[str] | None,
    typer.Option("--param", help="A parameter as name=value; the value is JSON, or else text. Repeatable."),
]
ShowTimings = Annotated[bool, typer.Option("--timings", help="Say at the end where the time went.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]


@dataclass(frozen=True)
class RunOptions:
    """The options by which `run` and `plan` are told which run is meant, in the order of their help."""

    interval: Interval = None
    restore_from_stage: RestoreFrom = None
    restore: RestoreSnapshot = None
    allow_non_restored_state: AllowNonRestored = False
    on_code_change: OnCodeChange = None
    keep: Keep = None
    reason: Reason = ""
    claim_mode: ClaimModeAsked = ClaimMode.NO_CLAIM
    param: Params = None


def with_run_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command, with an option for each field of its parameter ``options``."""

    @wraps(command)
    def told(**given: Any) -> None:
        options = RunOptions(**{field.name: given.pop(field.name) for field in fields(RunOptions)})
        command(options=options, **given)

    own, asked = (inspect.signature(each, eval_str=True) for each in (command, RunOptions))
    parameters = [
        option.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in own.parameters.values()
        for option in (asked.parameters.values() if parameter.name == "options" else (parameter,))
    ]
    told.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    told.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return told


def request_asked(
    pipeline: str, run_id: str, options: RunOptions, settings: Settings, *, begins: bool = False
) -> RunRequest:
    """:param begins: whether it is to run, and not only to be planned."""
    from stagehold.run.clearing.sandboxes import require_production
    from stagehold.run.planning.planning import RunRequest
    from stagehold.spec.loading.loader import find_pipeline

    require_production(settings)
    declared = find_pipeline(pipeline, settings)
    params = parse_params(options.param, declared.params)
    interval = interval_asked(options.interval, declared.schedule)
    restore = restore_asked(run_id, (declared, interval), options, settings, begins=begins)
    return RunRequest(declared, run_id, interval, params, restore)


def keep_asked(texts: Sequence[str] | None, reason: str, pipeline: Pipeline) -> KeepWishes | None:
    """:raises InvalidArgument: it is no part of a key, or nobody says why"""
    from stagehold.run.planning.keep_wishes import KeepWishes

    return KeepWishes.read(texts, pipeline, getpass.getuser(), reason) if texts else None


def stage_asked(pipeline: Pipeline, name: str) -> Stage:
    """:raises UnknownName: the pipeline has no such stage"""
    declared = {stage.name: stage for stage in pipeline.stages}
    if name not in declared:
        raise UnknownName(f"stage of {pipeline.name}", name, tuple(declared))
    return declared[name]


def interval_asked(interval: str | None, schedule: str | None) -> str:
    """The key of the interval that the option names, in a pipeline of this schedule.

    :raises InvalidInterval: there is no such interval, or it may be several.
    """
    from stagehold.model.keys.interval_key import interval_key, present_key

    return present_key(datetime.now(UTC), schedule) if interval is None else interval_key(interval, schedule)


def recorded_interval(interval: str, pipeline: str, settings: Settings) -> str:
    """The key under which an interval is on record, even for a pipeline whose file is gone or broken."""
    from stagehold.model.keys.interval_key import interval_key
    from stagehold.spec.loading.loader import find_pipeline

    try:
        schedule = find_pipeline(pipeline, settings).schedule
    except (UnknownName, InvalidSpec):
        schedule = None
    return interval_key(interval, schedule)


def restore_asked(
    run_id: str, asked_for: tuple[Pipeline, str], options: RunOptions, settings: Settings, *, begins: bool
) -> Restore | None:
    """The request that ``--restore-from-stage`` or ``--restore`` makes,
    or the same one again for a run that was named and asked for this before. In a sandbox that has nothing of the
    interval yet a run begins with the latest of production, without being asked.

    :param asked_for: the pipeline and the key of the interval.
    :raises InvalidArgument: both are given, or what belongs to ``--restore`` is given without it.
    """
    from stagehold.checkpoints.restore_sources import NOTHING
    from stagehold.chronicle.chronicle import open_ledger
    from stagehold.run.planning.restoring import is_same_request, new_restore

    stage, snapshot = options.restore_from_stage, options.restore
    if stage is not None and snapshot is not None:
        raise InvalidArgument("--restore", snapshot, "one of --restore and --restore-from-stage")
    _refuse_without_snapshot(options)
    if stage is None and snapshot is None:
        new = _is_new_in_sandbox(asked_for, settings)
        return _restore_of_production(run_id, asked_for, options, settings, begins=begins) if new else None
    if stage is not None:
        asked = new_restore(run_id, stage)
    elif (manifest := manifest_asked(run_id, asked_for, options, settings, begins=begins)) == NOTHING:
        return None
    else:
        asked = _of_snapshot(run_id, asked_for, manifest, options, settings)
    with open_ledger(settings) as ledger:
        newest = next(iter(ledger.restores.of_run(run_id)), None)
    return newest if newest and is_same_request(newest, asked) else asked


def _refuse_without_snapshot(options: RunOptions) -> None:
    given = {
        "--on-code-change": ", ".join(options.on_code_change or ()),
        "--claim-mode": "" if options.claim_mode is ClaimMode.NO_CLAIM else options.claim_mode,
    }
    for option, value in given.items():
        if value and options.restore is None:
            raise InvalidArgument(option, value, "only what a run begins with, so give --restore as well")


def _of_snapshot(
    run_id: str, asked_for: tuple[Pipeline, str], manifest: str, options: RunOptions, settings: Settings
) -> Restore:
    from stagehold.run.checkpoints.discarding import refuse_foreign_claim
    from stagehold.run.planning.code_choices import CodeWishes, choose_code
    from stagehold.run.planning.restoring import new_restore_of_snapshot
    from stagehold.run.planning.snapshots import BeginsWith

    pipeline, interval = asked_for
    restore = new_restore_of_snapshot(
        run_id, manifest, allow_non_restored=options.allow_non_restored_state, claim_mode=options.claim_mode
    )
    begins_with = BeginsWith.of(restore, pipeline, interval)
    assert begins_with is not None
    if restore.claim_mode is ClaimMode.CLAIM:
        refuse_foreign_claim(begins_with, settings)
    wishes = CodeWishes.read(options.on_code_change or (), getpass.getuser(), options.reason)
    choices = choose_code(wishes, begins_with, pipeline, settings)
    decided = {choice.stage for choice in choices}
    for name, handling in wishes.of_stages.items():
        if pipeline.stage(name).id not in decided:
            unchanged = f"{begins_with.name} has nothing of {name} that other code made, so that decides nothing"
            typer.echo(f"--on-code-change {name}={handling}: {unchanged}", err=True)
    return replace(restore, code_choices=choices)


def _is_new_in_sandbox(asked_for: tuple[Pipeline, str], settings: Settings) -> bool:
    from stagehold.chronicle.chronicle import open_ledger

    if not settings.sandbox:
        return False
    pipeline, interval = asked_for
    with open_ledger(settings) as ledger:
        return not ledger.partitions.newest_of(pipeline.name, interval)


def _restore_of_production(
    run_id: str, asked_for: tuple[Pipeline, str], options: RunOptions, settings: Settings, *, begins: bool
) -> Restore | None:
    from stagehold.checkpoints.restore_sources import LATEST
    from stagehold.errors import NoSnapshot

    where = f"sandbox {settings.sandbox} has nothing of {asked_for[0]} for {asked_for[1]} yet"
    try:
        found = restore_asked(run_id, asked_for, replace(options, restore=LATEST), settings, begins=begins)
    except NoSnapshot as none:
        refused = "".join(f"\n  {line}" for line in none.refused)
        typer.echo(f"{where}, and production has nothing to begin with: all of it is computed{refused}", err=True)
        return None
    typer.echo(f"{where}: it begins with {found.snapshot if found else LATEST}", err=True)
    return found


def manifest_asked(
    run_id: str, asked_for: tuple[Pipeline, str], options: RunOptions, settings: Settings, *, begins: bool
) -> str:
    """The address of the manifest that is meant. A sandbox has production's, as that lake alone knows them."""
    from stagehold.checkpoints.restore_sources import LATEST, LATEST_OR_NONE
    from stagehold.chronicle.chronicle import open_ledger
    from stagehold.lake.local_copies import LocalCopies
    from stagehold.run.planning.candidates import Candidates, manifest_named
    from stagehold.run.upkeep.scrubbing import SnapshotComparison, scrub_with_spark
    from stagehold.spec.settings.run_settings import VerifyPolicy

    pipeline, interval = asked_for
    with open_ledger(settings) as ledger, ExitStack() as opened:
        place = scrub_with_spark(ledger, settings, print_progress)
        comparison = SnapshotComparison(pipeline, place, opened)
        known = None if settings.sandbox else ledger
        put_back, lake = LocalCopies.putting_back(settings, print_progress), settings.production.lake_uri
        candidates = Candidates(pipeline.name, interval, run_id, lake, known, pipeline.restore, put_back)
        damaged = comparison.damaged if begins else None
        address = manifest_named(str(options.restore), candidates, print_progress, damaged)
    if (
        options.restore in (LATEST, LATEST_OR_NONE)
        and address
        and not begins
        and pipeline.verify is not VerifyPolicy.NEVER
    ):
        print_progress("its content is compared with fingerprints when it runs, not for a plan")
    return address


def parse_params(texts: Sequence[str] | None, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The pipeline's parameters with the given ones put over them.

    :raises InvalidArgument: for what is not name=value
    :raises InvalidParameter: for a name that the pipeline does not declare, or a value of another type
    """
    from stagehold.spec.settings.run_settings import checked_params

    return checked_params(dict(_parse(text, defaults) for text in texts or ()), defaults)


def _parse(given: str, defaults: Mapping[str, Any]) -> tuple[str, Any]:
    name, separator, text = given.partition("=")
    if not separator or not name:
        raise InvalidArgument("--param", given, "name=value")
    return name, _value(text, defaults.get(name))


def _value(text: str, default: Any) -> Any:
    """The value that JSON gives, else the text itself. A text that stands in for a text stays one, even if it looks
    like a number.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return text
    return text if isinstance(default, str) and not isinstance(value, str) else value
