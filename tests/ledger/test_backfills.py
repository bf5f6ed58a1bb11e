"""Backfills are kept as they were asked for, and tell what the run of any interval does."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.ledger.samples import START
from tests.ledger.test_facts import BACKFILL, ORDER

from stagehold.errors import UnknownName
from stagehold.model.backfill import WorkOrder


def test_what_was_asked_is_found_by_its_id_in_its_pipeline(ledger):
    later = replace(BACKFILL, backfill_id="b2", requested_at=START + timedelta(hours=1))
    for one in (BACKFILL, later):
        ledger.backfills.record(one)
    assert ledger.backfills.get("sales", "b1") == BACKFILL
    assert ledger.backfills.newest("sales", 5) == (later, BACKFILL)
    for pipeline, name in (("sales", "b3"), ("other", "b1")):
        with pytest.raises(UnknownName):
            ledger.backfills.get(pipeline, name)


def test_an_interval_that_was_not_chosen_is_told_to_do_nothing():
    assert BACKFILL.order("2024-01-01") == ORDER
    assert BACKFILL.order("2024-01-02") == WorkOrder((), backfill="b1")
