"""Held consumers, judged when their producers have run again: equal content spares them, other content restarts them.

Flink restarts every consumer of a producer that restarts, because it cannot know whether the output stays the same.
Outputs here carry a fingerprint of their content, so the question can be put off until the answer is known. Off unless
a failover was asked to hold finished consumers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stagehold.plan.failover import FailoverPlan, Reached, RestartCause, Situation, spread


@dataclass(frozen=True)
class Rerun:
    """A partition that was produced again, with the fingerprints of its old and new content; None means unknown."""

    partition: str
    before: str | None
    after: str | None

    @property
    def same(self) -> bool:
        """Whether the content is certainly equal; what is unknown counts as changed."""
        return self.before is not None and self.before == self.after


def after_rerun(situation: Situation, reruns: Iterable[Rerun]) -> FailoverPlan:
    """The consumers to restart now that their inputs were produced again, and those of theirs that are held in turn.

    Only finished consumers are judged: the others restarted together with the producer, or have yet to start.
    """
    first: dict[int, Reached] = {}
    for rerun in reruns:
        partition = situation.regions.topology.partition_number(rerun.partition)
        if rerun.same:
            continue
        for group in situation.regions.topology.groups_reading[partition]:
            for region in situation.regions.reading[group]:
                if situation.finished(region):
                    first.setdefault(region, Reached(RestartCause.INPUT_CHANGED, rerun.partition))
    return spread(situation, first)
