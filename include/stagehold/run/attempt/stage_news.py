"""Tells functions of installed packages what an attempt makes of the stages of its region."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from stagehold.extensions.installed import STAGE_LISTENERS, installed, tell_stage_listeners
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import AttemptState
from stagehold.model.states import StageStatusChange
from stagehold.run.intervals.interval_standings import states_in_run
from stagehold.run.planning.task import RegionTask

log = logging.getLogger(__name__)


class StageNews:
    """The states of the stages as this attempt told them last; the ledger is asked only where somebody listens."""

    def __init__(self, task: RegionTask, ledger: Ledger) -> None:
        self._task, self._ledger = task, ledger
        self._known = self._now()

    def tell(self) -> None:
        """Tell each stage that has another state by now. Nothing that goes wrong here harms the attempt."""
        request, now = self._task.request, self._now()
        for stage, before in self._known.items():
            if (after := now.get(stage, before)) is not before:
                tell_stage_listeners(
                    StageStatusChange(request.run_id, request.pipeline.name, request.interval, stage, before, after)
                )
        self._known = {**self._known, **now}

    def _now(self) -> Mapping[str, AttemptState]:
        request = self._task.request
        if not installed(STAGE_LISTENERS):
            return {}
        try:
            states = states_in_run(request.pipeline, request.run_id, request.interval, self._ledger)
            return {name: states[request.pipeline.stage(name).id] for name in self._task.region.stages}
        except Exception:
            log.warning("Could not tell how the stages of %s stand", self._task.subject, exc_info=True)
            return {}
