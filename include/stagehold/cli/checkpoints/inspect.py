"""`stagehold inspect`: what is in a checkpoint, from the lake alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from stagehold.cli.common.output import print_progress
from stagehold.cli.common.request import AsJson
from stagehold.errors import InvalidArgument, UnknownName
from stagehold.settings import Settings, load_settings

if TYPE_CHECKING:
    from stagehold.lake.checkpoints.opened_checkpoint import OpenedCheckpoint, OpenedStage

SHOWN = 100  # rows
SEVERAL = ("--keys", "--key")
Reference = Annotated[
    str | None,
    typer.Argument(
        metavar="REF",
        help="A savepoint, a run (its newest), RUN_ID#NUMBER, a manifest, or folder of a lake. Default: the newest.",
    ),
]
LakeUri = Annotated[str | None, typer.Option("--lake", help="The lake in which runs are looked for. Default: yours.")]
StageName = Annotated[str | None, typer.Option("--stage", help="Only this stage, with its partitions.")]
Partition = Annotated[int | None, typer.Option("--partition", help="Only this partition of the stage, fully.")]
StateName = Annotated[str | None, typer.Option("--state", help="Show rows of this state of the stage.")]
Keys = Annotated[
    list[str] | None,
    typer.Option("--keys", help="Only these keys of the state; of several columns, joined by a comma."),
]
Sql = Annotated[str | None, typer.Option("--sql", help='A SELECT; views are "STAGE" and "STAGE"."STATE".')]
Diff = Annotated[tuple[str, str] | None, typer.Option("--diff", metavar="A B", help="Show how two checkpoints differ.")]
Key = Annotated[list[str] | None, typer.Option("--key", help="Columns that tell rows of the stage apart, for --diff.")]
Check = Annotated[bool, typer.Option("--check", help="Look whether every file is there and as large as it was.")]
Live = Annotated[
    bool,
    typer.Option("--live", help="What is there now of the run REF, at one moment; needs ledger and pipeline, too."),
]
Limit = Annotated[
    int | None, typer.Option("--limit", min=0, help=f"Most rows to show. Default: {SHOWN}, all with --json.")
]


class SpreadingCommand(TyperCommand):
    """Takes `--keys 5 7` for `--keys 5 --keys 7`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(_spread(args)))


COMMAND_CLASS = SpreadingCommand


@dataclass(frozen=True)
class Wish:
    """What is to be shown of one checkpoint."""

    stage: str | None
    partition: int | None
    state: str | None
    keys: tuple[str, ...]
    check: bool
    limit: int | None
    as_json: bool


def inspect(
    reference: Reference = None,
    stage: StageName = None,
    partition: Partition = None,
    state: StateName = None,
    keys: Keys = None,
    sql: Sql = None,
    diff: Diff = None,
    key: Key = None,
    check: Check = False,
    live: Live = False,
    lake: LakeUri = None,
    limit: Limit = None,
    as_json: AsJson = False,
) -> None:
    """Show what is in a checkpoint, ask it in SQL, or compare two; needs the lake alone.

    With --live, it is what a checkpoint of the run would have in it now. Nothing is written, and the run is not asked.
    """
    settings = load_settings()
    lake_uri = lake or settings.lake_uri
    wish = Wish(stage, partition, state, tuple(keys or ()), check, _limit(limit, as_json), as_json)
    if diff is not None:
        _show_diff(_opened(diff[0], lake_uri), _opened(diff[1], lake_uri), wish, tuple(key or ()))
        return
    if live and lake is not None:
        raise InvalidArgument("--lake", lake, "no other lake than that of the settings, with --live")
    opened = _as_of_now(reference, settings) if live else _opened(reference or lake_uri, lake_uri)
    if sql is not None:
        _show_answer(opened, sql, wish)
    else:
        _show(opened, wish)


def _spread(words: Sequence[str]) -> Iterator[str]:
    rest = list(words)
    while rest:
        word = rest.pop(0)
        yield word
        if word in SEVERAL and rest:
            first, *more = [rest[0], *takewhile(lambda word: not word.startswith("--"), rest[1:])]
            del rest[: 1 + len(more)]
            yield first
            yield from (part for following in more for part in (word, following))


def _limit(given: int | None, as_json: bool) -> int | None:
    return SHOWN if given is None and not as_json else given


