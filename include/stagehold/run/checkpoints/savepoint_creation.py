"""Makes a savepoint of a run, whether it has ended or goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from stagehold.checkpoints.coordinator_settings import CoordinatorSettings
from stagehold.errors import InvalidArgument, LeaseHeld, SavepointFailed, SavepointTaken
from stagehold.lake.checkpoints.savepoints import Savepoint, Savepoints, checked_name
from stagehold.model.checkpoint_records import CheckpointTrigger, SavepointRequest
from stagehold.model.records import Run
from stagehold.model.states import RUN, RunEvent
from stagehold.run.checkpoints.coordinator_driver import Driver
from stagehold.run.checkpoints.discarding import take_coordinator_lease
from stagehold.run.checkpoints.run_checkpoints import LISTENERS, RunCheckpoints, say
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.lease.leasing import kept_alive
from stagehold.run.planning.planning import RunRequest, in_its_form
from stagehold.run.stopping.stopping import at_work
from stagehold.spec.pipeline import Pipeline

POLL_SECONDS = 0.2


def create_savepoint(asked: SavepointRequest, pipeline: Pipeline, workplace: Workplace) -> Savepoint:
    """Make a savepoint, or have the run's coordinator make it, and wait for that. The same call may be repeated: it
    returns a savepoint that is there, and waits for one that is being made.

    While a run goes on, every attempt that computes is asked, and answers after its wave; with ``stop`` it ends there.

    :raises SavepointTaken: another savepoint has the name.
    :raises SavepointFailed: it was not made.
    """
    if made := ask_for_savepoint(asked, workplace):
        return made
    run = workplace.ledger.runs.get(asked.run_id)
    return _Creation(asked, run, pipeline, workplace).carry_out()


def ask_for_savepoint(asked: SavepointRequest, workplace: Workplace) -> Savepoint | None:
    """Put the request on record, so that `create_savepoint` serves it; returns the savepoint if it is there.

    :raises SavepointTaken: another savepoint has the name.
    """
    checked_name(asked.name)
    run = workplace.ledger.runs.get(asked.run_id)
    if made := Savepoints(workplace.settings.lake_uri).find(asked.name):
        return _same(made, asked)
    if asked.stop and RUN.is_terminal(run.state):
        raise InvalidArgument("--stop", asked.run_id, f"a run that goes on; this one is {run.state}")
    standing = workplace.ledger.savepoint_requests.ask(asked)
    if (standing.run_id, standing.stop) != (asked.run_id, asked.stop):
        raise SavepointTaken(asked.name, f"which is just being made of run {standing.run_id}")
    return None


def _same(made: Savepoint, asked: SavepointRequest) -> Savepoint:
    if made.run_id != asked.run_id:
        raise SavepointTaken(made.name, f"checkpoint {made.number} of run {made.run_id}")
    return made


class _Creation:
    def __init__(self, asked: SavepointRequest, run: Run, pipeline: Pipeline, workplace: Workplace) -> None:
        self.asked, self.run, self.pipeline, self.workplace = asked, run, pipeline, workplace

    def carry_out(self) -> Savepoint:
        try:
            while self._open:
                self._serve()
        except KeyboardInterrupt:
            self.workplace.ledger.savepoint_requests.settle(self.asked.name, "whoever asked for it gave up")
            raise
        settled = self.workplace.ledger.savepoint_requests.get(self.asked.name)
        if settled is not None and settled.failure:
            raise SavepointFailed(self.asked.name, self.run.run_id, settled.failure)
        return Savepoints(self.workplace.settings.lake_uri).get(self.asked.name)

    @property
    def _open(self) -> bool:
        standing = self.workplace.ledger.savepoint_requests.get(self.asked.name)
        return standing is not None and standing.settled_at is None

    def _serve(self) -> None:
        """Coordinate the run for as long as it takes, or leave that to who does already."""
        try:
            with self._coordinating() as checkpoints:
                if self._goes_on:
                    self._drive(checkpoints)
                elif self._open:
                    self._make(checkpoints)
        except LeaseHeld:
            self.workplace.sleep(POLL_SECONDS)

    @contextmanager
    def _coordinating(self) -> Iterator[RunCheckpoints]:
        """:raises LeaseHeld: somebody else does."""
        lease = take_coordinator_lease(self.run, self.workplace)
        with kept_alive(lease, self.workplace) as heartbeat:
            request = RunRequest(self.pipeline, self.run.run_id, self.run.interval, self.run.params)
            request = in_its_form(request, self.workplace.ledger)
            checkpoints = RunCheckpoints(self.run, request, self.workplace, heartbeat)
            checkpoints.clear_up()
            yield checkpoints

    @property
    def _goes_on(self) -> bool:
        """Whether an attempt is at work that could answer."""
        ledger = self.workplace.ledger
        return bool(at_work(ledger.attempts.of_run(self.run.run_id), ledger))

    def _drive(self, checkpoints: RunCheckpoints) -> None:
        driver = Driver(checkpoints, CoordinatorSettings.of(self.pipeline.checkpoint), LISTENERS)
        while self._open and self._goes_on:
            driver.turn()
            self.workplace.sleep(min(driver.pause, POLL_SECONDS))
        driver.turn()
        driver.suspend()

    def _make(self, checkpoints: RunCheckpoints) -> None:
        trigger = CheckpointTrigger.STOP if self.asked.stop else CheckpointTrigger.ASKED_FOR
        completed = checkpoints.take(trigger, self.asked.name)
        if self.asked.stop:
            self.workplace.ledger.runs.apply(self.run.run_id, RunEvent.SUSPEND)
        say(completed, self.workplace)
