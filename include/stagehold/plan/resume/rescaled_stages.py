"""Which partitions of a stage that is cut otherwise now have their rows in those that a checkpoint has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from stagehold.model.keys.compute_key import digest
from stagehold.plan.grounds.reasons import because
from stagehold.plan.resume.decisions import Decision, ReuseDecision, RunDecision
from stagehold.plan.resume.judgement import identities, judge, shared_key
from stagehold.plan.resume.situation import Rescaled, Situation
from stagehold.plan.resume.upstream import Upstream
from stagehold.plan.state.earlier_state import old_partitions_read
from stagehold.spec.pipeline import Stage


class RescaledStage:
    """A stage that is cut into another number of partitions, and all of whose inputs are read by key or whole: then
    every row of a key is where its group was. What it keeps has parts of one whole in all partitions, so a stage that
    keeps state is dealt wholly or not at all: of a list that is partly computed anew, elements would be lost or double.
    """

    def __init__(self, stage: Stage, situation: Situation, upstreams: Sequence[Upstream]) -> None:
        self.stage, self.situation, self.upstreams = stage, situation, upstreams

    def of(self, decision: Decision) -> Decision:
        """The decision on a partition without a record, whose rows may be dealt anew in place of being computed."""
        rescaled = self._rescaled
        if rescaled is None:
            return decision
        if not self._counting.issuperset(self._read(decision.partition, rescaled.partitions)):
            return decision
        lists = ", and what its lists keep" if any(shape.kind.is_list for shape in self.stage.states) else ""
        reason = because(f"rows of the {rescaled.partitions} restored partitions, dealt anew by their keys{lists}")
        return replace(decision.turned(RunDecision, reason), dealt=True)

    def _read(self, partition: int, old_partitions: int) -> range:
        if self.stage.states:
            return range(old_partitions)
        return old_partitions_read(
            partition,
            partitions=self.stage.partitions,
            old_partitions=old_partitions,
            max_parallelism=self.stage.max_parallelism,
        )

    @property
    def _rescaled(self) -> Rescaled | None:
        pointwise = any(upstream.is_pointwise for upstream in self.upstreams)
        return None if pointwise else self.situation.of(self.stage.name).data.rescaled

    @cached_property
    def _counting(self) -> frozenset[int]:
        """Partitions of the checkpoint that would be reused now if the stage were cut as it was then."""
        assert self._rescaled is not None
        before = self.stage.model_copy(update={"partitions": self._rescaled.partitions})
        shared, counting = shared_key(before, self.situation), set()
        for old, record in self._rescaled.records.items():
            made_from = identities(before, self.situation, self.upstreams, old, record)
            key = replace(shared, inputs=digest(made_from))
            if judge(before, record, key, self.situation, self.upstreams)[0] is ReuseDecision:
                counting.add(old)
        return frozenset(counting)
