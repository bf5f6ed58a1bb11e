"""`stagehold plan`: what a run would reuse and run, and why, without running anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stagehold.cli.common.output import ShownTable, explanation, print_document, print_table, tell_target
from stagehold.cli.common.request import AsJson, RunOptions, keep_asked, request_asked, with_run_options
from stagehold.cli.running.change_report import COLUMNS, ReportFormat, column_cells, show_change
from stagehold.errors import InvalidArgument
from stagehold.settings import Settings, load_settings

if TYPE_CHECKING:
    from stagehold.lake.declared_columns import ColumnChange
    from stagehold.plan.imagined.code_changes import StageChange
    from stagehold.plan.resume.decisions import Decision, ResumePlan
    from stagehold.plan.resume.situation import Situation
    from stagehold.plan.split.exchange_forms import ExchangeForm
    from stagehold.run.planning.keep_wishes import KeepWishes
    from stagehold.run.planning.planning import RunRequest
    from stagehold.run.planning.snapshots import BeginsWith
    from stagehold.spec.pipeline import Pipeline

RunId = Annotated[
    str,
    typer.Option("--run-id", help="Plan for this run; matters after --restore-from-stage, where its own work counts."),
]


PlannedName = Annotated[
    str | None,
    typer.Argument(metavar="PIPELINE", help="Name of the pipeline, as its YAML file declares it; or --all."),
]
All = Annotated[
    bool, typer.Option("--all", help="What all pipelines would compute again of the intervals that are on record.")
]
Against = Annotated[
    str | None,
    typer.Option(
        "--against", metavar="LEDGER", help="With --all: the ledger, by its URL, its file or its home. Default: yours."
    ),
]
Base = Annotated[
    str | None,
    typer.Option("--base", metavar="COMMIT", help="With --all: only what follows from changes since this commit."),
]
Format = Annotated[ReportFormat, typer.Option("--format", help="With --all: how it is printed.")]
Budget = Annotated[
    str | None,
    typer.Option("--budget", help="With --all: end with 2 if it takes more work than that, such as 2h."),
]


@with_run_options
def plan(
    options: RunOptions,
    pipeline: PlannedName = None,
    run_id: RunId = "",
    every: All = False,
    against: Against = None,
    base: Base = None,
    output: Format = ReportFormat.TABLE,
    budget: Budget = None,
    as_json: AsJson = False,
) -> None:
    """Show what would be reused and what would run, with the reason for each partition.

    With --all: what a change of code, queries, pipelines or suites computes again of all that is on record.
    """
    settings = load_settings()
    if every == (pipeline is not None):
        raise InvalidArgument("PIPELINE", pipeline or "", "the name of a pipeline, or --all instead of it")
    if pipeline is None:
        form = ReportFormat.JSON if as_json else output
        show_change(settings, against=against, base=base, output=form, budget=budget)
        return
    for option, given in (("--against", against), ("--base", base), ("--budget", budget)):
        if given is not None:
            raise InvalidArgument(option, given, "nothing without --all")
    request = request_asked(pipeline, run_id, options, settings)
    show_plan(request, settings, keep=keep_asked(options.keep, options.reason, request.pipeline), as_json=as_json)


def show_plan(request: RunRequest, settings: Settings, *, keep: KeepWishes | None = None, as_json: bool) -> None:
    """:param keep: what would be kept in a run that is asked for that.
    :raises StageholdError: after the plan was shown, if a run of it would be refused"""
    from stagehold.chronicle.chronicle import open_ledger
    from stagehold.plan.resume.planner import resume_plan
    from stagehold.run.planning.current_plan import current_situation, sources_read
    from stagehold.run.planning.keep_wishes import keeping
    from stagehold.run.planning.refusal import (
        changed_columns,
        left_to_others,
        refuse_broken_code,
        refuse_spoiled_sources,
        refuse_too_early,
    )
    from stagehold.run.planning.restoring import remark_on

    situation = current_situation(request, settings)
    if keep:
        situation, _ = keeping(situation, keep, request.interval)
    found = resume_plan(situation)
    preview, columns = RestorePreview.of(request, situation, found), changed_columns(request.pipeline, settings)
    with open_ledger(settings) as ledger:
        left, read = left_to_others(request, ledger, settings), sources_read(request, ledger, settings)
        told = ToldPlan(request, found, situation.pipeline, preview, columns, read, remark_on(request, ledger), left)
        print_document(told.document(settings)) if as_json else told.print(settings)
        refuse_broken_code(request.pipeline, found, settings)
        refuse_too_early(request.pipeline, found)
        refuse_spoiled_sources(request, found, ledger, settings)


SOURCES = ("stage", "reads", "since the run has seen it")
EXCHANGES = ("from", "to", "exchange", "form", "why", "a kill costs")


@dataclass(frozen=True)
class ToldPlan:
    """All that is told of a plan, to people and to programs: the pipeline in the form that it is computed in, columns
    that a run changes, what it reads, a remark, and what it leaves to others.
    """

    request: RunRequest
    plan: ResumePlan
    pipeline: Pipeline
    preview: RestorePreview | None
    columns: Sequence[ColumnChange]
    read: Sequence[tuple[str, str, str | None]]
    remark: str | None
    left: Sequence[str]

    def print(self, settings: Settings) -> None:
        from stagehold.run.planning.restoring import what_was_released

        if self.preview:
            self.preview.show()
        if self.remark:
            typer.echo(self.remark)
        print_table("sources", SOURCES, ((stage, reads, since or "") for stage, reads, since in self.read))
        if exchanges := [_exchange_cells(form) for form in self._exchange_forms]:
            print_table("exchanges", EXCHANGES, exchanges)
        if self.columns:
            print_table("columns of published tables that change", COLUMNS, map(column_cells, self.columns))
        tell_target(settings)
        plan_table(self.request, self.plan).print()
        for line in filter(None, (what_was_released(self.request, self.plan), *self.left)):
            typer.echo(line)

    def document(self, settings: Settings) -> Mapping[str, Any]:
        return {
            "pipeline": self.request.pipeline.name,
            "interval": self.request.interval,
            **asdict(self.plan.counts),
            **{name: value for name, value in self._remarks() if value},
            "target": settings.target or None,
            "sources": [dict(zip(("stage", "reads", "since"), each, strict=True)) for each in self.read],
            "exchanges": [self._exchange_document(form) for form in self._exchange_forms],
            **({"columns": [asdict(change) for change in self.columns]} if self.columns else {}),
            **({"restore": self.preview.document()} if self.preview else {}),
            **self._decisions(),
        }

    def _remarks(self) -> Iterator[tuple[str, Any]]:
        """What is told where there is something to tell."""
        from stagehold.plan.resume.released_outputs import released_outputs
        from stagehold.run.planning.restoring import what_was_released

        yield "variables", self.request.pipeline.variables
        yield "remark", self.remark
        if text := what_was_released(self.request, self.plan):
            yield "released", {"text": text, "outputs": [asdict(output) for output in released_outputs(self.plan)]}
        yield "left_to_others", self.left

    def _decisions(self) -> Mapping[str, Any]:
        from stagehold.plan.resume.plan_summary import explain

        decisions = [
            {
                "stage": decision.stage,
                "partition": decision.partition,
                "action": decision.action,
                "reason": str(decision.reason),
            }
            for decision in self.plan.decisions
        ]
        return {"summary": [asdict(line) for line in explain(self.plan)], "decisions": decisions}

    @property
    def _exchange_forms(self) -> Sequence[ExchangeForm]:
        from stagehold.plan.split.exchange_forms import exchange_forms

        return exchange_forms(self.pipeline)

    def _exchange_document(self, form: ExchangeForm) -> Mapping[str, Any]:
        worth = self.pipeline.stage(form.producer).output.worth
        return {
            "from": form.producer,
            "to": form.reader,
            "exchange": form.exchange,
            "type": form.type,
            "stored": form.stored,
            "why": form.why,
            "a_kill_costs": form.cost_of_kill,
            **({"worth": asdict(worth)} if worth else {}),
        }


def _exchange_cells(form: ExchangeForm) -> tuple[str, ...]:
    return form.producer, form.reader, form.exchange.value, form.form, form.reason, form.cost_of_kill


def plan_table(request: RunRequest, plan: ResumePlan) -> ShownTable:
    """What is done about each stage and why; below it stands what was put in for variables, and the counts."""
    shown, put_in = explanation(f"{request.pipeline.name} for {request.interval}", plan), request.pipeline.variables
    told = [f"with {', '.join(f'{name}={value}' for name, value in put_in.items())}"] if put_in else []
    return replace(shown, below=(*told, str(plan.counts)))


TAKEN = ("stage", "was cut into", "takes over", "then")
CHANGED = ("stage", "changed", "partitions", "what is done", "that", "otherwise")


@dataclass(frozen=True)
class RestorePreview:
    """A run that begins with a checkpoint or savepoint, planned."""

    begins_with: BeginsWith
    plan: ResumePlan
    changes: tuple[StageChange, ...]

    @staticmethod
    def of(request: RunRequest, situation: Situation, plan: ResumePlan) -> RestorePreview | None:
        """The preview; None for a run that begins with what its interval has."""
        from stagehold.plan.imagined.code_changes import stage_changes
        from stagehold.run.planning.planning import begins_with_of

        begins_with = begins_with_of(request)
        return RestorePreview(begins_with, plan, stage_changes(situation, plan)) if begins_with else None

    def show(self) -> None:
        print_table(f"begins with {self.begins_with.name}", TAKEN, list(self._taken()))
        typer.echo(f"What is taken over took {self._seconds_saved:.0f} s to compute.")
        if self.changes:
            print_table("changed since", CHANGED, [_cells(change) for change in self.changes])

    def document(self) -> dict[str, Any]:
        return {
            "of": self.begins_with.name,
            "manifest": self.begins_with.restore.snapshot,
            "claim_mode": self.begins_with.restore.claim_mode,
            "starts_empty": self.begins_with.plan.starts_empty,
            "left_behind": [snapshot.shape.id for snapshot in self.begins_with.plan.left_behind],
            "restored": sum(decision.restored and not decision.action.computes for decision in self.plan.decisions),
            "dealt_anew": sum(map(_is_dealt, self.plan.decisions)),
            "seconds_saved": round(self._seconds_saved, 3),
            "changes": [_document(change) for change in self.changes],
        }

    def _taken(self) -> Iterator[tuple[str, ...]]:
        for stage_restore in self.begins_with.plan.stages:
            decisions = self.plan.of(stage_restore.stage)
            taken = sum(decision.restored and not decision.action.computes for decision in decisions)
            runs = sum(decision.action.computes for decision in decisions)
            dealt = sum(map(_is_dealt, decisions))
            cut = f"; it is cut into {stage_restore.partitions} now" if stage_restore.rescaled else ""
            anew = f", and {dealt} have their rows dealt anew by key" if dealt else ""
            was = stage_restore.snapshot.shape.name
            yield (
                stage_restore.stage if was == stage_restore.stage else f"{stage_restore.stage} (was {was})",
                str(stage_restore.snapshot.parallelism),
                f"{taken} of {len(decisions)}",
                f"{runs} run{cut}{anew}",
            )
        for name in self.begins_with.plan.starts_empty:
            yield name, "", "0", "starts empty: the checkpoint does not have it"
        for snapshot in self.begins_with.plan.left_behind:
            yield snapshot.shape.name, str(snapshot.parallelism), "0", "is left behind: the pipeline does not have it"

    @property
    def _seconds_saved(self) -> float:
        taken = (
            decision.record for decision in self.plan.decisions if decision.restored and not decision.action.computes
        )
        return sum(record.seconds or 0 for record in taken if record)


def _cells(change: StageChange) -> tuple[str, ...]:
    partitions = str(change.partitions) if change.handling else ""
    return change.stage, ", ".join(change.changed), partitions, change.consequence, _effect(change), _options(change)


def _effect(change: StageChange) -> str:
    """Counted over all stages: a stage that reads one that runs, runs too."""
    if change.handling is None:
        return ""
    if change.spares:
        return f"spares {change.spares} partitions"
    return f"costs {change.costs} partitions" if change.costs else "changes nothing"


def _options(change: StageChange) -> str:
    from stagehold.model.choices import CodeHandling
    from stagehold.plan.imagined.code_changes import DecidedBy

    if change.handling is None:
        return ""
    other = [word for word in CodeHandling if word is not change.handling]
    if change.decided_by is DecidedBy.ACCEPTANCE:
        other = [CodeHandling.RECOMPUTE]
    return f"--on-code-change {change.stage}={'|'.join(other)}"


def _document(change: StageChange) -> dict[str, Any]:
    return {
        "stage": change.stage,
        "changed": change.changed,
        "partitions": change.partitions,
        "on_code_change": change.handling,
        "decided_by": change.decided_by,
        "spares": change.spares,
        "costs": change.costs,
    }


def _is_dealt(decision: Decision) -> bool:
    from stagehold.plan.resume.decisions import RunDecision

    return isinstance(decision, RunDecision) and decision.dealt
