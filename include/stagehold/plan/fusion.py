"""What is computed along with a stage because its output is not stored."""

from __future__ import annotations

from stagehold.model.spec import Exchange, Pipeline, Stage


def is_divisible(stage: Stage, pipeline: Pipeline) -> bool:
    """Whether some partitions of a stage cost just their share: all that is computed along with it is read forward."""
    fused = [(pipeline.stage(edge.stage), edge.exchange) for edge in stage.inputs if not pipeline.stage(edge.stage).output.type.stored]
    return all(exchange is Exchange.FORWARD and is_divisible(producer, pipeline) for producer, exchange in fused)
