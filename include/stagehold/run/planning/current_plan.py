"""The plan of a run that is asked for now."""

from __future__ import annotations

from stagehold.chronicle.chronicle import open_ledger
from stagehold.plan.resume.decisions import ResumePlan
from stagehold.plan.resume.planner import resume_plan
from stagehold.plan.resume.situation import Situation
from stagehold.run.planning.lost_ledger import refuse_lost_ledger
from stagehold.run.planning.planning import IntervalView, RunRequest
from stagehold.run.planning.restoring import check_restore
from stagehold.settings import Settings


def current_plan(request: RunRequest, settings: Settings) -> ResumePlan:
    """What a run that is asked for now would do.

    :raises LedgerLost: the tables know the interval, and the ledger does not.
    """
    return resume_plan(current_situation(request, settings))


def current_situation(request: RunRequest, settings: Settings) -> Situation:
    """The situation that this plan is made from.

    :raises LedgerLost: the tables know the interval, and the ledger does not.
    """
    with open_ledger(settings) as ledger:
        refuse_lost_ledger(request, ledger, settings)
        check_restore(request)
        return IntervalView.of_run(request, ledger, settings).situation
