"""A cell is one stage of one interval: its state, and what a backfill would do about it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from stagehold.model.partition_set import NO_PARTITIONS, PartitionSet, Ranges
from stagehold.model.standing import CellStanding
from stagehold.plan.resume.decisions import Action, Decision, ResumePlan
from stagehold.plan.resume.plan_summary import Seconds, explain
from stagehold.plan.resume.released_outputs import ReleasedOutput, released_outputs
from stagehold.plan.split.regions import Region


@dataclass(frozen=True)
class CellReason:
    """Why some partitions run, are judged again, or neither."""

    text: str
    count: int
    partitions: str
    runs: bool = False
    judges: bool = False


@dataclass(frozen=True)
class BackfillCell:
    """``running`` are the partitions that the backfill computes, ``reuses`` how many are read as they are. ``released``
    are those of the running ones that are computed only since they were released and something reads them.
    """

    stage: str
    state: CellStanding
    partitions: int
    running: PartitionSet
    reuses: int
    seconds: float
    reasons: tuple[CellReason, ...]
    released: ReleasedOutput | None = None

    @property
    def runs(self) -> int:
        return len(self.running)

    @property
    def ranges(self) -> Ranges:
        """The ranges of the partitions that run."""
        return self.running.ranges


def cells_of(
    by_itself: ResumePlan,
    ordered: ResumePlan,
    regions: Sequence[Region],
    failed: Collection[str],
    seconds: Seconds,
) -> tuple[BackfillCell, ...]:
    """The cells of an interval, one for each stage.

    :param by_itself: what a run would do that nobody told anything.
    :param ordered: what the run of the backfill does.
    :param regions: all of the pipeline, in topological order.
    :param failed: stages in which the last attempt failed.
    """
    averages = {stage: fmean(timed.values()) for stage, timed in seconds.items() if timed}
    held_up = _held_up(ordered, regions)
    released = {output.stage: output for output in released_outputs(ordered)}
    return tuple(
        _never_reached(cell, held_up[cell.stage]) if cell.runs and cell.stage in held_up else cell
        for cell in (
            replace(
                _cell(stage, state_of(by_itself.of(stage), failed=stage in failed), ordered, seconds, averages),
                released=released.get(stage),
            )
            for stage in by_itself.by_stage
        )
    )


def _held_up(ordered: ResumePlan, regions: Sequence[Region]) -> Mapping[str, str]:
    """Stages of regions that never begin since a stage before them ends with something blocked; each with that
    stage.
    """
    by_region: dict[str, str] = {}
    found: dict[str, str] = {}
    for region in regions:
        before = next((by_region[name] for name in region.upstream if name in by_region), None)
        own = next((name for name in region.stages if _is_blocked(ordered, name)), None)
        if before is not None:
            found.update(dict.fromkeys(region.stages, before))
        if blocking := before or own:
            by_region[region.name] = blocking
    return found


def _is_blocked(ordered: ResumePlan, stage: str) -> bool:
    return any(decision.action is Action.BLOCKED for decision in ordered.of(stage))


def _never_reached(cell: BackfillCell, behind: str) -> BackfillCell:
    reason = CellReason(f"waits for {behind}, of which something is blocked", cell.runs, str(cell.running))
    return replace(
        cell, state=CellStanding.BLOCKED, running=NO_PARTITIONS, seconds=0.0, reasons=(reason,), released=None
    )


def state_of(decisions: Sequence[Decision], *, failed: bool) -> CellStanding:
    if any(decision.action is Action.BLOCKED for decision in decisions):
        return CellStanding.BLOCKED
    to_do = [decision for decision in decisions if decision.action.computes]
    if failed and to_do:
        return CellStanding.FAILED
    if any(
        decision.action is Action.HEAL or decision.record is None or not decision.record.state.counts_as_done
        for decision in to_do
    ):
        return CellStanding.MISSING
    stale = to_do or any(decision.action is Action.JUDGE for decision in decisions)
    return CellStanding.STALE if stale else CellStanding.GOOD


def _cell(
    stage: str, state: CellStanding, ordered: ResumePlan, seconds: Seconds, averages: Mapping[str, float]
) -> BackfillCell:
    decisions = ordered.of(stage)
    running = PartitionSet(decision.partition for decision in decisions if decision.action.computes)
    timed, average = seconds.get(stage, {}), averages.get(stage, 0.0)
    return BackfillCell(
        stage=stage,
        state=state,
        partitions=len(decisions),
        running=running,
        reuses=sum(decision.reused is not None for decision in decisions),
        seconds=sum(timed.get(partition, average) for partition in running),
        reasons=tuple(_reasons(stage, ordered)),
    )


def _reasons(stage: str, ordered: ResumePlan) -> Iterator[CellReason]:
    for line in explain(ordered, [stage]):
        yield CellReason(
            text=line.reason,
            count=len(line.partitions),
            partitions=str(line.partitions),
            runs=line.action.computes,
            judges=line.action is Action.JUDGE,
        )
