"""What a run is asked for in the end, and what is said of the rest."""

from __future__ import annotations

import pytest

from stagehold.airflow.context.restore_requests import BACKFILL
from stagehold.airflow.context.settled_wish import (
    LONGEST_NOTE,
    REMARKS,
    noted,
    remarks_in,
    settled_wish,
    wish_of_task,
)

FIELDS = ("interval", "restore", "restore_from_stage", "allow_non_restored_state", "segment")
STAGE, TYPED, OWN = {"restore_from_stage": "orders"}, {"interval": "2026-11-05"}, {"segment": "MACHINERY"}
PLAN = {BACKFILL: "shipping_priority-1"}
NAMED = {"restore": "kept"}
NO_BACKFILL = None
SHARED = (*FIELDS, "restore_pipeline")  # of a DAG with several pipelines


@pytest.mark.parametrize(
    ("conf", "backfill_conf", "settled", "remarks"),
    [
        pytest.param({}, NO_BACKFILL, {}, [], id="nothing"),
        pytest.param(STAGE | TYPED, NO_BACKFILL, STAGE | TYPED, [], id="a form that was filled in as it is meant"),
        pytest.param(
            {"intervall": "x", "restored": 1},
            NO_BACKFILL,
            {"intervall": "x", "restored": 1},
            ["intervall, restored is no field of this pipeline and does nothing; fields: allow_non_restored_state"],
            id="names that nobody reads",
        ),
        pytest.param(
            STAGE | TYPED,
            STAGE | TYPED,
            STAGE | TYPED,
            ["The interval 2026-11-05 was left aside: a backfill runs each of its dates for itself."],
            id="an interval in a backfill's form",
        ),
        pytest.param(PLAN, PLAN, PLAN, [], id="a backfill of the tab's"),
        pytest.param(
            PLAN | OWN, {}, OWN, ["stagehold_backfill of an earlier one was left aside"], id="the plan of one before"
        ),
        pytest.param(
            STAGE | {"restore": None},
            {},
            {"restore": None},
            ["restore_from_stage of an earlier one was left aside"],
            id="a restore of one before",
        ),
        pytest.param(STAGE | PLAN, PLAN, PLAN, ["restore_from_stage of an earlier one"], id="two that differ"),
        pytest.param(
            STAGE | NAMED | OWN,
            NO_BACKFILL,
            OWN,
            ["restore and restore_from_stage exclude each other, so both were left aside"],
            id="two restores",
        ),
        pytest.param(
            STAGE | NAMED,
            {"restore": "kept"},
            NAMED,
            ["restore_from_stage of an earlier one"],
            id="one is an earlier one's",
        ),
        pytest.param(STAGE | {"restore": " "}, NO_BACKFILL, STAGE | {"restore": " "}, [], id="a field with a blank"),
        pytest.param(OWN, {}, OWN, [], id="a backfill without a wish keeps what the pipeline computes with"),
    ],
)
def test_what_is_asked_for(conf, backfill_conf, settled, remarks):
    counts, said = settled_wish(conf, FIELDS, backfill_conf)
    assert counts == settled
    assert len(said) == len(remarks)
    assert all(part in remark for part, remark in zip(remarks, said, strict=True))


def test_what_was_said_of_a_start_counts_for_that_start_alone():
    assert settled_wish({REMARKS: ["a"], **TYPED}, FIELDS, NO_BACKFILL) == (TYPED, ())
    assert remarks_in({REMARKS: ["a"]}) == ["a"]
    assert remarks_in({}) == remarks_in(None) == []


def test_a_task_whose_run_no_scheduler_started_does_and_says_the_same():
    params = {"restore": "kept", "restore_from_stage": "orders", "segment": "MACHINERY", "intervall": "x"}
    given = STAGE | NAMED | {"intervall": "x"}
    _, remarks = settled_wish(given, FIELDS, NO_BACKFILL)
    counts, said = wish_of_task(params, given, FIELDS)
    assert counts == OWN | {"intervall": "x"}
    assert said == remarks
    assert len(said) == 2


def test_a_task_says_what_the_scheduler_said_once():
    settled, remarks = settled_wish({"intervall": "x"}, FIELDS, NO_BACKFILL)
    given = {**settled, REMARKS: ["Nothing is on record.", *remarks]}
    assert wish_of_task({**OWN, **given}, given, FIELDS) == (
        OWN | {"intervall": "x"},
        ("Nothing is on record.", *remarks),
    )
    assert wish_of_task(OWN, None, FIELDS) == (OWN, ())


def test_a_note_keeps_what_people_wrote_and_says_nothing_twice():
    note = noted("Ask Ann first.", ["a", "b"])
    assert note == "Ask Ann first.\nStagehold: a\nStagehold: b"
    assert noted(note, ["b"]) == note
    assert (noted(None, []), noted("", [])) == (None, "")
    assert len(noted("x" * LONGEST_NOTE, ["a"])) == LONGEST_NOTE


@pytest.mark.parametrize("asked", [STAGE, NAMED])
def test_a_restore_in_a_dag_with_several_pipelines_says_of_which(asked):
    settled, remarks = settled_wish(asked | OWN, SHARED, NO_BACKFILL)
    assert settled == OWN
    assert [remark.partition(",")[0] for remark in remarks] == [
        "The DAG has several pipelines and restore_pipeline names none"
    ]
    named = asked | {"restore_pipeline": "orders"}
    assert settled_wish(named, SHARED, NO_BACKFILL) == (named, ())


def test_the_pipeline_of_an_earlier_backfill_is_left_aside_with_it():
    settled, (remark,) = settled_wish(PLAN | {"restore_pipeline": "orders"}, SHARED, {})
    assert settled == {}
    assert "restore_pipeline, stagehold_backfill of an earlier one was left aside" in remark
