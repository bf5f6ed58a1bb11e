"""Which outputs are worth storing: `execution_mode: auto`.

To store an output costs time in every run. Not to store it costs time when an attempt fails: what was computed along
with a reader is lost with the reader's work. Work of u seconds that begins anew with each failure, of which there is
one every M seconds, takes M (exp(u / M) - 1) seconds: Daly's model, of which Young's formula for the interval between
checkpoints is the first term. A stage that reads all it needs from tables, or partition by partition, loses a wave;
one that needs all of an output that is computed along loses everything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from math import expm1

from stagehold.spec.pipeline import Exchange, Pipeline, Stage
from stagehold.spec.settings.output_settings import Worth


@dataclass(frozen=True)
class StageCost:
    """Seconds that all partitions of a stage take: to be computed from stored inputs, and then to be stored."""

    computing: float
    storing: float


@dataclass(frozen=True)
class Risk:
    """One failure in so many seconds of work, which loses a wave of so many seconds where waves are independent."""

    between_failures: float
    wave: float


def weighed(pipeline: Pipeline, costs: Mapping[str, StageCost], risk: Risk) -> Pipeline:
    """The pipeline with each output that its mode leaves open as it is cheapest.

    :param costs: by name; an output of which nothing is known is stored, so that something will be.
    """
    open_ones = {stage.name for stage in pipeline.stages if stage.output.falls_back}
    unknown = open_ones - costs.keys()
    stored = unknown | cheapest(pipeline, open_ones - unknown, costs, risk)
    stages = tuple(
        _with_worth(stage, stage.name in stored, costs.get(stage.name)) if stage.name in open_ones else stage
        for stage in pipeline.stages
    )
    return pipeline.model_copy(update={"stages": stages})


def cheapest(
    pipeline: Pipeline, candidates: Collection[str], costs: Mapping[str, StageCost], risk: Risk
) -> frozenset[str]:
    """Those of the candidates to store. One after the other is changed as long as that helps most, once from nothing
    and once from everything, since outputs can be worth storing only together.
    """
    found = (_improved(pipeline, start, candidates, costs, risk) for start in (frozenset(), frozenset(candidates)))
    return min(found, key=lambda stored: expected_seconds(pipeline, stored, costs, risk))


def _improved(
    pipeline: Pipeline,
    stored: frozenset[str],
    candidates: Collection[str],
    costs: Mapping[str, StageCost],
    risk: Risk,
) -> frozenset[str]:
    while True:
        others = [stored ^ {name} for name in sorted(candidates)]
        best = min([stored, *others], key=lambda choice: expected_seconds(pipeline, choice, costs, risk))
        if best == stored:
            return stored
        stored = best


def expected_seconds(pipeline: Pipeline, stored: Collection[str], costs: Mapping[str, StageCost], risk: Risk) -> float:
    """How long a run takes in the mean if these outputs are stored, beside those that have to be."""
    total, kept_by_spark = 0.0, set[str]()
    for stage in pipeline.stages:
        if not _is_stored(stage, stored):
            continue
        along = dict(_along(stage, stored, pipeline))
        counted = [name for name in along if name not in kept_by_spark]
        kept_by_spark.update(name for name in along if pipeline.stage(name).output.type.bounded)
        work = sum(costs[name].computing for name in (stage.name, *counted) if name in costs)
        lost = work if any(along.values()) else min(work, max(risk.wave, work / stage.partitions))
        total += _with_failures(work, lost, risk.between_failures)
        total += costs[stage.name].storing if stage.name in costs else 0.0
    return total


def _with_failures(work: float, lost: float, between: float) -> float:
    return work / lost * between * expm1(lost / between) if lost else 0.0


def _along(stage: Stage, stored: Collection[str], pipeline: Pipeline) -> Iterator[tuple[str, bool]]:
    """Stages that are computed along with a stage, and whether each of its partitions needs all of them."""
    for edge in stage.inputs:
        producer, whole = pipeline.stage(edge.stage), edge.exchange is not Exchange.FORWARD
        if not _is_stored(producer, stored):
            yield producer.name, whole
            for name, all_of_it in _along(producer, stored, pipeline):
                yield name, whole or all_of_it


def _is_stored(stage: Stage, stored: Collection[str]) -> bool:
    return stage.output.type.stored or stage.name in stored


def _with_worth(stage: Stage, stored: bool, cost: StageCost | None) -> Stage:
    worth = Worth(stored, *((cost.computing, cost.storing) if cost else (None, None)))
    return stage.model_copy(update={"output": stage.output.model_copy(update={"worth": worth})})
