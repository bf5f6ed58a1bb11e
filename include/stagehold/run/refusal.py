"""What a run would refuse, or surely fail by, found without running anything."""

from __future__ import annotations

from pathlib import Path

from stagehold.errors import CodeUnusable
from stagehold.model.code_checks import code_problems
from stagehold.model.spec import Pipeline
from stagehold.plan.resume import ResumePlan
from stagehold.settings import Settings


def refuse_broken_code(pipeline: Pipeline, plan: ResumePlan, settings: Settings) -> None:
    """Code of stages that only reuse what is there is not imported, so it may be broken.

    :raises CodeUnusable: with everything that was found
    """
    found = {stage: code_problems(pipeline.stage(stage).job, Path(settings.project)) for stage in plan.stages_that_compute()}
    problems = {stage: [str(problem) for problem in problems] for stage, problems in found.items() if problems}
    if problems:
        raise CodeUnusable(pipeline.name, problems)
