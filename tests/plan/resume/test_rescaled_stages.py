"""Which partitions of a stage that is cut into others have their rows dealt anew: a table."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.plan.resume.situations import changed, finished, forward, fresh, records_of, source, stage, with_facts

from stagehold.plan.resume.decisions import Action
from stagehold.plan.resume.planner import resume_plan
from stagehold.plan.resume.situation import Rescaled, Situation
from stagehold.spec.pipeline import Exchange, Input, Pipeline
from stagehold.spec.settings.output_settings import OnCodeChange

KEYED = Input(stage="raw", exchange=Exchange.KEYED, key=("id",))


def pipeline(partitions: int, edge: Input = KEYED) -> Pipeline:
    total = stage("total", edge, partitions=partitions).model_copy(update={"key": ("id",)})
    return Pipeline(name="chain", file="chain.yaml", stages=(source("raw", 4), total))


def restored(edge: Input = KEYED, lost: int | None = None) -> Situation:
    """It was cut into four, and is cut into eight now; whatever is before it is as it was."""
    then = finished(pipeline(4, edge))
    records = {record.partition: record for record in records_of(then, "total") if record.partition != lost}
    known = {"raw": records_of(then, "raw")}
    return with_facts(fresh(pipeline(8, edge)), records=known, rescaled={"total": Rescaled(records, 4, "i")})


def keeping(known: Situation) -> Situation:
    total = known.pipeline.stages[1].model_copy(update={"on_code_change": OnCodeChange.KEEP})
    return replace(known, pipeline=known.pipeline.model_copy(update={"stages": (known.pipeline.stages[0], total)}))


@pytest.mark.parametrize(
    ("known", "dealt"),
    [
        (restored(), range(8)),
        (restored(lost=1), [0, 1, 4, 5, 6, 7]),
        (changed(restored(), "total", code="new"), []),
        (keeping(changed(restored(), "total", code="new")), range(8)),
        (replace(restored(), params="other"), []),
        (changed(restored(), "raw", splits=("other", "split 1", "split 2", "split 3")), []),
        (with_facts(restored(), rescaled={}), []),
    ],
    ids=["nothing changed", "one is lost", "code", "code that is kept", "parameters", "an input", "no checkpoint"],
)
def test_rows_are_dealt_anew_where_nothing_but_the_cut_is_other(known, dealt):
    decisions = resume_plan(known).of("total")
    assert {decision.action for decision in decisions} == {Action.RUN}
    assert [decision.partition for decision in decisions if decision.dealt] == list(dealt)
    assert all("4 restored partitions, dealt anew" in str(decision.reason) for decision in decisions if decision.dealt)


def test_partitions_that_follow_others_one_by_one_have_no_keys_to_be_dealt_by():
    known = replace(restored(forward("raw")), pipeline=pipeline(4, forward("raw")))
    assert not any(decision.dealt for decision in resume_plan(known).of("total"))
