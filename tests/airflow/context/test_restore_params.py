"""What the fields of the form come to."""

from __future__ import annotations

import pytest

from stagehold.airflow.context.restore_requests import AskedRestore
from stagehold.errors.request_errors import InvalidParameter


@pytest.mark.parametrize(
    ("params", "asked"),
    [
        ({}, None),
        ({"restore": None, "restore_from_stage": None, "allow_non_restored_state": True}, None),
        ({"restore": "  "}, None),
        ({"restore_from_stage": "orders"}, AskedRestore("orders")),
        ({"restore": " kept "}, AskedRestore(reference="kept")),
        ({"restore": "a/b#7", "allow_non_restored_state": True}, AskedRestore(None, "a/b#7", True)),
    ],
)
def test_a_run_is_restored_from_what_was_given(params, asked):
    assert AskedRestore.of(params) == asked


def test_both_at_once_are_refused():
    with pytest.raises(InvalidParameter, match="restore is 'kept'; allowed: one of restore and restore_from_stage"):
        AskedRestore.of({"restore": "kept", "restore_from_stage": "orders"})
