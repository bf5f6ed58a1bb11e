"""When a word ends by which refused data could be read, what was made from that data may be shown no more."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.plan.resume.situations import (
    CHAIN,
    DONE,
    FUSED,
    altered,
    blocked,
    changed,
    finished,
    gather,
    records_of,
    source,
    stage,
    waived,
    with_facts,
    with_stage,
    word_ended,
    words,
)

from stagehold.model.records import StageVerdict
from stagehold.model.standing import PartitionState
from stagehold.plan.grounds.content_verdicts import content_of
from stagehold.plan.resume.decisions import EndedWaiver
from stagehold.plan.resume.healing import missing_inputs
from stagehold.plan.resume.planner import resume_plan
from stagehold.plan.split.regions import stage_regions
from stagehold.spec.pipeline import Output, OutputType, Pipeline
from stagehold.spec.settings.output_settings import OnWaiverEnd

GATED = changed(DONE, "clean", gate="g")
JUDGED = altered(altered(GATED, "clean", 0, judged="g"), "clean", 1, judged="g")
LET = altered(JUDGED, "clean", 1, refused=("revenue > 0",))  # published after it was waived
ENDED = word_ended(LET, "clean", 1)
OUT = altered(ENDED, "clean", 1, state=PartitionState.BLOCKED, version=None)  # after it was taken out
HELD = altered(OUT, "total", 0, state=PartitionState.HELD, version=None)  # and what was made from it
KEPT = with_stage(ENDED, "total", output=Output(table="marts.t", on_waiver_end=OnWaiverEnd.KEEP))
TABLE = [
    ("while the word holds", waived(LET, "clean", 1), "rr rr r", ""),
    ("when it has ended", ENDED, "rr rB B", "clean[1] total[0]"),
    ("after the refused partition is out", OUT, "rr rB B", "total[0]"),
    ("after all is out", HELD, "rr rB B", ""),
    ("when it is said again", waived(HELD, "clean", 1), "rr rJ J", ""),
    ("when it is said again before anything was done", waived(ENDED, "clean", 1), "rr rr r", ""),
    ("a word for other data has ended", word_ended(LET, "clean", 1, fingerprint="other"), "rr rJ r", ""),
    ("the output says keep", KEPT, "rr rB B", "clean[1]"),
    ("its source changed", changed(ENDED, "raw", splits=("split 0", "x")), "rR rR R", "clean[1] total[0]"),
    ("the word holds, and other data will be there", changed(waived(LET, "clean", 1), "raw", splits=("split 0", "x")),
     "rR rR R", "clean[1] total[0]"),
    ("its gate changed", changed(ENDED, "clean", gate="h"), "rr JJ r", "clean[1] total[0]"),
    ("its gate changed after all is out", changed(HELD, "clean", gate="h"), "rr JJ J", ""),
    ("its gate was taken away", changed(ENDED, "clean", gate=""), "rr rJ r", ""),
    ("its gate was taken away after all is out", changed(HELD, "clean", gate=""), "rr rJ J", ""),
    ("the reader was made from other data", altered(ENDED, "clean", 1, compute_key="x"), "rr rR R", "clean[1]"),
    ("it was released", altered(ENDED, "clean", 1, state=PartitionState.RELEASED), "rr rB B", "total[0]"),
    ("nobody ever waived it", blocked(JUDGED, "clean", 1), "rr rB B", ""),
]  # fmt: skip


def out(plan):
    return " ".join(f"{decision.stage}[{decision.partition}]" for decision in plan.decisions if decision.retracts)


@pytest.mark.parametrize(("name", "situation", "expected", "retracted"), TABLE, ids=[row[0] for row in TABLE])
def test_decisions(name, situation, expected, retracted):
    plan = resume_plan(situation)
    assert (" ".join(words(plan).values()), out(plan)) == (expected, retracted)
    assert plan.counts.retract == len(retracted.split())


def test_reasons_say_whose_word_ended_and_what_becomes_of_the_rows():
    plan = resume_plan(ENDED)
    assert str(plan.of("clean")[1].reason) == (
        "revenue > 0 is not met; the word of ann has ended (known); its rows are taken out of its table"
    )
    assert str(plan.of("total")[0].reason) == (
        "waits for clean[1], which its gate blocked; its rows are taken out of marts.t"
    )
    assert plan.of("total")[0].ended == EndedWaiver(("clean", 1), retracts=True)
    kept = resume_plan(KEPT).of("total")[0]
    assert kept.outstays
    assert str(kept.reason).endswith("; its rows stay in marts.t, and are marked")
    assert str(plan.counts) == "3 partitions reused, 0 run, 2 blocked, 2 taken out of their tables"


def test_a_region_that_takes_others_as_they_are_recorded_takes_nothing_that_may_be_read_no_more():
    plan = resume_plan(with_facts(ENDED, accepted=frozenset({"raw", "clean"})))
    assert " ".join(words(plan).values()) == "rr rB B"


def test_what_was_held_waits_for_the_verdict_on_what_it_was_made_from():
    situation = changed(HELD, "clean", gate="h")
    (region,) = (region for region in stage_regions(CHAIN) if "total" in region.stages)
    plan = resume_plan(with_facts(situation, accepted=frozenset({"raw", "clean"})))
    assert words(plan)["total"] == "J"
    assert missing_inputs(plan, CHAIN, region) == {"clean": (1,)}
    passed = altered(HELD, "clean", 1, state=PartitionState.CONSUMABLE, version=3, refused=())
    assert words(resume_plan(passed))["total"] == "J"
    assert missing_inputs(resume_plan(passed), CHAIN, region) == {}


def records(situation, *places):
    return tuple(
        record for stage, number in places for record in records_of(situation, stage) if record.partition == number
    )


FIRST, SECOND, TOTAL = ("clean", 0), ("clean", 1), ("total", 0)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ([FIRST, SECOND, TOTAL], "clean[1] total[0]"),
        ([FIRST, TOTAL, SECOND], "clean[1]"),  # of what there was before
        ([], "clean[1]"),  # nobody knows any more
    ],
)
def test_a_reader_of_all_that_was_made_from_it_goes_though_another_input_was_computed_since(made, expected):
    anew = altered(ENDED, "clean", 0, fingerprint="newer", compute_key="newer")
    before = (replace(records(ENDED, SECOND)[0], fingerprint="older", compute_key="older"),)
    history = (*before, *records(ENDED, *made), *records(anew, FIRST)) if made else ()
    assert out(resume_plan(replace(anew, history=history))) == expected


def test_it_goes_after_the_refused_partition_is_out_as_well():
    anew = altered(OUT, "clean", 0, fingerprint="newer", compute_key="newer")
    history = (*records(ENDED, FIRST, SECOND, TOTAL), *records(anew, FIRST, SECOND))
    assert out(resume_plan(replace(anew, history=history))) == "total[0]"


def test_what_is_computed_along_hands_it_on():
    done = changed(finished(FUSED), "raw", gate="g")
    let = word_ended(altered(done, "raw", 1, judged="g", refused=("revenue > 0",)), "raw", 1)
    let = altered(let, "raw", 0, judged="g")
    plan = resume_plan(let)
    assert " ".join(words(plan).values()) == "rB rB rB"
    assert out(plan) == "raw[1] kept[1]"


def test_a_reader_that_reads_all_goes_as_a_whole_and_others_stay():
    pipeline = Pipeline(
        name="both",
        file="both.yaml",
        stages=(
            source("raw"),
            source("other"),
            stage("mixed", gather("raw"), gather("other"), partitions=1, output=Output(type=OutputType.BLOCKING)),
            stage("apart", gather("other"), partitions=1),
        ),
    )
    done = altered(changed(finished(pipeline), "raw", gate="g"), "raw", 0, judged="g", refused=("no nulls",))
    done = altered(done, "raw", 1, judged="g")
    plan = resume_plan(word_ended(done, "raw", 0, "no nulls"))
    assert out(plan) == "raw[0] mixed[0]"
    computed_since = altered(word_ended(done, "raw", 0, "no nulls"), "other", 0, fingerprint="newer")
    assert out(resume_plan(computed_since)) == "raw[0]"


def test_a_word_for_all_of_a_stage_ends():
    done = altered(altered(changed(DONE, "clean", gate="g", whole="w"), "clean", 0, judged="g"), "clean", 1, judged="g")
    first, *_ = records = records_of(done, "clean")
    content = content_of(records)
    verdict = StageVerdict(first.cell, content, "w", "a1", first.recorded_at,
                           ("unique",), "unique: got 2")  # fmt: skip
    done = with_facts(done, verdicts={"clean": (verdict,)})
    assert " ".join(words(resume_plan(waived(done, "clean", -1, "unique", fingerprint=content))).values()) == "rr rr r"
    ended = word_ended(done, "clean", -1, "unique", fingerprint=content)
    plan = resume_plan(ended)
    assert (" ".join(words(plan).values()), out(plan)) == ("rr BB B", "clean[0] clean[1] total[0]")
    held = {"state": PartitionState.HELD, "version": None}
    after = altered(altered(altered(ended, "clean", 0, **held), "clean", 1, **held), "total", 0, **held)
    assert (" ".join(words(resume_plan(after)).values()), out(resume_plan(after))) == ("rr BB B", "")
    again = waived(after, "clean", -1, "unique", fingerprint=content)
    assert " ".join(words(resume_plan(again)).values()) == "rr JJ J"
