"""What is computed along with a stage because its output is not stored."""

from __future__ import annotations

from stagehold.model.spec import Exchange, Pipeline, Stage


def sources_within(stage: Stage, pipeline: Pipeline) -> tuple[Stage, ...]:
    """The source stages whose rows go into a stage's output without being stored before: itself, or those that are fused into it."""
    if stage.source is not None:
        return (stage,)
    fused = (pipeline.stage(edge.stage) for edge in stage.inputs if not pipeline.stage(edge.stage).output.type.stored)
    found = {source.name: source for producer in fused for source in sources_within(producer, pipeline)}
    return tuple(found.values())


def stored_with(source: Stage, pipeline: Pipeline) -> tuple[Stage, ...]:
    """The stages whose commits hold what was read of a source stage first."""
    return tuple(stage for stage in pipeline.stages if stage.output.type.stored and source in sources_within(stage, pipeline))


def is_divisible(stage: Stage, pipeline: Pipeline) -> bool:
    """Whether some partitions of a stage cost just their share: all that is computed along with it is read forward."""
    fused = [(pipeline.stage(edge.stage), edge.exchange) for edge in stage.inputs if not pipeline.stage(edge.stage).output.type.stored]
    return all(exchange is Exchange.FORWARD and is_divisible(producer, pipeline) for producer, exchange in fused)
