from __future__ import annotations

import pytest

from stagehold.ledger.endings import may_end_as
from stagehold.model.records import AttemptState, RunState
from stagehold.model.states import ATTEMPT, RUN

RUN_LIVE = set(RunState) - {RunState.FINISHED, RunState.FAILED, RunState.CANCELED, RunState.SUSPENDED}
ATTEMPT_LIVE = set(AttemptState) - {AttemptState.FINISHED, AttemptState.FAILED, AttemptState.CANCELED}


@pytest.mark.parametrize(
    ("machine", "ending", "expected"),
    [
        (RUN, RunState.FINISHED, RUN_LIVE - {RunState.CANCELLING, RunState.FAILING}),
        (RUN, RunState.FAILED, RUN_LIVE),
        (RUN, RunState.CANCELED, RUN_LIVE),
        (RUN, RunState.SUSPENDED, RUN_LIVE),
        (ATTEMPT, AttemptState.FINISHED, ATTEMPT_LIVE - {AttemptState.CANCELING}),
        (ATTEMPT, AttemptState.FAILED, ATTEMPT_LIVE - {AttemptState.CANCELING}),
        (ATTEMPT, AttemptState.CANCELED, ATTEMPT_LIVE),
    ],
)
def test_an_ending_replaces_what_legally_leads_to_it(machine, ending, expected):
    assert set(may_end_as(machine, ending)) == expected
