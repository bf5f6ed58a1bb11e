"""Who may publish a wave, and when that is settled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from stagehold.ledger.heartbeat import Heartbeat
from stagehold.model.records import Attempt
from stagehold.plan.resume.decisions import Decision


@dataclass(frozen=True)
class PublishRight:
    """The right to publish ``partitions`` and to record them; ``attempt`` has its epoch."""

    attempt: Attempt
    heartbeat: Heartbeat
    partitions: frozenset[int]


class Publisher(Protocol):
    """How an attempt comes to the right to publish: from its lease, or, if it is speculative, by being first."""

    def begin_stage(self, stage: str, prepare: Callable[[int], None]) -> None:
        """Nothing of this attempt is written; ``prepare`` makes the stage's table ready for an epoch and fences
        all earlier ones.
        """

    def right_to(self, stage: str, decisions: Sequence[Decision]) -> PublishRight:
        """A wave is ready to be published; which of its partitions may be, after all.

        :raises Fenced: a newer attempt has the right to them.
        """
