from __future__ import annotations

import pytest
from tests.plan.resume.situations import CHAIN, FORK, FUSED, altered, discarding, finished, with_facts, without

from stagehold.model.standing import PartitionState
from stagehold.plan.resume.healing import healings, lost_data, missing_inputs
from stagehold.plan.resume.planner import resume_plan
from stagehold.plan.resume.situation import Situation
from stagehold.plan.split.regions import stage_regions


def gone(situation: Situation, **lost: set[int]) -> Situation:
    return with_facts(situation, gone={name: frozenset(partitions) for name, partitions in lost.items()})


def healed_for(situation: Situation, region: str) -> list[tuple[str, dict[str, list[int]]]]:
    regions = stage_regions(situation.pipeline)
    asked = next(one for one in regions if one.name == region)
    found = healings(resume_plan(situation), regions, asked)
    return [(region.name, {stage: sorted(partitions) for stage, partitions in lost.items()}) for region, lost in found]


@pytest.mark.parametrize(
    ("situation", "region", "expected"),
    [
        pytest.param(finished(CHAIN), "total", [], id="nothing is lost"),
        pytest.param(gone(finished(CHAIN), clean={1}), "total", [], id="lost, but nobody needs it"),
        pytest.param(
            gone(without(finished(CHAIN), "total", 0), clean={1}),
            "total",
            [("clean", {"clean": [1]})],
            id="one partition",
        ),
        pytest.param(
            gone(without(finished(CHAIN), "total", 0), raw={0, 1}, clean={1}),
            "total",
            [("raw", {"raw": [1]}), ("clean", {"clean": [1]})],
            id="what the lost one was computed from, in that order, and no more",
        ),
        pytest.param(
            gone(without(finished(CHAIN), "total", 0), clean={1}),
            "clean",
            [],
            id="a region computes its own in any case",
        ),
        pytest.param(
            gone(without(finished(FORK), "left", 0), raw={0}, right={0}),
            "left",
            [("raw", {"raw": [0]})],
            id="others heal what they read",
        ),
        pytest.param(
            altered(without(finished(CHAIN), "total", 0), "clean", 1, state=PartitionState.RELEASED),
            "total",
            [("clean", {"clean": [1]})],
            id="released on purpose",
        ),
        pytest.param(without(without(finished(CHAIN), "total", 0), "clean", 1), "total", [], id="never computed"),
        pytest.param(
            discarding(without(finished(CHAIN), "total", 0), raw={0}, clean={0, 1}),
            "total",
            [("raw", {"raw": [0]}), ("clean", {"clean": [0, 1]})],
            id="what the run made before it started anew",
        ),
        pytest.param(
            gone(without(finished(FUSED), "kept", 1), raw={0, 1}),
            "mapped__kept",
            [("raw", {"raw": [1]})],
            id="through a stage without data",
        ),
    ],
)
def test_a_region_heals_what_it_reads_upstream_first(situation, region, expected):
    assert healed_for(situation, region) == expected


def test_what_the_run_made_before_it_started_anew_was_not_lost_by_anybody():
    assert not lost_data(resume_plan(discarding(finished(CHAIN), raw={0}, clean={0, 1})))


def test_inputs_that_were_never_there_are_named_only_for_a_region_that_computes():
    situation = without(without(finished(CHAIN), "total", 0), "clean", 1)
    regions = {region.name: region for region in stage_regions(CHAIN)}
    assert missing_inputs(resume_plan(situation), CHAIN, regions["total"]) == {"clean": (1,)}
    assert missing_inputs(resume_plan(situation), CHAIN, regions["raw"]) == {}
    assert missing_inputs(resume_plan(finished(CHAIN)), CHAIN, regions["total"]) == {}


def test_lost_data_is_what_was_there_and_is_needed():
    lost = lost_data(resume_plan(gone(without(finished(CHAIN), "total", 0), clean={1}, raw={0})))
    assert [(decision.stage, decision.partition) for decision in lost] == [("clean", 1)]
