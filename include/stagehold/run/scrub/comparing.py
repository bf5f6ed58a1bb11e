"""Compares what a checkpoint has with its fingerprints, before a run begins with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from datetime import timedelta
from functools import cached_property
from uuid import uuid4

from stagehold.checkpoints.checkpoint import StageSnapshot
from stagehold.plan.determinism.verification import to_verify
from stagehold.run.delivery.comparison import mismatches
from stagehold.run.equipment.engine import Fingerprints
from stagehold.spec.pipeline import Pipeline

OpenSession = Callable[[timedelta], AbstractContextManager[Fingerprints]]


class SnapshotComparison:
    """As much as the pipeline's `verify` says, which is also what attempts read of that which they reuse. A session is
    opened if there is something to read, and kept until ``opened`` is left.
    """

    def __init__(self, pipeline: Pipeline, open_session: OpenSession, opened: ExitStack) -> None:
        self._pipeline, self._open_session, self._opened = pipeline, open_session, opened
        self._seed = uuid4().hex

    def damaged(self, stages: Sequence[StageSnapshot]) -> dict[str, list[int]]:
        """Partitions by stage whose content is not what was recorded. The first stage with one is enough to know."""
        for stage in stages:
            consumable = [one for one in stage.partitions if one.state.readable]
            seed = f"{self._seed}/{stage.shape.id}"
            chosen = to_verify(self._pipeline.verify, consumable, run_id="", interrupted=True, seed=seed)
            if chosen and (found := mismatches(chosen, self._session)):
                return {stage.shape.name: [one.record.partition for one in found]}
        return {}

    @cached_property
    def _session(self) -> Fingerprints:
        return self._opened.enter_context(self._open_session(self._pipeline.stall_timeout))
