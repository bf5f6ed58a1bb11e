"""Plans of large backfills: one thread makes them, one after the other, while a reader who asked may leave and come
back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable

from stagehold.airflow.answering.api_server import server_ledger
from stagehold.airflow.answering.kept_pages import KeptPages
from stagehold.airflow.pipeline_page.pipeline_responses import PlanUnderWay
from stagehold.chronicle.chronicle import open_ledger
from stagehold.ledger.ledger import Ledger
from stagehold.model.backfill import BackfillChoice
from stagehold.model.kept import OF_PROCESS, KeptMemory
from stagehold.plan.backfill.backfill_plan import BackfillPlan
from stagehold.run.backfill.backfill_planning import (
    Progress,
    SourceSplits,
    chosen_intervals,
    plan_backfill,
    source_splits,
)
from stagehold.run.planning.shared_facts import SharedFacts
from stagehold.settings import Settings
from stagehold.spec.pipeline import Pipeline

LARGE = 5_000  # partitions, about a second of planning
MANY = 30  # intervals, about a second of planning as well


MadePlan = tuple[BackfillPlan, SourceSplits]  # a plan, and what there was to read before it was made


class LargePlans:
    """A plan that is asked for again is the plan that was made, until what it was made from has changed. Sources are
    looked at when it is confirmed, not whenever somebody asks how far it is.
    """

    def __init__(self, memory: KeptMemory = OF_PROCESS, clock: Callable[[], float] = time.monotonic) -> None:
        self._made = KeptPages[MadePlan]("plans of backfills", memory, clock, at_once=1, shows_old=False)
        self._under_way: dict[Hashable, PlanUnderWay] = {}

    def ask(self, name: Hashable, seen: object, make: Callable[[Progress], MadePlan]) -> BackfillPlan | PlanUnderWay:
        """The plan, or how far it is.

        :raises Exception: the error of the thread that made it, once.
        """
        found = self._made.page(name, seen, lambda: self._make(name, make), lambda: True)
        return found[0] if found else self._under_way.get(name, PlanUnderWay(planned=0, of=None))

    def confirmed(self, name: Hashable, seen: object, sources: Callable[[], SourceSplits]) -> BackfillPlan | None:
        """The plan that was made, if the plan would be the same now. If not, it is forgotten, and asking again makes
        another one.

        :param sources: what there is to read now.
        """
        made = self._made.current(name, seen)
        if made is None or made[1] != sources():
            self._made.forget(name)
            return None
        return made[0]

    def _make(self, name: Hashable, make: Callable[[Progress], MadePlan]) -> MadePlan:
        def advance(planned: int, of: int) -> None:
            self._under_way[name] = PlanUnderWay(planned=planned, of=of)

        try:
            return make(advance)
        finally:
            self._under_way.pop(name, None)


_PLANS = LargePlans()


class WantedPlan:
    """The backfill whose plan is asked for."""

    def __init__(self, choice: BackfillChoice, pipeline: Pipeline, settings: Settings) -> None:
        self.choice, self.pipeline, self.settings = choice, pipeline, settings

    def ask(self) -> BackfillPlan | PlanUnderWay:
        """The plan, or how far it is. A small plan is made at once.

        :raises StageholdError: the backfill makes no sense.
        """
        if not self._is_large:
            return self.plan()
        return _PLANS.ask(self._name, self._seen, self._planned)

    def plan(self) -> BackfillPlan:
        """The plan as it is now. For a large backfill it is the plan that was shown, unless the ledger, the pipeline,
        its code, suites or sources have changed since. Whether data that it reuses is still there is found by the runs.

        :raises StageholdError: the backfill makes no sense.
        """
        ledger = server_ledger(self.settings)
        shown = _PLANS.confirmed(self._name, self._seen, lambda: self._sources(ledger)) if self._is_large else None
        return shown or plan_backfill(self.choice, self.pipeline, ledger, self.settings)

    @property
    def _is_large(self) -> bool:
        intervals = len(chosen_intervals(self.choice, self.pipeline, server_ledger(self.settings)))
        return intervals > MANY or intervals * sum(stage.partitions for stage in self.pipeline.stages) > LARGE

    @property
    def _name(self) -> Hashable:
        return server_ledger(self.settings).name, self.pipeline.name, self.choice

    @property
    def _seen(self) -> object:
        facts, stages = SharedFacts(self.settings), self.pipeline.stages
        revision = server_ledger(self.settings).revision
        return self.pipeline, revision, tuple(facts.without_splits(stage, self.pipeline) for stage in stages)

    def _sources(self, ledger: Ledger) -> SourceSplits:
        return source_splits(self.choice, self.pipeline, ledger, self.settings)

    def _planned(self, progress: Progress) -> MadePlan:
        """The plan, made with connections of its own, which stay open until it is there."""
        with open_ledger(self.settings) as ledger, ledger.kept_open():
            sources = self._sources(ledger)  # before the plan, so that a change meanwhile is seen
            return plan_backfill(self.choice, self.pipeline, ledger, self.settings, progress), sources
