"""The plan of a run that is asked for now."""

from __future__ import annotations

from stagehold.chronicle.chronicle import open_ledger
from stagehold.ledger.ledger import Ledger
from stagehold.plan.resume.decisions import ResumePlan
from stagehold.plan.resume.planner import resume_plan
from stagehold.plan.resume.situation import Situation
from stagehold.run.planning.lost_ledger import refuse_lost_ledger
from stagehold.run.planning.planning import IntervalView, RunRequest
from stagehold.run.planning.restoring import check_restore
from stagehold.settings import Settings
from stagehold.sources.attempt_sources import Sources
from stagehold.spec.pipeline import Stage


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


def sources_read(request: RunRequest, ledger: Ledger, settings: Settings) -> tuple[tuple[str, str, str | None], ...]:
    """What a run that is asked for now reads, by stage, in words; and what has become of it since, if the run has seen
    its sources before.
    """
    view = IntervalView.of_run(request, ledger, settings)
    sources, stages = view.sources, [stage for stage in view.pipeline.stages if stage.source]
    return tuple((stage.name, sources.told(stage), _since(sources, stage)) for stage in stages)


def _since(sources: Sources, stage: Stage) -> str | None:
    plain = stage.source is not None and stage.source.dealt and not stage.source.incremental
    return sources.since(stage) if plain and sources.seen(stage) else None
