"""What a run would refuse, or would surely fail by, found without running anything."""

from __future__ import annotations

from pathlib import Path

from stagehold.code.code_problems import code_problems
from stagehold.code.side_reads import side_reads
from stagehold.errors import CodeUnusable, EarlierMissing
from stagehold.lake.declared_columns import ColumnChange, column_changes
from stagehold.lake.store.location import published_table
from stagehold.ledger.ledger import Ledger
from stagehold.plan.resume.decisions import BlockedDecision, ResumePlan
from stagehold.run.planning.planning import IntervalView, RunRequest
from stagehold.settings import Settings
from stagehold.sources.attempt_sources import is_incremental
from stagehold.sources.declared_reads import undeclared, undeclared_error
from stagehold.sources.source_files import SourceRoots
from stagehold.spec.pipeline import Pipeline
from stagehold.spec.settings.reads import Undeclared


def refuse_too_early(pipeline: Pipeline, plan: ResumePlan) -> None:
    """Refuse an interval that comes too early.

    :raises EarlierMissing: a stage goes on with state of an interval that has to run first.
    """
    for decision in plan.decisions:
        if isinstance(decision, BlockedDecision) and decision.gap:
            raise EarlierMissing(pipeline.name, decision.stage, decision.gap.interval, str(decision.reason))


def refuse_spoiled_sources(request: RunRequest, plan: ResumePlan, ledger: Ledger, settings: Settings) -> None:
    """Refuse splits that would be read although one of their files is no longer what the interval took.

    :raises SourceChanged: or SourceLost, for the first such stage, with the way out for each file
    """
    view = IntervalView(request, ledger, settings)
    for stage in view.pipeline.stages:
        if stage.source is None or not stage.source.incremental:
            continue
        reading = view.sources.of(stage)
        computing = (decision.partition for decision in plan.of(stage.name) if decision.action.computes)
        reading.refuse_spoiled(stage.name, [file for number in computing for file in reading.splits[number].files])


def left_to_others(request: RunRequest, ledger: Ledger, settings: Settings) -> tuple[str, ...]:
    """What a run would not read of its sources, because other intervals have taken it and are not done with it."""
    view = IntervalView(request, ledger, settings)
    stages = [stage for stage in view.pipeline.stages if is_incremental(stage)]
    return tuple(line for stage in stages for line in view.sources.left_to_others(stage))


def changed_columns(pipeline: Pipeline, settings: Settings) -> tuple[ColumnChange, ...]:
    """What a run would change of published tables' columns, as far as stages declare theirs, or be refused for."""
    tables = (stage for stage in pipeline.stages if stage.output.table is not None)
    return tuple(
        change
        for stage in tables
        for change in column_changes(stage, published_table(settings.lake_uri, str(stage.output.table)))
    )


def refuse_broken_code(pipeline: Pipeline, plan: ResumePlan, settings: Settings) -> None:
    """Refuse code that cannot be imported. Code of stages that only reuse data is not imported, so it may be broken.

    :raises CodeUnusable: with everything that was found
    :raises UndeclaredRead: code is seen to read what its stage has to declare, and does not
    """
    found = {
        stage: code_problems(pipeline.stage(stage).entries, Path(settings.project))
        for stage in plan.stages_that_compute()
    }
    problems = {stage: list(problems) for stage, problems in found.items() if problems}
    if problems:
        raise CodeUnusable(pipeline.name, problems)
    _refuse_undeclared_reads(pipeline, plan, settings)


def _refuse_undeclared_reads(pipeline: Pipeline, plan: ResumePlan, settings: Settings) -> None:
    """Refuse reads that the text of the code shows. Other reads are found when the code is called."""
    project, roots = Path(settings.project), SourceRoots.of(settings)
    strict = [
        (stage, declared)
        for stage in map(pipeline.stage, plan.stages_that_compute())
        if (declared := pipeline.reads_of(stage)).undeclared is Undeclared.STRICT
    ]
    found = {
        stage.name: undeclared(side_reads(stage.entries, project, stage.frames), declared, roots)
        for stage, declared in strict
    }
    refused = {stage: reads for stage, reads in found.items() if reads}
    if refused:
        raise undeclared_error(pipeline, refused)
