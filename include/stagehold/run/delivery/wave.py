"""A wave: partitions of one stage that are computed together and committed together, and who may publish it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

from stagehold.gates.suite import Suite
from stagehold.gates.verdicts import GateVerdict
from stagehold.lake.commit.committer import Committer
from stagehold.lake.commit.staging import StagedWave
from stagehold.lake.measure import PartitionMetrics
from stagehold.lake.store.location import TableLocation
from stagehold.ledger.leases import Heartbeat
from stagehold.model.choices import Waiver
from stagehold.model.keys.compute_key import tells_of_the_same
from stagehold.model.records import Attempt, Cell, StatePart
from stagehold.model.source_position import SourcePosition
from stagehold.model.states import AttemptEvent
from stagehold.plan.determinism.verification import remark
from stagehold.plan.resume.decisions import Action, Decision, RunDecision
from stagehold.run.equipment.workplace import Session, Workplace
from stagehold.spec.pipeline import Stage


@dataclass(frozen=True)
class StageTask:
    """A stage in an attempt: what its waves are for, and where they go. ``suite`` judges each partition, ``whole``
    all of them together: they are held until it has. ``waivers`` are those in force.
    """

    stage: Stage
    cell: Cell
    attempt: Attempt
    location: TableLocation
    positions: tuple[SourcePosition, ...]
    suite: Suite | None
    waivers: tuple[Waiver, ...] = ()
    whole: Suite | None = None

    @property
    def judge(self) -> str:
        """What tells its suite from others, and whether that has changed."""
        return self.suite.fingerprint if self.suite else ""


@dataclass(frozen=True)
class Wave:
    """Computed, staged, measured and judged; ``started`` is when its computing began, by the monotonic clock. ``kept``
    is the state of partitions that have some, ``counted`` what functions counted for partitions. It took ``computing``
    seconds of its time before it was written.
    """

    number: int
    decisions: tuple[Decision, ...]
    staged: StagedWave
    metrics: tuple[PartitionMetrics, ...]
    started: float
    kept: Mapping[int, tuple[StatePart, ...]] = field(default_factory=dict)
    verdicts: tuple[GateVerdict, ...] = ()
    counted: Mapping[int, tuple[tuple[str, int], ...]] = field(default_factory=dict)
    computing: float = 0.0

    def of(self, partitions: Collection[int]) -> Wave:
        """The wave without partitions that are not in ``partitions``."""
        return replace(
            self,
            decisions=tuple(decision for decision in self.decisions if decision.partition in partitions),
            metrics=tuple(metrics for metrics in self.metrics if metrics.partition in partitions),
            verdicts=tuple(verdict for verdict in self.verdicts if verdict.partition in partitions),
        )

    @property
    def rows(self) -> int:
        return sum(metrics.rows for metrics in self.metrics)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    @cached_property
    def keys(self) -> Mapping[int, str]:
        return {decision.partition: str(decision.key) for decision in self.decisions}

    @cached_property
    def remarks(self) -> Mapping[int, str]:
        """What is odd about partitions that were computed before."""
        return self._remarks(self.decisions)

    @property
    def other_data(self) -> Mapping[int, str]:
        """What is odd about those that were recorded under the very key that they have now."""
        keyed = (
            decision
            for decision in self.decisions
            if decision.record and tells_of_the_same(decision.record.compute_key, str(decision.key))
        )
        return self._remarks(tuple(keyed))

    def _remarks(self, decisions: tuple[Decision, ...]) -> Mapping[int, str]:
        fingerprints = {metrics.partition: metrics.fingerprint for metrics in self.metrics}
        found = {
            decision.partition: remark(
                None if isinstance(decision, RunDecision) and decision.anew else decision.record,
                compute_key=str(decision.key),
                fingerprint=fingerprints[decision.partition],
                healed=decision.action is Action.HEAL,
                because=decision.reason,
            )
            for decision in decisions
        }
        return {partition: text for partition, text in found.items() if text}


_ATTRIBUTE = "__stagehold_wave__"


@dataclass(frozen=True)
class WavePlace:
    stage: str
    wave: int
    partitions: tuple[int, ...]


@contextmanager
def in_wave(place: WavePlace) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if place_of(error) is None:
            setattr(error, _ATTRIBUTE, place)
        raise


def place_of(error: BaseException | None) -> WavePlace | None:
    """The place of an error, or of what it came from."""
    while error is not None:
        place: WavePlace | None = getattr(error, _ATTRIBUTE, None)
        if place is not None:
            return place
        error = error.__cause__
    return None


@dataclass(frozen=True)
class PublishRight:
    """The right to publish ``partitions`` and to record them; ``attempt`` has its epoch."""

    attempt: Attempt
    heartbeat: Heartbeat
    partitions: frozenset[int]


class Publisher(Protocol):
    """How an attempt comes to the right to publish: from its lease, or, if it is speculative, by being first."""

    def report(self, event: AttemptEvent) -> None:
        """The attempt has come so far."""

    def begin_stage(self, stage: str, prepare: Callable[[int], None]) -> None:
        """Begin a stage of which this attempt has written nothing yet; ``prepare`` makes the stage's table ready for an
        epoch and fences all earlier ones.
        """

    def right_to(self, stage: str, decisions: Sequence[Decision]) -> PublishRight:
        """A wave is ready to be published; which of its partitions may be, after all.

        :raises Fenced: a newer attempt has the right to them.
        """


@dataclass(frozen=True)
class EquippedStage:
    """A stage in an attempt, with all that it takes to compute, judge and publish its waves."""

    task: StageTask
    session: Session
    publisher: Publisher
    committer: Committer
    workplace: Workplace
