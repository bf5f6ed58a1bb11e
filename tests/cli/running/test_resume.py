from __future__ import annotations

from dataclasses import replace

import pytest
from tests.ledger.samples import RUN_ENDS, run

from stagehold.cli.running.resume import run_to_resume
from stagehold.errors import NoRunStopped
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Attempt, AttemptState, RunState
from stagehold.model.states import UNTIL_RUNNING
from stagehold.settings import Settings


@pytest.fixture
def settings(tmp_path):
    return Settings(home=str(tmp_path))


@pytest.mark.parametrize(
    ("launcher", "state", "working", "found"),
    [
        ("cli", RunState.FAILED, False, True),
        ("airflow", RunState.CANCELED, False, True),
        ("cli", RunState.RUNNING, True, False),
        ("cli", RunState.RUNNING, False, True),
        ("airflow", RunState.RUNNING, False, False),
        ("cli", RunState.FINISHED, False, False),
        ("cli", RunState.FAILING, True, False),
        ("cli", RunState.CANCELLING, False, True),
        ("airflow", RunState.FAILING, True, False),
        ("airflow", RunState.FAILING, False, True),
    ],
)
def test_the_newest_run_that_stopped_is_resumed_and_one_whose_command_was_killed_has_stopped(
    settings, launcher, state, working, found
):
    with Ledger.open(settings.ledger_url) as ledger:
        one = ledger.runs.start(replace(run("stopped"), launcher=launcher))
        if state is not RunState.RUNNING:
            ledger.runs.apply("stopped", *RUN_ENDS[state])
        ledger.attempts.create(
            Attempt("a", "stopped", one.pipeline, one.interval, "orders", 1, AttemptState.RUNNING, one.started_at),
            *UNTIL_RUNNING,
        )
        lease = ledger.leases.acquire(f"{one.pipeline}/{one.interval}/orders", "me", 60)
        if not working:
            ledger.leases.release(lease)
    if found:
        assert run_to_resume(None, settings).run_id == "stopped"
    else:
        with pytest.raises(NoRunStopped, match="failed or was stopped") as told:
            run_to_resume(None, settings)
        goes_on = (launcher, state) == ("cli", RunState.RUNNING)
        next_step = "`stagehold resume stopped` waits until the lease ends" if goes_on else "`stagehold run PIPELINE`"
        assert next_step in str(told.value)
