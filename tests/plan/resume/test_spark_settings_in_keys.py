"""What is declared of Spark's settings in the keys of partitions."""

from __future__ import annotations

from dataclasses import replace

from tests.plan.resume.situations import CHAIN, DONE, FUSED, finished, words

from stagehold.model.keys.compute_key import ComputeKey
from stagehold.plan.resume.planner import resume_plan
from stagehold.plan.resume.situation import Situation
from stagehold.spec.pipeline import Pipeline

TOKYO = {"spark.sql.session.timeZone": "Asia/Tokyo"}
# As they were before there were any settings of Spark. Another text here has everybody's data computed again.
KEYS = {
    "raw": "code raw.6a15ac4012cf4957.env.6368f99d69c52b3a.229b97a8e5ada40e",
    "clean": "code clean.ee805db521f8b0f3.env.6368f99d69c52b3a.06091d0f9fc9ca0b",
    "total": "code total.f6b565682e52caab.env.6368f99d69c52b3a.79e6f86188071811",
}


def declaring(pipeline: Pipeline, name: str = "", **values: object) -> Pipeline:
    """With ``values`` for one stage, or for the pipeline."""
    if not name:
        return pipeline.model_copy(update=values)
    stages = tuple(stage.model_copy(update=values) if stage.name == name else stage for stage in pipeline.stages)
    return pipeline.model_copy(update={"stages": stages})


def keys(situation: Situation) -> dict[str, str]:
    return {
        decision.stage: str(decision.key) for decision in resume_plan(situation).decisions if decision.partition == 0
    }


def settings_of(pipeline: Pipeline, name: str) -> str:
    key = ComputeKey.parse(keys(finished(pipeline))[name])
    assert key is not None
    return key.settings


def test_a_pipeline_that_declares_nothing_has_the_keys_that_it_always_had():
    assert keys(DONE) == KEYS
    assert keys(finished(declaring(CHAIN, spark={}))) == KEYS


def test_what_functions_may_do_is_in_no_key():
    assert keys(finished(declaring(CHAIN, effects="allowed"))) == KEYS
    assert keys(finished(declaring(CHAIN, "clean", effects="allowed"))) == KEYS


def test_a_declared_setting_is_in_the_settings_of_its_stage_wherever_it_is_declared():
    own = declaring(CHAIN, "clean", spark=TOKYO)
    assert settings_of(own, "raw") == settings_of(CHAIN, "raw")
    assert settings_of(own, "clean") != settings_of(CHAIN, "clean")
    assert settings_of(declaring(CHAIN, spark=TOKYO), "clean") == settings_of(own, "clean")
    overridden = declaring(declaring(CHAIN, spark={"spark.sql.session.timeZone": "UTC"}), "clean", spark=TOKYO)
    assert settings_of(overridden, "clean") == settings_of(own, "clean")


def test_the_order_of_settings_does_not_count():
    two = {**TOKYO, "spark.sql.ansi.enabled": "false"}
    reversed_ = dict(reversed(two.items()))
    assert settings_of(declaring(CHAIN, spark=two), "raw") == settings_of(declaring(CHAIN, spark=reversed_), "raw")


def test_another_setting_of_a_stage_has_it_and_its_readers_computed_again():
    assert words(resume_plan(replace(DONE, pipeline=declaring(CHAIN, "clean", spark=TOKYO)))) == {
        "raw": "rr",
        "clean": "RR",
        "total": "R",
    }
    reasons = {
        str(decision.reason)
        for decision in resume_plan(replace(DONE, pipeline=declaring(CHAIN, spark=TOKYO))).of("raw")
    }
    assert reasons == {"the settings of the stage changed"}


def test_settings_of_a_stage_that_is_not_stored_count_for_its_readers():
    changed = replace(finished(FUSED), pipeline=declaring(FUSED, "mapped", spark=TOKYO))
    assert words(resume_plan(changed)) == {"raw": "rr", "mapped": "RR", "kept": "RR"}
