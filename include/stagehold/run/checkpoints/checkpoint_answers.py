"""What an attempt does for the checkpoints of its run between two waves, and when it ends early."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from stagehold.errors import CheckpointsFailed, RunSuspended
from stagehold.ledger.checkpoints import Notice
from stagehold.model.checkpoint_records import (
    Answer,
    CheckpointFailure,
    CheckpointRecord,
    CheckpointState,
    CheckpointTrigger,
)
from stagehold.model.records import Attempt
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.stopping.stopping import refuse_suspended
from stagehold.spec.settings.run_settings import CheckpointSettings

POLL_SECONDS = 0.2

log = logging.getLogger(__name__)


class Answers:
    """Made when the attempt begins: failures before that do not concern it.

    A failure that is recorded between the beginning of the attempt and this moment may be missed; then the run goes on
    in spite of it.
    """

    def __init__(self, attempt: Attempt, declared: CheckpointSettings, workplace: Workplace) -> None:
        self._attempt, self._tolerable, self._workplace = attempt, declared.tolerable_failures, workplace
        self._timeout = declared.timeout.total_seconds()
        self._ledger = workplace.ledger.acknowledgements
        self._after = 0  # checkpoints up to this one do not change any more
        self._told: set[int] = set()
        self._told.update(notice.checkpoint.number for notice in self._heard() if _ended(notice))

    def at_boundary(self) -> None:
        """A wave is recorded: acknowledge every checkpoint that was asked for, and read what became of earlier ones.

        :raises CheckpointsFailed: more checkpoints failed than the pipeline tolerates.
        :raises RunSuspended: somebody suspended the run, with a savepoint or without one.
        """
        for notice in self._heard():
            if _waits_for_us(notice):
                self._ledger.answer(notice.checkpoint, self._attempt.attempt_id, Answer.ACKNOWLEDGED)
                if notice.checkpoint.trigger is CheckpointTrigger.STOP:
                    self._await_end(notice.checkpoint)
            elif _ended(notice) and notice.checkpoint.number not in self._told:
                self._told.add(notice.checkpoint.number)
                self._hear_end(notice)
        self.refuse_suspended()

    def refuse_suspended(self) -> None:
        """:raises RunSuspended: somebody suspended the run."""
        refuse_suspended(self._attempt.run_id, self._workplace.ledger)

    def close(self) -> None:
        """The attempt ends without having done its work: decline, so that no checkpoint waits for it. Raises nothing:
        the coordinator sees that the attempt has ended.
        """
        try:
            for notice in filter(_waits_for_us, self._heard()):
                reason = CheckpointFailure.CHECKPOINT_DECLINED_TASK_CLOSING
                self._ledger.answer(notice.checkpoint, self._attempt.attempt_id, Answer.DECLINED, reason)
        except Exception as error:  # noqa: BLE001 - the attempt ends because of another one
            log.info("%s ends without declining checkpoints: %s", self._attempt.attempt_id, error)

    def _heard(self) -> tuple[Notice, ...]:
        notices = self._ledger.notices(self._attempt, self._after)
        self._after = _settled(notices, self._after)
        return notices

    def _await_end(self, checkpoint: CheckpointRecord) -> None:
        """Begin nothing while others may still have to acknowledge the checkpoint. If the coordinator dies, the work
        goes on after a while; if the checkpoint is completed all the same, that is read at the next boundary.

        :raises RunSuspended: the checkpoint is complete.
        """
        waited = 0.0
        while waited < self._timeout:
            now = self._workplace.ledger.checkpoints.get(checkpoint.run_id, checkpoint.number)
            if now.state is not CheckpointState.IN_PROGRESS:
                self._told.add(now.number)
                return self._refuse_if_suspended(now)
            self._workplace.sleep(POLL_SECONDS)
            waited += POLL_SECONDS
        return None

    def _refuse_if_suspended(self, checkpoint: CheckpointRecord) -> None:
        if checkpoint.state is CheckpointState.COMPLETED and checkpoint.trigger is CheckpointTrigger.STOP:
            raise RunSuspended(checkpoint.run_id, checkpoint.savepoint)

    def _hear_end(self, notice: Notice) -> None:
        checkpoint = notice.checkpoint
        self._refuse_if_suspended(checkpoint)
        if checkpoint.fails_run:
            reason = str(checkpoint.reason or checkpoint.state)
            raise CheckpointsFailed(checkpoint.number, reason, checkpoint.failure or "", self._tolerable)
        if checkpoint.state is CheckpointState.COMPLETED and notice.answer is Answer.ACKNOWLEDGED:
            self._workplace.progress(f"{self._attempt.subject}: checkpoint {checkpoint.number} is complete")


def _ended(notice: Notice) -> bool:
    return notice.checkpoint.state is not CheckpointState.IN_PROGRESS


def _waits_for_us(notice: Notice) -> bool:
    return notice.asked and notice.answer is None and not _ended(notice)


def _settled(notices: Iterable[Notice], before: int) -> int:
    """The number before the first checkpoint that is still in progress; numbers are in order."""
    last = before
    for notice in notices:
        if not _ended(notice):
            return notice.checkpoint.number - 1
        last = notice.checkpoint.number
    return last
