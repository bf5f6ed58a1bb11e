"""What a sandbox has of an interval becomes what production has, by a run of production that computes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from stagehold.chronicle.chronicle import open_ledger
from stagehold.errors import NothingToPromote, PromotionComputes
from stagehold.lake.checkpoints.savepoints import Savepoint, Savepoints
from stagehold.model.checkpoint_records import SavepointRequest
from stagehold.model.records import Event, Run, RunState
from stagehold.plan.resume.decisions import ResumePlan
from stagehold.run.checkpoints.discarding import dispose_of
from stagehold.run.checkpoints.savepoint_creation import create_savepoint
from stagehold.run.equipment.workplace import Progress
from stagehold.run.here.local_run import run_locally
from stagehold.run.here.region import open_workplace
from stagehold.run.planning.current_plan import current_plan
from stagehold.run.planning.planning import RunRequest
from stagehold.run.planning.restoring import new_restore_of_snapshot
from stagehold.run.planning.task import RegionOutcome
from stagehold.settings import Settings
from stagehold.spec.pipeline import Pipeline


@dataclass(frozen=True)
class Promotion:
    """A run of production that begins with a savepoint of the ``tried`` run of a sandbox. ``own`` are the settings of
    the sandbox, ``settings`` those of production.
    """

    own: Settings
    settings: Settings
    tried: Run
    savepoint: Savepoint
    request: RunRequest

    @staticmethod
    def of(
        sandbox: str, pipeline: Pipeline, interval: str, settings: Settings, *, who: str, progress: Progress
    ) -> Promotion:
        """Save what the newest run of the interval in the sandbox has reached.

        :raises NothingToPromote: there is no such run, or it is not at its end
        """
        now, own = datetime.now(UTC), settings.in_sandbox(sandbox)
        with open_workplace(own, progress) as place:
            tried = place.ledger.runs.newest(pipeline.name, interval)
            if tried is None or tried.state is not RunState.FINISHED:
                told = (tried.run_id, tried.state) if tried else (None, None)
                raise NothingToPromote(sandbox, pipeline.name, interval, *told)
            name = f"promoted-{now:%Y%m%dT%H%M%S%f}"
            asked = SavepointRequest(name, tried.run_id, False, who, "sandbox promote", now)
            saved = create_savepoint(asked, pipeline, place)
        manifest = Savepoints(own.lake_uri).stored(saved).address(saved.number)
        run_id = f"{pipeline.name}/promoted__{now:%Y-%m-%dT%H:%M:%S.%f}"
        restore = new_restore_of_snapshot(run_id, manifest, allow_non_restored=False)
        request = RunRequest(pipeline, run_id, interval, tried.params, restore)
        return Promotion(own, settings, tried, saved, request)

    def plan(self) -> ResumePlan:
        """What production would take over.

        :raises PromotionComputes: something would be computed, as code, settings or sources are others by now
        """
        plan = current_plan(self.request, self.settings)
        computing = [decision for decision in plan.decisions if decision.action.computes]
        if computing:
            counts = {stage: sum(each.stage == stage for each in computing) for stage in plan.stages_that_compute()}
            why = {stage: next(str(each.reason) for each in computing if each.stage == stage) for stage in counts}
            raise PromotionComputes(self.own.sandbox, self.request.pipeline.name, self.request.interval, counts, why)
        return plan

    def carry_out(self, who: str, reason: str, progress: Progress) -> RegionOutcome:
        """Publish it in production: with its lease and fences, judged by its gates, each table by one commit.

        :raises PromotionComputes: before anything is changed
        """
        self.plan()
        outcome = run_locally(self.request, self.settings, progress)
        why = f": {reason}" if reason else ""
        text = f"{who} promoted run {self.tried.run_id} of sandbox {self.own.sandbox}{why}"
        with open_ledger(self.settings) as ledger:
            event = Event(self.request.run_id, "promoted", self.own.sandbox, text, datetime.now(UTC))
            ledger.events.append(event)
        return outcome

    def clean_up(self, progress: Progress) -> None:
        """Throw the savepoint away, which nobody needs once production has copies. Until then the run may go on."""
        with open_workplace(self.own, progress) as place:
            dispose_of(self.savepoint, place)
