"""After which failures an output is stored that was computed along, as a table of a pipeline's failed attempts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.ledger.samples import attempt
from tests.made_records import partition_record
from tests.plan.resume.situations import forward, gather, source, stage

from stagehold.model.records import UNBEGUN, Attempt, AttemptState, Cell
from stagehold.plan.restart.after_failure import CAUSES, discarded, in_stored_form, last_failure, may_fall_back
from stagehold.plan.restart.rules import FENCED, RULES
from stagehold.plan.split.regions import sources_within, stage_regions
from stagehold.spec.pipeline import Output, OutputType, Pipeline
from stagehold.spec.settings.output_settings import Fallback

CHOSEN, GIVEN = Output(type=OutputType.PIPELINED, falls_back=True), Output(type=OutputType.PIPELINED)
RAW = source("raw").model_copy(update={"output": CHOSEN})
PIPELINE = Pipeline(
    name="sales",
    file="sales.yaml",
    stages=(
        RAW,
        stage("clean", forward("raw"), output=GIVEN),
        stage("ready", forward("clean")),
        stage("dealt", gather("ready"), partitions=1, output=CHOSEN),
        stage("total", forward("dealt"), partitions=1),
    ),
)
FIRST, SECOND = "raw__clean__ready", "dealt__total"


def failed(region: str, epoch: int, rule: str, share: str | None = None):
    return replace(attempt(epoch, region=region), failure_rule=rule, share=share)


TABLE = [
    ((), {}),
    ((failed(FIRST, 3, "disk_full"),), {"raw": Fallback("disk_full", 3)}),
    ((failed(FIRST, 3, "stalled", "0-1"), failed(FIRST, 4, "disk_full")), {"raw": Fallback("stalled", 3)}),
    (
        (failed(SECOND, 1, "spark_gone"), failed(FIRST, 2, "executor_lost")),
        {"raw": Fallback("executor_lost", 2), "dealt": Fallback("spark_gone", 1)},
    ),
    ((failed("a_region_of_other_days", 1, "spark_gone"),), {}),
]


@pytest.mark.parametrize(("attempts", "expected"), TABLE)
def test_what_a_region_lets_flow_by_itself_is_stored_after_the_first_such_failure(attempts, expected):
    form = in_stored_form(PIPELINE, attempts)
    assert {stage.name: stage.output.fallback for stage in form.stages if stage.output.fallback} == expected
    stored = {stage.name for stage in form.stages if stage.output.stored}
    assert stored == {"ready", "total", *expected}
    assert in_stored_form(form, ()) == PIPELINE


def test_neither_types_nor_regions_nor_who_tells_what_was_read_change():
    form = in_stored_form(PIPELINE, [failed(FIRST, 1, "stalled"), failed(SECOND, 2, "stalled")])
    assert stage_regions(form) == stage_regions(PIPELINE)
    assert [stage.output.type for stage in form.stages] == [stage.output.type for stage in PIPELINE.stages]
    assert [source.name for source in sources_within(form.stage("ready"), form)] == ["raw"]


def test_its_causes_are_rules():
    assert {rule.name for rule in RULES} >= CAUSES


def test_only_a_pipeline_with_such_an_output_has_to_ask():
    assert may_fall_back(PIPELINE)
    assert not may_fall_back(Pipeline(name="x", file="x.yaml", stages=(source("raw"), stage("a", forward("raw")))))


START = datetime(2026, 11, 20, tzinfo=UTC)
STATES = {"F": AttemptState.FINISHED, "X": AttemptState.FAILED, "C": AttemptState.CANCELED, "R": AttemptState.RUNNING}


def at(second):
    return START + timedelta(seconds=second)


def attempts(text, *, rule=None, epoch=1):
    """Several "name:state begin-end", in seconds; what is running has no end."""
    made = []
    for part in text.split(","):
        name, _, facts = part.strip().partition(":")
        begin, _, end = facts[1:].partition("-")
        made.append(
            Attempt(
                attempt_id=name,
                run_id="run",
                pipeline="p",
                interval="i",
                region="r",
                epoch=epoch,
                state=STATES[facts[0]],
                started_at=at(int(begin)),
                ended_at=at(int(end)) if end else None,
                failure_rule=rule,
            )
        )
    return made


def record(partition, attempt, run_id):
    return partition_record(partition, Cell("p", "s", "i"), attempt_id=attempt, run_id=run_id)


# attempts of the run, who made partitions 0, 1, 2 ... ("*": another run) -> those that do not count any more
DISCARDED = [
    ("nothing failed", "a:F1-2, b:R3", "a b", []),
    ("what was made before it failed", "a:F1-2, b:X3-4", "a b", [0, 1]),
    ("another run's stays", "a:F1-2, b:X3-4", "a * b", [0, 2]),
    ("what was made since counts", "a:F1-2, b:X3-4, c:F5-6", "c b", [1]),
    ("the last failure counts", "a:F1-2, b:X3-4, c:F5-6, d:X7-8, e:R9", "c d e", [0, 1]),
    ("who was under way belongs to what ended", "a:F1-9, b:X3-4", "a", [0]),
    ("adopted from an attempt that nobody knows", "b:X3-4", "gone", [0]),
    ("a cancel is no failure", "a:F1-2, b:C3-4", "a b", []),
]


@pytest.mark.parametrize(("text", "makers", "lost"), [row[1:] for row in DISCARDED], ids=[row[0] for row in DISCARDED])
def test_what_does_not_count_any_more(text, makers, lost):
    made = [record(number, name, "other" if name == "*" else "run") for number, name in enumerate(makers.split())]
    assert sorted(discarded({"s": made}, "run", attempts(text)).get("s", ())) == lost


def test_an_attempt_does_not_know_of_later_failures():
    known = attempts("a:F1-2, b:X5-6")
    made = {"s": [record(0, "a", "run")]}
    assert discarded(made, "run", known, as_of=at(5)) == {}
    assert discarded(made, "run", known, as_of=at(7)) == {"s": frozenset({0})}


def test_a_try_that_never_began_or_was_overtaken_is_no_failure_of_the_run():
    assert last_failure(attempts("a:X1-2", epoch=UNBEGUN)) is None
    assert last_failure(attempts("a:X1-2", rule=FENCED)) is None
    assert last_failure(attempts("a:X1-2, b:X1-4, c:X2-3")) == at(4)
