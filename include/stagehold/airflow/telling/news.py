"""The news that a notifier reports, and its text. Pure: all facts are handed in."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from stagehold.errors.base import StageholdError
from stagehold.ledger.ledger import Ledger
from stagehold.model.choices import Severity
from stagehold.model.partition_set import PartitionSet
from stagehold.model.records import Attempt, Event, GateResult, Run, RunState
from stagehold.model.standing import DeclaredStage, Standing, together
from stagehold.model.states import Transition
from stagehold.plan.resume.decisions import ResumePlan
from stagehold.plan.split.regions import stage_regions
from stagehold.run.planning.planning import IntervalView, RunRequest
from stagehold.settings import Settings
from stagehold.spec.pipeline import Pipeline, Stage
from stagehold.spec.settings.airflow_settings import Hook

LONGEST = 300  # characters of a message, so that a phone shows all of it
SHORTEST_TEXT = 80  # characters of it that stay, however long its link is


@dataclass(frozen=True)
class Remaining:
    """What Resume would do: how many partitions it would run and reuse, and how many a gate blocks."""

    run: int
    reuse: int
    blocked: int = 0

    def __str__(self) -> str:
        held = f", {self.blocked} stay blocked" if self.blocked else ""
        return f"runs {self.run} and reuses {self.reuse} partitions{held}"


@dataclass(frozen=True)
class Progressed:
    """How far a stage, or the stages of one task, have come."""

    stage: str
    standing: Standing

    @property
    def consumable(self) -> int:
        return self.standing.consumable

    @property
    def partitions(self) -> int:
        return self.standing.total

    def __str__(self) -> str:
        return f"{self.stage}, {self.standing.amount}"


@dataclass(frozen=True)
class RunNews:
    """The news that templates find as `stagehold`.

    ``progressed`` is None if no task of the run got far enough to be blamed, ``remaining`` if no plan can be made;
    ``cause`` is one line of text.
    """

    hook: Hook
    pipeline: str
    interval: str
    run_id: str
    cause: str
    link: str
    progressed: Progressed | None = None
    remaining: Remaining | None = None

    @property
    def message(self) -> str:
        """The news in plain text that fits on a phone."""
        room = max(LONGEST - len(self.link) - 1, SHORTEST_TEXT)
        fixed = len(self._text(""))
        text = self._text(_shortened(self.cause, max(room - fixed, 0)))
        return f"{_shortened(text, room)} {self.link}"

    def _text(self, cause: str) -> str:
        subject, at = f"{self.pipeline} {self.interval}", f" at {self.progressed}" if self.progressed else ""
        match self.hook:
            case Hook.ON_FAILURE:
                resume = f" Resume {self.remaining}." if self.remaining else ""
                return f"{subject} failed{at}: {_sentence(cause)}{resume}"
            case Hook.ON_GATE_WARNING:
                resume = f" A resume now {self.remaining}." if self.remaining else ""
                return f"{subject}, gate{at}: {_sentence(cause)}{resume}"
            case Hook.ON_RESUME:
                goes = f", {self.remaining}" if self.remaining else ""
                return f"{subject} goes on{at}{goes}. Before: {_sentence(cause)}"


def _sentence(cause: str) -> str:
    return cause if cause.endswith((".", "!", "?", "...")) else f"{cause}."


def _shortened(text: str, room: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= room else f"{line[: max(room - 3, 0)].rstrip()}..."


UNKNOWN = "nothing of it is on record; see the logs of its tasks"

log = logging.getLogger(__name__)


def news_of_run(hook: Hook, run: Run, pipeline: Pipeline, ledger: Ledger, settings: Settings, link: str) -> RunNews:
    """News with the failure of the attempt that failed last, and with the state of its region now."""
    failed = _failed_last(ledger.attempts.of_run(run.run_id))
    plan = _plan(run, pipeline, ledger, settings)
    stages = _stages(pipeline, failed.region) if failed else ()
    cause = first_line(failed.failure or "") if failed else UNKNOWN
    return RunNews(
        hook=hook,
        pipeline=pipeline.name,
        interval=run.interval,
        run_id=run.run_id,
        cause=cause,
        link=link,
        progressed=_progressed(failed.region, stages, plan, pipeline) if failed and plan else None,
        remaining=_remaining(plan),
    )


def news_of_gates(
    run: Run, results: Iterable[GateResult], pipeline: Pipeline, ledger: Ledger, settings: Settings, link: str
) -> Iterator[RunNews]:
    """News for each stage whose gate refused something, or warned."""
    names = {stage.id: stage.name for stage in pipeline.stages}
    told = sorted((one for one in results if is_worth_telling(one)), key=lambda one: one.cell.stage)
    plan = _plan(run, pipeline, ledger, settings) if told else None
    for stage, some in groupby(told, key=lambda one: one.cell.stage):
        yield RunNews(
            hook=Hook.ON_GATE_WARNING,
            pipeline=pipeline.name,
            interval=run.interval,
            run_id=run.run_id,
            cause=gate_cause(tuple(some)),
            link=link,
            progressed=_progressed(names[stage], (names[stage],), plan, pipeline) if plan else None,
            remaining=_remaining(plan),
        )


def news_of_ended_waivers(
    run: Run, ended: Sequence[Event], pipeline: Pipeline, ledger: Ledger, settings: Settings, link: str
) -> Iterator[RunNews]:
    """News for each event that says which rows left a table, or stay there marked, because a waiver has ended."""
    plan = _plan(run, pipeline, ledger, settings) if ended else None
    for event in ended:
        yield RunNews(
            hook=Hook.ON_GATE_WARNING,
            pipeline=pipeline.name,
            interval=run.interval,
            run_id=run.run_id,
            cause=event.text,
            link=link,
            progressed=_progressed(event.subject, (event.subject,), plan, pipeline) if plan else None,
            remaining=_remaining(plan),
        )


def is_worth_telling(result: GateResult) -> bool:
    return not result.passed and result.severity is not Severity.INFO


def gate_cause(results: Sequence[GateResult]) -> str:
    """What a gate says of one stage: critical expectations first, and each expectation once."""
    ordered = sorted(results, key=lambda one: (one.severity is not Severity.CRITICAL, one.expectation, one.partition))
    said = []
    for (severity, expectation), some in groupby(ordered, key=lambda one: (one.severity, one.expectation)):
        found = tuple(some)
        partitions = str(PartitionSet(one.partition for one in found))
        said.append(f"{severity} {expectation} not met by partition(s) {partitions}: {found[0].observed}")
    return "; ".join(said)


def was_resumed(history: Sequence[Transition], life: datetime) -> bool:
    """Whether a start of the run continues one that had begun before and did not finish."""
    before = [one for one in history if one.attempt_id is None and one.recorded_at < life]
    return bool(before) and before[-1].after is not RunState.FINISHED


def first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), UNKNOWN)


def _failed_last(attempts: Sequence[Attempt]) -> Attempt | None:
    failed = [one for one in attempts if one.failure is not None]
    return max(failed, key=lambda one: one.ended_at or one.started_at, default=None)


def _stages(pipeline: Pipeline, region: str) -> tuple[str, ...]:
    return next((one.stages for one in stage_regions(pipeline) if one.name == region), ())


def _plan(run: Run, pipeline: Pipeline, ledger: Ledger, settings: Settings) -> ResumePlan | None:
    """What a resume would do now; None if it cannot be planned. A message without the plan is better than none."""
    try:
        restore = next(iter(ledger.restores.of_run(run.run_id)), None)
        request = RunRequest(pipeline, run.run_id, run.interval, run.params, restore)
        return IntervalView.of_run(request, ledger, settings).plan
    except StageholdError as error:
        log.warning("no plan of what a resume of %s would do: %s", run.run_id, error)
        return None


def _progressed(subject: str, stages: Sequence[str], plan: ResumePlan, pipeline: Pipeline) -> Progressed:
    """Partitions count that a resume takes as they are; the plan knows how many partitions each stage has in this
    interval.
    """
    stored = (pipeline.stage(name) for name in stages if name not in plan.unstored)
    return Progressed(subject, together(_taken(stage, plan, pipeline) for stage in stored))


def _taken(stage: Stage, plan: ResumePlan, pipeline: Pipeline) -> Standing:
    declared = DeclaredStage(stage.id, len(plan.of(stage.name)), pipeline.is_result(stage))
    return Standing.of(declared, Counter(record.state for record in plan.records(stage.name)))


def _remaining(plan: ResumePlan | None) -> Remaining | None:
    return None if plan is None else Remaining(plan.counts.run, plan.counts.reuse, plan.counts.blocked)
