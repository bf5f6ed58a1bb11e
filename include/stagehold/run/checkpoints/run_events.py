"""Events for the checkpoint coordinator, from the ledger's records of a run and its attempts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from stagehold.checkpoints.coordinator_events import (
    Acknowledged,
    Declined,
    Event,
    RegionFailover,
    RunChanged,
    TaskChanged,
)
from stagehold.ledger.leases import lease_of
from stagehold.ledger.ledger import Ledger
from stagehold.model.checkpoint_records import Answer, CheckpointFailure, CheckpointRecord, part_name
from stagehold.model.records import Attempt, AttemptState, Run, RunState
from stagehold.model.states import ATTEMPT, ENDED_BADLY, GLOBALLY_TERMINAL
from stagehold.plan.split.regions import Region, stage_regions
from stagehold.plan.split.shares import region_shares
from stagehold.spec.pipeline import Pipeline


def parts_of(pipeline: Pipeline) -> Mapping[str, bool]:
    """The coordinator's tasks, named as `Attempt.subject` names them: each region, or each share of it; and whether the
    task writes a blocking output.
    """
    return {
        part_name(region.name, share): _blocking(region, pipeline)
        for region in stage_regions(pipeline)
        for share in region_shares(pipeline, region)
    }


class RunWatch:
    """Looks at one run again and again, and reports each change once.

    The state of a part is that of its newest attempt that has begun; a try that waits for its lease does nothing yet.
    An attempt that has not ended although its lease has is dead: it would never answer.
    """

    def __init__(self, run: Run, parts: Iterable[str], ledger: Ledger) -> None:
        self._run_id, self._parts, self._ledger = run.run_id, frozenset(parts), ledger
        self._newest: dict[str, Attempt] = {}
        self._state: RunState | None = None
        self._answered: set[tuple[int, str]] = set()

    def look(self, pending: Iterable[CheckpointRecord], at: int) -> Iterator[Event]:
        """The events since the last look. Answers of attempts come before their ends: an attempt that declines ends
        right after it.
        """
        for record in pending:
            yield from self._answers(record, at)
        yield from self._changes(at)

    @property
    def state(self) -> RunState:
        """The run's state for a coordinator, as of the last look. The process that sees the end of a run decides about
        its checkpoints, so for the coordinator an ended run is only suspended.
        """
        return RunState.SUSPENDED if self._state is None or self._state in GLOBALLY_TERMINAL else self._state

    @property
    def under_way(self) -> frozenset[str]:
        """Ids of the attempts that had not ended at the last look."""
        return frozenset(
            attempt.attempt_id for attempt in self._newest.values() if not ATTEMPT.is_terminal(attempt.state)
        )

    def running(self, parts: Iterable[str]) -> list[Attempt]:
        """The attempts of these parts, as of the last look."""
        return [self._newest[part] for part in sorted(parts)]

    def _answers(self, record: CheckpointRecord, at: int) -> Iterator[Event]:
        for acknowledgement in self._ledger.acknowledgements.of(record):
            if acknowledgement.answer is None or (acknowledgement.number, acknowledgement.attempt_id) in self._answered:
                continue
            self._answered.add((acknowledgement.number, acknowledgement.attempt_id))
            if acknowledgement.answer is Answer.ACKNOWLEDGED:
                yield Acknowledged(at, acknowledgement.number, acknowledgement.subject)
            else:
                yield Declined(
                    at,
                    acknowledgement.number,
                    acknowledgement.subject,
                    acknowledgement.reason or CheckpointFailure.CHECKPOINT_DECLINED,
                )

    def _changes(self, at: int) -> Iterator[Event]:
        attempts = self._ledger.attempts.of_run(self._run_id)
        begun = {attempt.subject: attempt for attempt in attempts if attempt.began and attempt.subject in self._parts}
        newest = {part: self._alive(attempt) for part, attempt in begun.items()}
        before, self._newest = self._newest, newest
        if any(_failed_over(before[part], now) for part, now in newest.items() if part in before):
            yield RegionFailover(at)
        for part, now in newest.items():
            if part not in before or before[part].state is not now.state:
                yield TaskChanged(at, part, now.state)
        state = self._ledger.runs.get(self._run_id).state
        if state is not self._state:
            self._state = state
            yield RunChanged(at, self.state)

    def _alive(self, attempt: Attempt) -> Attempt:
        if ATTEMPT.is_terminal(attempt.state) or self._ledger.leases.alive(lease_of(attempt)):
            return attempt
        return replace(attempt, state=AttemptState.FAILED)


def _failed_over(before: Attempt, now: Attempt) -> bool:
    if before.attempt_id != now.attempt_id:
        return True
    return now.state in ENDED_BADLY and before.state not in ENDED_BADLY


def _blocking(region: Region, pipeline: Pipeline) -> bool:
    return any(pipeline.stage(name).output.stored for name in region.stages)
