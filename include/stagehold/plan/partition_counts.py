"""Numbers of partitions that are decided for each interval: which are missing, and a pipeline that has those that are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stagehold.model.spec import Exchange, Pipeline, Stage
from stagehold.plan.parallelism import InputBytes, ParallelismSettings, decide_parallelism


@dataclass(frozen=True)
class CountedPipeline:
    """A pipeline for one interval. Of the ``undecided`` stages nothing was ever computed; their one partition stands for all."""

    pipeline: Pipeline
    undecided: frozenset[str]


def with_counts(pipeline: Pipeline, decided: Mapping[str, int]) -> CountedPipeline:
    """Put decided numbers, by stage id, where they belong: into the stages they were decided for, and their forward readers."""
    counts: dict[str, int | None] = {}
    for stage in pipeline.stages:
        counts[stage.name] = decided.get(stage.id) if stage.auto_partitions else _taken_over(stage, counts)
    stages = tuple(stage.model_copy(update={"partitions": counts[stage.name] or stage.partitions}) for stage in pipeline.stages)
    undecided = frozenset(name for name, count in counts.items() if count is None)
    return CountedPipeline(pipeline.model_copy(update={"stages": stages}), undecided)


def _taken_over(stage: Stage, counts: Mapping[str, int | None]) -> int | None:
    return next((counts[edge.stage] for edge in stage.inputs if edge.exchange is Exchange.FORWARD), stage.partitions)


def divided_inputs(stage: Stage) -> tuple[str, ...]:
    """Producers whose rows are dealt out over the stage's partitions; all others are read whole by each."""
    return tuple(edge.stage for edge in stage.inputs if edge.exchange is Exchange.KEYED)


def partitions_for(stage: Stage, pipeline: Pipeline, sizes: Mapping[str, int]) -> int:
    """The number for a stage whose divided inputs have ``sizes`` bytes, by producer.

    How many bytes a key group has is not on record: all are taken to be equally large, as a hash makes them but for hot keys.
    """
    inputs = [
        InputBytes(Exchange.KEYED, _dealt_out(sizes[name], stage.max_parallelism), pipeline.stage(name).partitions)
        for name in divided_inputs(stage)
    ]
    return decide_parallelism(inputs, ParallelismSettings(most=stage.max_parallelism)).partitions


def splits_for(stage: Stage, size: int, total: int, files: int) -> int:
    """The number for a source with ``total`` bytes in ``files`` files: splits of about ``size`` bytes.

    There are no more of them than files, which are not cut, or than the stage allows.
    """
    return min(max(-(-total // size), 1), max(files, 1), stage.max_parallelism)


def _dealt_out(total: int, groups: int) -> tuple[int, ...]:
    return tuple(total * (group + 1) // groups - total * group // groups for group in range(groups))
