"""What `execution_mode: auto` stores, as tables of costs, and held against runs with failures at random moments."""

from __future__ import annotations

from itertools import chain, combinations
from random import Random
from statistics import mean

import pytest
from tests.plan.resume.situations import forward, gather, source, stage

from stagehold.plan.waves.worth import Risk, StageCost, cheapest, expected_seconds, weighed
from stagehold.spec.pipeline import Exchange, Input, Output, OutputType, Pipeline
from stagehold.spec.settings.output_settings import Worth

OPEN = Output(type=OutputType.PIPELINED, falls_back=True)
HOUR = 3600.0


def pipeline_of(*stages) -> Pipeline:
    return Pipeline(name="sales", file="sales.yaml", stages=stages)


def keyed(name: str) -> Input:
    return Input(stage=name, exchange=Exchange.KEYED, key=("k",))


def opened(stage):
    return stage.model_copy(update={"output": OPEN})


CHAIN = pipeline_of(
    opened(source("raw")),
    opened(stage("by_key", keyed("raw"))),
    opened(stage("dealt", gather("by_key"), partitions=1)),
    stage("total", forward("dealt"), partitions=1),
)
MANY = pipeline_of(opened(source("raw", 400)), stage("clean", forward("raw"), partitions=400))
FEW = pipeline_of(opened(source("raw", 2)), stage("clean", forward("raw"), partitions=2))

TABLE = [
    # Where work is short against the time between failures, nothing is worth its time.
    (CHAIN, ((10, 1), (10, 1), (10, 1), (10, 1)), Risk(24 * HOUR, 30), set()),
    # By Young's formula one of 60 s is worth storing behind sqrt(2 * 60 * 86,400) = 3,220 s.
    (CHAIN, ((4000, 60), (100, 60), (100, 60), (100, 1)), Risk(24 * HOUR, 30), {"raw"}),
    (CHAIN, ((400, 60), (100, 60), (100, 60), (100, 1)), Risk(24 * HOUR, 30), set()),
    # What is read partition by partition loses a wave, whatever it takes in all; a wave has one partition at least.
    (MANY, ((9000, 60), (9000, 60)), Risk(24 * HOUR, 30), set()),
    (FEW, ((9000, 60), (9000, 60)), Risk(24 * HOUR, 30), {"raw"}),
    # With a failure every ten minutes all that is long is stored.
    (CHAIN, ((300, 5), (300, 5), (300, 5), (300, 5)), Risk(600, 30), {"raw", "by_key", "dealt"}),
]


def costs_of(pipeline: Pipeline, costs) -> dict[str, StageCost]:
    return {stage.name: StageCost(*cost) for stage, cost in zip(pipeline.stages, costs, strict=True)}


@pytest.mark.parametrize(("pipeline", "costs", "risk", "expected"), TABLE)
def test_what_takes_longer_to_compute_again_than_to_store_is_stored(pipeline, costs, risk, expected):
    form = weighed(pipeline, costs_of(pipeline, costs), risk)
    assert {stage.name for stage in form.stages if stage.output.in_stored_form} == expected
    assert [stage.output.type for stage in form.stages] == [stage.output.type for stage in pipeline.stages]


def test_each_output_says_what_it_was_weighed_by():
    form = weighed(CHAIN, costs_of(CHAIN, TABLE[1][1]), TABLE[1][2])
    assert form.stage("raw").output.worth == Worth(True, 4000, 60)
    assert str(form.stage("raw").output.worth) == "4000.0 s to compute again, 60.0 s to store"
    assert form.stage("by_key").output.worth == Worth(False, 100, 60)
    assert form.stage("total").output.worth is None


def test_what_is_not_on_record_is_stored():
    form = weighed(CHAIN, {}, Risk(24 * HOUR, 30))
    assert [stage.output.worth for stage in form.stages] == [*[Worth(True)] * 3, None]
    assert str(Worth(True)) == "what it costs is not on record"


def test_the_choice_is_within_a_twentieth_of_the_best_one_when_failures_come_at_random():
    """Runs of made-up pipelines are played with failures at random moments, for each set of outputs to store."""
    behind = []
    for seed in range(60):
        random = Random(seed)
        pipeline, costs, risk = made_up(random)
        open_ones = [stage.name for stage in pipeline.stages if stage.output.falls_back]
        played = {
            frozenset(stored): mean(played_run(pipeline, frozenset(stored), costs, risk, Random(n)) for n in range(400))
            for stored in chain.from_iterable(combinations(open_ones, n) for n in range(len(open_ones) + 1))
        }
        chosen = cheapest(pipeline, open_ones, costs, risk)
        behind.append(played[chosen] / min(played.values()))
        assert expected_seconds(pipeline, chosen, costs, risk) == pytest.approx(played[chosen], rel=0.25)
    assert max(behind) < 1.05
    assert min(len(behind), 60) == 60


def made_up(random: Random):
    """A chain or a tree of stages, whose times differ by four orders of magnitude; failures are rare or frequent."""
    stages = [opened(source("s0"))]
    for number in range(1, random.randint(3, 5)):
        read = random.choice(stages[-2:]).name
        exchange = random.choice([forward(read), keyed(read), keyed(read)])
        stages.append(opened(stage(f"s{number}", exchange)))
    read = {edge.stage for one in stages for edge in one.inputs}
    stages = [one if one.name in read else stage(one.name, *one.inputs) for one in stages]
    costs = {one.name: StageCost(10 ** random.uniform(0, 3.5), 10 ** random.uniform(-1, 2)) for one in stages}
    return pipeline_of(*stages), costs, Risk(10 ** random.uniform(3.5, 5.5), 30.0)


def played_run(pipeline, stored, costs, risk: Risk, random: Random) -> float:
    """How long a run takes whose work fails at moments of a Poisson process, and which goes on from what is stored."""
    spent = 0.0
    for end in pipeline.stages:
        if not (end.output.type.stored or end.name in stored):
            continue
        names, whole = computed_along(pipeline, end.name, stored)
        work = sum(costs[name].computing for name in names)
        piece = work if whole else min(work, max(risk.wave, work / end.partitions))
        spent += costs[end.name].storing
        done = 0.0
        while done < work:
            needed = min(piece, work - done)
            failure = random.expovariate(1 / risk.between_failures)
            spent += min(needed, failure)
            done += needed if failure >= needed else 0.0
    return spent


def computed_along(pipeline, name, stored) -> tuple[set[str], bool]:
    names, whole = {name}, False
    for edge in pipeline.stage(name).inputs:
        producer = pipeline.stage(edge.stage)
        if producer.output.type.stored or edge.stage in stored:
            continue
        before, all_of_it = computed_along(pipeline, edge.stage, stored)
        names |= before
        whole |= all_of_it or edge.exchange is not Exchange.FORWARD
    return names, whole
