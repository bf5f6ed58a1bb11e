"""Which partitions of a stage that is cut into others have their rows dealt anew: a table."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.plan.resume.situations import changed, finished, forward, fresh, records_of, source, stage, with_facts

from stagehold.model.records import StatePart
from stagehold.model.stage_state import StateKind
from stagehold.plan.resume.decisions import Action, Decision
from stagehold.plan.resume.planner import resume_plan
from stagehold.plan.resume.situation import Rescaled, Situation
from stagehold.plan.state.earlier_state import Earlier, Gap, Given
from stagehold.spec.pipeline import Exchange, Input, Pipeline
from stagehold.spec.settings.output_settings import OnCodeChange, StateForm

KEYED = Input(stage="raw", exchange=Exchange.KEYED, key=("id",))


def pipeline(partitions: int, edge: Input = KEYED, **state: StateForm) -> Pipeline:
    total = stage("total", edge, partitions=partitions).model_copy(update={"key": ("id",), "state": state})
    return Pipeline(name="chain", file="chain.yaml", stages=(source("raw", 4), total))


def restored(edge: Input = KEYED, lost: int | None = None, **state: StateForm) -> Situation:
    """It was cut into four, and is cut into eight now; whatever is before it is as it was."""
    then = finished(pipeline(4, edge, **state))
    records = {record.partition: record for record in records_of(then, "total") if record.partition != lost}
    known = {"raw": records_of(then, "raw")}
    return with_facts(fresh(pipeline(8, edge, **state)), records=known, rescaled={"total": Rescaled(records, 4, "i")})


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


LIST = {kind: StateForm(kind=kind, columns={"path": "string"}) for kind in StateKind if kind.is_list}


def dealt(known: Situation) -> list[Decision]:
    return [decision for decision in resume_plan(known).of("total") if getattr(decision, "dealt", False)]


@pytest.mark.parametrize("kind", LIST)
def test_what_a_stage_keeps_in_lists_is_dealt_wholly_or_not_at_all(kind):
    """A partition that is computed beside dealt ones would keep elements that they keep, too."""
    told = {str(decision.reason) for decision in dealt(restored(seen=LIST[kind]))}
    assert told == {"rows of the 4 restored partitions, dealt anew by their keys, and what its lists keep"}
    assert len(dealt(restored(seen=LIST[kind]))) == 8
    assert dealt(restored(seen=LIST[kind], lost=1)) == []


def test_what_was_kept_before_need_not_be_there_to_deal_what_followed_from_it():
    """As in another lake, where nothing is known of the interval before."""
    cut = {count: pipeline(count, seen=LIST[StateKind.UNION]) for count in (4, 8)}
    then = finished(cut[4], with_facts(fresh(cut[4]), earlier={"total": Earlier()}))
    part = StatePart("seen", (), 0, "f", 4, 128, began=Given().identity)
    records = {record.partition: replace(record, kept=(part,)) for record in records_of(then, "total")}
    elsewhere = with_facts(
        fresh(cut[8]), records={"raw": records_of(then, "raw")}, earlier={"total": Earlier("i", gap=Gap("i"))}
    )
    known = with_facts(elsewhere, rescaled={"total": Rescaled(records, 4, "i")})
    assert len(dealt(known)) == 8
    del records[1]
    assert {decision.action for decision in resume_plan(known).of("total")} == {Action.BLOCKED}
