"""Options that say which run is meant, shared by run, plan and resume."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stagehold.errors import InvalidArgument, InvalidSpec, UnknownName
from stagehold.settings import Settings

if TYPE_CHECKING:
    from stagehold.model.records import Restore
    from stagehold.run.planning.planning import RunRequest
    from stagehold.spec.pipeline import Pipeline, Stage

PipelineName = Annotated[str, typer.Argument(help="Name of the pipeline, as its YAML file declares it.")]
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
        help="Begin with a savepoint, a checkpoint (RUN_ID, RUN_ID#7 or its manifest), or the `latest` that verifies.",
    ),
]
AllowNonRestored = Annotated[
    bool, typer.Option("--allow-non-restored-state", help="Leave behind what no stage of the pipeline takes.")
]
Params = Annotated[
    list[str] | None,
    typer.Option("--param", help="A parameter as name=value; the value is JSON, or else text. Repeatable."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]


Place = tuple[str, str]  # pipeline and interval


@dataclass(frozen=True)
class RunOptions:
    """What the options of a command say of the run that is meant; None for those that were not given."""

    interval: str | None
    restore_from_stage: str | None
    params: Sequence[str] | None
    snapshot: str | None = None
    allow_non_restored: bool = False


def request_asked(pipeline: str, run_id: str, options: RunOptions, settings: Settings) -> RunRequest:
    from stagehold.run.planning.planning import RunRequest
    from stagehold.spec.loader import find_pipeline

    declared = find_pipeline(pipeline, settings)
    params = parse_params(options.params, declared.params)
    interval = interval_asked(options.interval, declared.schedule)
    restore = restore_asked(run_id, (declared.name, interval), options, settings)
    return RunRequest(declared, run_id, interval, params, restore)


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
    from stagehold.model.interval_key import interval_key, present_key

    return present_key(datetime.now(UTC), schedule) if interval is None else interval_key(interval, schedule)


def recorded_interval(interval: str, pipeline: str, settings: Settings) -> str:
    """The key under which an interval is on record, also of a pipeline whose file is gone or broken."""
    from stagehold.model.interval_key import interval_key
    from stagehold.spec.loader import find_pipeline

    try:
        schedule = find_pipeline(pipeline, settings).schedule
    except (UnknownName, InvalidSpec):
        schedule = None
    return interval_key(interval, schedule)


def restore_asked(run_id: str, place: Place, options: RunOptions, settings: Settings) -> Restore | None:
    """The request that ``--restore-from-stage`` or ``--restore`` makes,
    or the same one again for a run that was named and asked for this before.

    :raises InvalidArgument: both are given.
    """
    from stagehold.lake.chronicle import open_ledger
    from stagehold.run.planning.restoring import new_restore, new_restore_of_snapshot

    stage, snapshot = options.restore_from_stage, options.snapshot
    if stage is None and snapshot is None:
        return None
    if stage is not None and snapshot is not None:
        raise InvalidArgument("--restore", snapshot, "one of --restore and --restore-from-stage")
    asked = (
        new_restore(run_id, stage)
        if stage is not None
        else new_restore_of_snapshot(
            run_id,
            manifest_asked(str(snapshot), run_id, place, settings),
            allow_non_restored=options.allow_non_restored,
        )
    )
    with open_ledger(settings) as ledger:
        newest = next(iter(ledger.restores.of_run(run_id)), None)
    same = newest and (newest.stage, newest.snapshot) == (asked.stage, asked.snapshot)
    return newest if same else asked


def manifest_asked(reference: str, run_id: str, place: Place, settings: Settings) -> str:
    """The address of the manifest that `latest` stands for, or whatever `find_checkpoint` knows."""
    from stagehold.lake.chronicle import open_ledger
    from stagehold.run.planning.candidates import Candidates
    from stagehold.run.planning.named_snapshots import manifest_named

    with open_ledger(settings) as ledger:
        candidates = Candidates(*place, run_id, settings.lake_uri, ledger)
        return manifest_named(reference, candidates, lambda line: typer.echo(line, err=True))


def parse_params(texts: Sequence[str] | None, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The pipeline's parameters with the given ones put over them.

    :raises InvalidArgument: for what is not name=value
    :raises InvalidParameter: for a name that the pipeline does not declare, or a value of another type
    """
    from stagehold.spec.params import checked_params

    return checked_params(dict(_parse(text, defaults) for text in texts or ()), defaults)


def _parse(given: str, defaults: Mapping[str, Any]) -> tuple[str, Any]:
    name, separator, text = given.partition("=")
    if not separator or not name:
        raise InvalidArgument("--param", given, "name=value")
    return name, _value(text, defaults.get(name))


def _value(text: str, default: Any) -> Any:
    """JSON, or else text; what stands for a text is one, also if it looks like a number."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return text
    return text if isinstance(default, str) and not isinstance(value, str) else value
