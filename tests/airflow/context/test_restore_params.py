"""What the fields of the form come to."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from stagehold.airflow.context.restore_requests import AskedRestore, order_asked
from stagehold.errors.request_errors import InvalidParameter
from stagehold.ledger.ledger import Ledger
from stagehold.model.backfill import WorkOrder
from stagehold.model.records import Restore
from stagehold.run.planning.restoring import stage_restored_from

NOW = datetime(2026, 11, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    ("params", "asked"),
    [
        ({}, None),
        ({"restore": None, "restore_from_stage": None, "allow_non_restored_state": True}, None),
        ({"restore": "  "}, None),
        ({"restore_from_stage": "orders"}, AskedRestore("orders")),
        ({"restore": " kept "}, AskedRestore(reference="kept")),
        ({"restore": "a/b#7", "allow_non_restored_state": True}, AskedRestore(None, "a/b#7", True)),
        ({"restore": "kept", "restore_pipeline": "orders"}, AskedRestore(reference="kept")),
        ({"restore": "kept", "restore_pipeline": "customers"}, None),
        ({"restore": "kept", "restore_pipeline": None}, None),
        ({"stagehold_backfill": "orders-1", "restore_pipeline": "orders"}, AskedRestore(backfill="orders-1")),
    ],
)
def test_a_run_is_restored_from_what_was_given(params, asked):
    assert AskedRestore.of(params, "orders") == asked


def test_a_backfill_of_another_pipeline_of_the_dag_has_this_one_do_nothing(tmp_path):
    asked = AskedRestore.of({"stagehold_backfill": "orders-1", "restore_pipeline": "orders"}, "customers")
    assert asked == AskedRestore(backfill="orders-1", of_another=True)
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
        order = order_asked(asked, "customers", "2026-11-20", ledger)
        restore = Restore("mine~customers/1", "asked", None, NOW, work_order=order)
        assert order == WorkOrder((), backfill="orders-1")
        assert stage_restored_from(restore, "customers", ledger) is None


def test_both_at_once_are_refused():
    with pytest.raises(InvalidParameter, match="restore is 'kept'; allowed: one of restore and restore_from_stage"):
        AskedRestore.of({"restore": "kept", "restore_from_stage": "orders"}, "orders")