def _opened(reference: str, lake_uri: str) -> OpenedCheckpoint:
    from stagehold.lake.checkpoints.references import find_checkpoint

    stored, number = find_checkpoint(reference, lake_uri)
    return stored.open(number)


def _as_of_now(run_id: str | None, settings: Settings) -> OpenedCheckpoint:
    """What is there now of a run; of the newest, if none is named."""
    from stagehold.chronicle.chronicle import open_ledger
    from stagehold.lake.checkpoints.opened_checkpoint import OpenedCheckpoint
    from stagehold.lake.store.location import lake_root
    from stagehold.run.checkpoints.checkpoint_contents import as_of_now
    from stagehold.run.planning.planning import RunRequest
    from stagehold.spec.loading.loader import find_pipeline

    with open_ledger(settings) as ledger:
        newest = ledger.runs.recent(1) if run_id is None else ()
        run = newest[0] if newest else ledger.runs.get(run_id or "")
        request = RunRequest(find_pipeline(run.pipeline, settings), run.run_id, run.interval, run.params)
        print_progress(f"run {run.run_id} is {run.state}")
        return OpenedCheckpoint.unwritten(as_of_now(request, ledger), lake_root(settings.lake_uri))


def _show(opened: OpenedCheckpoint, wish: Wish) -> None:
    from stagehold.cli.checkpoints.printing import print_checkpoint, print_partition, print_stage

    if wish.state is not None:
        _show_state(opened, wish, wish.state)
    elif wish.stage is None and wish.partition is None:
        print_checkpoint(opened, wish.check, wish.as_json)
    elif wish.partition is None:
        print_stage(opened, opened.stage(str(wish.stage)), wish.check, wish.as_json)
    else:
        print_partition(opened, _only_stage(opened, wish.stage), wish.partition, wish.check, wish.as_json)


def _show_state(opened: OpenedCheckpoint, wish: Wish, name: str) -> None:
    from stagehold.cli.checkpoints.printing import print_rows
    from stagehold.viewer.read_rows import rows_of_state

    keeping = {stage.name: stage for stage in opened.stages if name in {state.name for state in stage.manifest.states}}
    stage = opened.stage(wish.stage) if wish.stage is not None else _one_of(keeping, name)
    states = {state.name: state for state in stage.manifest.states}
    if name not in states:
        raise UnknownName(f"state of {stage.name}", name, tuple(states))
    state, limit, partition, keys = states[name], wish.limit, wish.partition, wish.keys
    rows = rows_of_state(opened, stage, state, limit, print_progress, partition=partition, keys=keys)
    print_rows(rows, f"{stage.name} {name}", wish.as_json)


def _show_answer(opened: OpenedCheckpoint, sql: str, wish: Wish) -> None:
    from stagehold.cli.checkpoints.printing import print_answer
    from stagehold.viewer.read_rows import rows_of_statement

    print_answer(opened, rows_of_statement(opened, sql, wish.limit, print_progress), wish.as_json)


def _show_diff(a: OpenedCheckpoint, b: OpenedCheckpoint, wish: Wish, key: tuple[str, ...]) -> None:
    from stagehold.cli.checkpoints.printing import print_diff
    from stagehold.viewer.diff import checkpoint_diff, stage_diff
    from stagehold.viewer.row_diff import row_diff

    if wish.stage is None:
        if key:
            raise InvalidArgument("--key", " ".join(key), "columns of the stage that --stage names")
        print_diff(checkpoint_diff(a, b), None, wish.as_json)
        return
    ours = a.stage(wish.stage)
    compared = stage_diff(ours, b.stage(ours.manifest.shape.id))
    rows = row_diff(a, b, compared, key, print_progress)
    whole = checkpoint_diff(a, b)
    print_diff(whole.only_stage(compared), rows, wish.as_json)


def _only_stage(opened: OpenedCheckpoint, name: str | None) -> OpenedStage:
    return (
        opened.stage(name)
        if name is not None
        else _one_of({stage.name: stage for stage in opened.stages}, "--partition")
    )


def _one_of(stages: dict[str, OpenedStage], what: str) -> OpenedStage:
    if len(stages) != 1:
        raise InvalidArgument("--stage", "", f"the stage that {what} is of: {', '.join(stages) or 'there is none'}")
    return next(iter(stages.values()))
