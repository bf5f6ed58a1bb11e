"""Where a gate can judge all partitions of a stage together."""

from __future__ import annotations

from collections.abc import Iterator

from stagehold.errors import InvalidSpec, SpecProblem
from stagehold.gates.suite import Suite
from stagehold.plan.split.regions import sources_within, stage_regions
from stagehold.spec.pipeline import CommitterKind, Pipeline, Stage
from stagehold.spec.settings.run_settings import Failover


def check_scope(suite: Suite, stage: Stage, pipeline: Pipeline) -> None:
    """
    :raises InvalidSpec: the suite has expectations about all of the stage, and something of the pipeline does not go
        with that.
    """
    whole = suite.of_stage
    if whole is None:
        return
    line, where = whole.expectations[0].line, f"stage {stage.name} of {pipeline.file}"
    problems = [
        SpecProblem(line, "scope", f"stage, with {one} ({where})", "partition, or a pipeline without that")
        for one in _problems(stage, pipeline)
    ]
    if problems:
        raise InvalidSpec(suite.file or suite.name, problems)


def _problems(stage: Stage, pipeline: Pipeline) -> Iterator[str]:
    """What is computed before it is all judged together has to be there when that is done, and nobody may need it."""
    if pipeline.speculation is not None:
        yield "speculation"
    if pipeline.failover is Failover.FULL:
        yield "failover: full"
    if stage.output.committer is CommitterKind.DELTA_SPARK:
        yield f"committer: {stage.output.committer}"
    if stage.states:
        yield "state"
    if stage.max_parallel_tasks > 1:
        yield f"max_parallel_tasks: {stage.max_parallel_tasks}"
    if any(one.source is not None and one.source.incremental for one in sources_within(stage, pipeline)):
        yield "an incremental source"
    region = next(one for one in stage_regions(pipeline) if stage.name in one.stages)
    for reader in pipeline.readers(stage.name):
        if reader.name in region.stages:
            yield f"{reader.name}, which reads it in the same task,"
