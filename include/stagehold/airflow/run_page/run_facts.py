"""What the page of a run is made from, and its lines about the run's attempts: how each ended, why, and how its time
was spent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stagehold.airflow.answering.response_model import AS_RECORDED, Looked
from stagehold.airflow.run_page.run_responses import AttemptLine, AttemptLoss, RestoredFrom, WaveEnd
from stagehold.airflow.runs.task_clearing import ACTIVE_RUN_STATES
from stagehold.errors.base import StageholdError
from stagehold.model.choices import Waiver
from stagehold.model.records import Attempt, AttemptState, Event, GateResult, PartitionRecord, RunState
from stagehold.model.states import ATTEMPT, ENDED_BADLY
from stagehold.plan.resume.decisions import ResumePlan
from stagehold.plan.split.regions import Region
from stagehold.plan.split.shares import newest_covering
from stagehold.run.journal.journal import LOST
from stagehold.run.lease.lost_attempts import Loss

if TYPE_CHECKING:
    from stagehold.airflow.runs.dag_runs import StageholdDagRun

RESUMED = "resumed"  # the kind of the event that says who pressed Resume; its subject is the user


@dataclass(frozen=True, kw_only=True)
class ResumeFacts:
    """What a resume of a run is made from; ``refusal`` says why nothing can be run, if so. ``resumed`` is when somebody
    last pressed Resume.
    """

    dag_run: StageholdDagRun
    regions: tuple[Region, ...]
    plan: ResumePlan
    refusal: StageholdError | None = None
    resumed: Event | None = None


@dataclass(frozen=True, kw_only=True)
class RunFacts(ResumeFacts):
    """What Airflow, the ledger and the planner know of one run. ``gate_failures`` are by stage id. ``waivers`` that are
    in force are by the names of stages; so are ``past_waivers``, which are no longer in force or took others back.
    ``lost`` are the attempts that died without recording an end, by id. ``ledger_state`` is the run's state in the
    ledger, which tells suspended and cancelled runs from failed ones; None before the run has begun. ``untold`` are
    reports about the run that could not be sent.
    """

    recorded: Mapping[str, tuple[PartitionRecord, ...]]
    attempts: Sequence[Attempt]
    traces: Mapping[str, str]
    gate_failures: Mapping[str, Sequence[GateResult]]
    restore: RestoredFrom | None = None
    waivers: Mapping[str, Sequence[Waiver]] = field(default_factory=dict)
    past_waivers: Mapping[str, Sequence[Waiver]] = field(default_factory=dict)
    ledger_state: RunState | None = None
    looked: Looked = AS_RECORDED
    lost: Mapping[str, Loss] = field(default_factory=dict)
    untold: Sequence[Event] = ()

    @property
    def suspended(self) -> bool:
        """Whether somebody suspended it between waves, so that nothing failed."""
        return self.dag_run.state not in ACTIVE_RUN_STATES and self.ledger_state is RunState.SUSPENDED


MOST_ATTEMPTS = 200  # the newest; what is older is in `stagehold status RUN`
MOST_WAVES = 60  # of an attempt; if there are more, some of them in equal steps


def attempt_lines(facts: RunFacts) -> tuple[AttemptLine, ...]:
    """The newest attempts, in the order in which they began."""
    waves = _waves(facts)
    shown = facts.attempts[-MOST_ATTEMPTS:]
    return tuple(_line(one, one.failure, facts, waves.get(one.attempt_id, ())) for one in shown)


def failure_lines(facts: RunFacts) -> tuple[AttemptLine, ...]:
    """The newest attempt of each region that did not end well, with its trace."""
    if facts.suspended:
        return ()
    failed = ((one, failure_of(one, facts)) for one in newest_attempts(facts.attempts))
    return tuple(_line(one, why, facts, trace=facts.traces.get(one.attempt_id)) for one, why in failed if why)


def newest_attempts(attempts: Sequence[Attempt]) -> tuple[Attempt, ...]:
    """The newest attempt of each region, or of each of its partitions."""
    regions = dict.fromkeys(attempt.region for attempt in attempts)
    return tuple(
        found
        for region in regions
        for found in newest_covering((one for one in attempts if one.region == region), None)
    )


def at_work(region: str, facts: RunFacts) -> tuple[Attempt, ...]:
    """Attempts that are at work. An attempt that died stays unended in the ledger, so it counts only while it has its
    lease and Airflow's run is active.
    """
    if facts.dag_run.state not in ACTIVE_RUN_STATES:
        return ()
    newest = (one for one in newest_attempts(facts.attempts) if one.region == region)
    working = (one for one in newest if one.began and not ATTEMPT.is_terminal(one.state))
    return tuple(one for one in working if one.attempt_id not in facts.lost)


def failed(region: str, facts: RunFacts) -> tuple[Attempt, ...]:
    """The attempts after which nothing is tried again automatically."""
    if facts.suspended or facts.dag_run.state in ACTIVE_RUN_STATES:
        return ()
    newest = (one for one in newest_attempts(facts.attempts) if one.region == region)
    return tuple(one for one in newest if failure_of(one, facts))


def failure_of(attempt: Attempt, facts: RunFacts) -> str | None:
    """Why the attempt did not finish, if it did not."""
    if attempt.state in ENDED_BADLY:
        return attempt.failure or "The attempt left no reason; its task log may have more."
    going = facts.dag_run.state in ACTIVE_RUN_STATES and attempt.attempt_id not in facts.lost
    return None if attempt.state is AttemptState.FINISHED or going else LOST


def _line(
    attempt: Attempt, failure: str | None, facts: RunFacts, waves: Sequence[WaveEnd] = (), trace: str | None = None
) -> AttemptLine:
    loss = facts.lost.get(attempt.attempt_id)
    return AttemptLine(
        region=attempt.subject,
        epoch=attempt.epoch,
        state=attempt.state,
        lost=AttemptLoss.of(loss),
        started_at=attempt.started_at,
        ended_at=attempt.ended_at or (loss.at if loss else None),
        failure=failure,
        cause=attempt.cause,
        trace=trace,
        labels=attempt.labels,
        waves=_thinned(waves),
    )


def _waves(facts: RunFacts) -> Mapping[str, tuple[WaveEnd, ...]]:
    """The waves of each attempt, in the order in which they were recorded."""
    names = {stage.id: stage.name for stage in facts.dag_run.request.pipeline.stages}
    alike: dict[tuple[str, str, int], list[PartitionRecord]] = {}
    for record in _own(facts):
        alike.setdefault((record.attempt_id, names.get(record.cell.stage, ""), record.wave), []).append(record)
    waves: dict[str, list[WaveEnd]] = {}
    for (attempt, stage, wave), records in alike.items():
        end = WaveEnd(stage=stage, wave=wave, partitions=len(records), ended_at=records[-1].recorded_at)
        waves.setdefault(attempt, []).append(end)
    return {attempt: tuple(sorted(ends, key=lambda end: end.ended_at)) for attempt, ends in waves.items()}


def _own(facts: RunFacts) -> Iterator[PartitionRecord]:
    run_id = facts.dag_run.request.run_id
    return (record for records in facts.recorded.values() for record in records if record.run_id == run_id)


def _thinned(waves: Sequence[WaveEnd]) -> tuple[WaveEnd, ...]:
    step = -(-len(waves) // MOST_WAVES) or 1
    return tuple(waves[::-1][::step][::-1])  # the last one stays
