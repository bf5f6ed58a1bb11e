"""What a run would refuse, or surely fail by, found without running anything."""

from __future__ import annotations

from pathlib import Path

from stagehold.code.checks import code_problems
from stagehold.errors import CodeUnusable, SourceChanged
from stagehold.ledger.ledger import Ledger
from stagehold.plan.resume.decisions import ResumePlan
from stagehold.run.planning.planning import RunRequest, counted, sources_of
from stagehold.settings import Settings
from stagehold.spec.pipeline import Pipeline


def refuse_spoiled_sources(request: RunRequest, plan: ResumePlan, ledger: Ledger, settings: Settings) -> None:
    """Splits that would be read although a file of them is no longer what the interval took.

    :raises SourceChanged: for the first such stage, with the way out for each file
    """
    sources = sources_of(request, ledger, settings)
    for stage in counted(request, ledger).pipeline.stages:
        if stage.source is None or not stage.source.incremental:
            continue
        reading = sources.of(stage)
        read = {
            file.path
            for one in plan.of(stage.name)
            if one.action.computes
            for file in reading.splits[one.partition].files
        }
        spoiled = [reading.spoiled[path] for path in sorted(read & set(reading.spoiled))]
        if spoiled:
            raise SourceChanged(stage.name, spoiled)


def refuse_broken_code(pipeline: Pipeline, plan: ResumePlan, settings: Settings) -> None:
    """Code of stages that only reuse what is there is not imported, so it may be broken.

    :raises CodeUnusable: with everything that was found
    """
    found = {
        stage: code_problems(pipeline.stage(stage).job, Path(settings.project)) for stage in plan.stages_that_compute()
    }
    problems = {stage: [str(problem) for problem in problems] for stage, problems in found.items() if problems}
    if problems:
        raise CodeUnusable(pipeline.name, problems)
