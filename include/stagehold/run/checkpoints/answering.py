"""What an attempt does for the checkpoints of its run between two waves, and when it closes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial

from stagehold.errors import CheckpointsFailed
from stagehold.ledger.acknowledgements import Notice
from stagehold.model.checkpoint_records import Answer, CheckpointFailure, CheckpointState
from stagehold.model.records import Attempt
from stagehold.run.workplace import Workplace
from stagehold.spec.run_settings import CheckpointSettings

log = logging.getLogger(__name__)


class Answers:
    """Made when the attempt begins: what had failed by then is no concern of it.

    A failure that is recorded between the beginning and this may be missed; then the run goes on in spite of it.
    """

    def __init__(self, attempt: Attempt, declared: CheckpointSettings, workplace: Workplace) -> None:
        self._attempt, self._tolerable, self._workplace = attempt, declared.tolerable_failures, workplace
        self._ledger = workplace.ledger.acknowledgements
        heard = partial(self._ledger.notices, attempt)
        self._notices: Callable[[int], tuple[Notice, ...]] = heard if declared.interval else _nothing
        self._after = 0  # nothing new can be heard of checkpoints up to this one
        self._told: set[int] = set()
        self._told.update(one.checkpoint.number for one in self._heard() if _ended(one))

    def at_boundary(self) -> None:
        """A wave is recorded: acknowledge whatever is asked for, and hear what became of it.

        :raises CheckpointsFailed: more checkpoints failed than the pipeline tolerates.
        """
        for notice in self._heard():
            if _waits_for_us(notice):
                self._ledger.answer(notice.checkpoint, self._attempt.attempt_id, Answer.ACKNOWLEDGED)
            elif _ended(notice) and notice.checkpoint.number not in self._told:
                self._told.add(notice.checkpoint.number)
                self._hear_end(notice)

    def close(self) -> None:
        """The attempt ends without having done its work: decline, so that nobody waits for it. Fails nobody: whoever
        asked sees that it has ended.
        """
        try:
            for notice in filter(_waits_for_us, self._heard()):
                reason = CheckpointFailure.CHECKPOINT_DECLINED_TASK_CLOSING
                self._ledger.answer(notice.checkpoint, self._attempt.attempt_id, Answer.DECLINED, reason)
        except Exception as error:  # noqa: BLE001 - the attempt ends because of another one
            log.info("%s ends without declining checkpoints: %s", self._attempt.attempt_id, error)

    def _heard(self) -> tuple[Notice, ...]:
        notices = self._notices(self._after)
        self._after = _settled(notices, self._after)
        return notices

    def _hear_end(self, notice: Notice) -> None:
        checkpoint = notice.checkpoint
        if checkpoint.fails_run:
            reason = str(checkpoint.reason or checkpoint.state)
            raise CheckpointsFailed(checkpoint.number, reason, checkpoint.failure or "", self._tolerable)
        if checkpoint.state is CheckpointState.COMPLETED and notice.answer is Answer.ACKNOWLEDGED:
            self._workplace.progress(f"{self._attempt.subject}: checkpoint {checkpoint.number} is complete")


def _nothing(after: int) -> tuple[Notice, ...]:  # noqa: ARG001
    """No checkpoints are taken while the run goes on, so the ledger is not asked."""
    return ()


def _ended(notice: Notice) -> bool:
    return notice.checkpoint.state is not CheckpointState.IN_PROGRESS


def _waits_for_us(notice: Notice) -> bool:
    return notice.asked and notice.answer is None and not _ended(notice)


def _settled(notices: Iterable[Notice], before: int) -> int:
    """The number below the first that goes on; numbers are in order."""
    last = before
    for notice in notices:
        if not _ended(notice):
            return notice.checkpoint.number - 1
        last = notice.checkpoint.number
    return last
