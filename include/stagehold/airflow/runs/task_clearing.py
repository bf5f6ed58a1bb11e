"""Which tasks of an Airflow run a resume clears: the least that brings every partition to consumable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stagehold.airflow.answering.response_model import ResponseModel
from stagehold.errors.request_errors import NothingToResume, RunStillActive
from stagehold.model.partition_set import Share
from stagehold.model.standing import PartitionState
from stagehold.plan.grounds.reasons import grouped
from stagehold.plan.resume.decisions import Action, BlockedDecision, ResumePlan
from stagehold.plan.split.regions import Region

ACTIVE_RUN_STATES = ("queued", "running")
SUCCESS = "success"
UNDONE = ("failed", "upstream_failed")
UNMAPPED = -1  # the map index of a task that is not mapped, or whose instances do not exist yet


@dataclass(frozen=True)
class DagTask:
    """A task in one Airflow run, or one instance of a mapped task.

    ``region`` is None for a task that is not ours, ``state`` for a task that was never scheduled. ``map_index`` is only
    a place in this run; the partitions of an instance of a mapped task are its ``share``.
    """

    task_id: str
    region: str | None
    state: str | None
    map_index: int = UNMAPPED
    share: Share | None = None

    @property
    def name(self) -> str:
        """The task as users know it."""
        return self.task_id if self.share is None else f"{self.task_id}[{self.share}]"


class TaskToClear(ResponseModel):
    """A task that a resume clears, with the reason that is shown to the user and kept as the task's note.

    ``map_index`` is None where the whole task is meant, with all its instances.
    """

    task_id: str
    region: str | None
    state: str | None
    reason: str
    name: str
    map_index: int | None = None

    @property
    def address(self) -> str | tuple[str, int]:
        """The task as Airflow's API wants it named."""
        return self.task_id if self.map_index is None else (self.task_id, self.map_index)


def tasks_to_clear(
    run: str, run_state: str, regions: Sequence[Region], tasks: Sequence[DagTask], plan: ResumePlan
) -> tuple[TaskToClear, ...]:
    """The tasks to clear. Succeeded tasks stay as they are unless their data has to be made again.

    :raises RunStillActive: Airflow still works on the run, so the plan may be outdated at any moment.
    :raises NothingToResume: everything is consumable, or all that is not is blocked by a gate.
    """
    if run_state in ACTIVE_RUN_STATES:
        raise RunStillActive(run, run_state)
    own = tuple(_own(regions, tasks, plan))
    others = tuple(_others(tasks))
    if not own and (plan.count(Action.BLOCKED) or not others):
        raise NothingToResume(run, _why_nothing(plan))
    return own + others


def _own(regions: Sequence[Region], tasks: Sequence[DagTask], plan: ResumePlan) -> Iterator[TaskToClear]:
    for region in regions:
        for task in tasks:
            reason = task.region == region.name and _reason(region, task, plan.within(region.stages, task.share))
            if reason:
                yield _clear(task, reason)


def _others(tasks: Sequence[DagTask]) -> Iterator[TaskToClear]:
    """Tasks of the same DAG that are not ours and that failed, or were never started."""
    for task in tasks:
        if task.region is None and task.state in UNDONE:
            yield _clear(task, f"was {task.state}")


def _clear(task: DagTask, reason: str) -> TaskToClear:
    """The task to clear. To clear an instance that does not exist yet, the whole mapped task is cleared."""
    return TaskToClear(
        task_id=task.task_id,
        region=task.region,
        state=task.state,
        reason=reason,
        name=task.name,
        map_index=None if task.map_index == UNMAPPED else task.map_index,
    )


def _reason(region: Region, task: DagTask, plan: ResumePlan) -> str | None:
    """Why a task is cleared.

    :param plan: the part of the plan that this task carries out.
    """
    decisions = [decision for stage in region.stages for decision in plan.of(stage)]
    computing = [decision for decision in decisions if decision.action.computes]
    if computing:
        return (
            f"runs {len(computing)} of {len(decisions)} partitions: "
            f"{', '.join(grouped(one.reason for one in computing))}"
        )
    judging = [decision for decision in decisions if decision.action is Action.JUDGE]
    if judging:
        return (
            f"judges {len(judging)} of {len(decisions)} partitions: {', '.join(grouped(one.reason for one in judging))}"
        )
    retracting = [decision for decision in decisions if decision.retracts]
    if retracting:
        return (
            f"takes {len(retracting)} of {len(decisions)} partitions out of their tables: "
            f"{', '.join(grouped(one.reason for one in retracting))}"
        )
    hinging = [decision for decision in decisions if decision.hinges_on]
    if hinging:
        # Starting it costs a second; that its data was made from what another task replaces would not be seen until the
        # next resume.
        return (
            f"may have to run {len(hinging)} of {len(decisions)} partitions: "
            f"{', '.join(grouped(one.reason for one in hinging))}"
        )
    if task.state != SUCCESS and not any(decision.action is Action.BLOCKED for decision in decisions):
        return f"was {task.state or 'not started'}; all {len(decisions)} partitions are reused"
    return None


def _why_nothing(plan: ResumePlan) -> str:
    """The reason that nothing can be resumed. It names the partitions that are blocked, not the many that only wait for
    them: those have a record of their own.
    """
    blocked = [decision for decision in plan.decisions if isinstance(decision, BlockedDecision)]
    removed = [decision for decision in blocked if decision.foreign is not None]
    if removed:
        return (
            f"{removed[0].stage}[{removed[0].partition}] {removed[0].reason}. Say so in the pipeline's file, then "
            "resume."
        )
    waiting = [decision for decision in blocked if decision.gap is not None]
    if waiting:
        return f"{waiting[0].stage}[{waiting[0].partition}] {waiting[0].reason}. Run that interval, then resume."
    held = [decision for decision in blocked if decision.key is not None]
    if not held:
        records = [one.record for one in plan.decisions if one.record is not None]
        released = sum(record.state is PartitionState.RELEASED for record in records)
        gone = f", but for {released} that were released since nothing needs them" if released else ""
        return f"all {len(plan.decisions)} partitions are consumable{gone}."
    named = ", ".join(f"{decision.stage}[{decision.partition}]" for decision in held)
    return (
        f"a gate blocked {named}, and nothing these follow from has changed. Correct the data, the code or the "
        "gate, then resume."
    )
