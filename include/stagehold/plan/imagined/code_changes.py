"""What changed in stages since their data was made, what is done about that, and what another choice would change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from enum import StrEnum

from stagehold.model.choices import CodeChoice, CodeHandling
from stagehold.model.keys.compute_key import ComputeKey
from stagehold.plan.grounds.content_verdicts import acceptance_of
from stagehold.plan.resume.decisions import Decision, ResumePlan
from stagehold.plan.resume.judgement import shared_key
from stagehold.plan.resume.planner import resume_plan
from stagehold.plan.resume.situation import Situation
from stagehold.spec.pipeline import Stage
from stagehold.spec.settings.output_settings import OnCodeChange

CODE, INPUTS = "code", "inputs"


class DecidedBy(StrEnum):
    """Who says what becomes of data that other code made."""

    OPTION = "option"  # of the restore
    STAGE = "stage"  # its on_code_change
    ACCEPTANCE = "acceptance"  # somebody's, on record
    DEFAULT = "default"


@dataclass(frozen=True)
class StageChange:
    """A stage of which not all data was made as it would be now. ``changed`` are parts of the compute key; only code
    can be kept, so with another one in it the data is computed anew whatever is chosen.

    ``handling`` and ``decided_by`` are None if its code did not change. ``partitions`` is how many differ in code.
    ``difference`` is how many more partitions, of all stages, run where that data does not count than where it does.
    """

    stage: str
    changed: tuple[str, ...]
    partitions: int
    handling: CodeHandling | None = None
    decided_by: DecidedBy | None = None
    difference: int = 0

    @property
    def spares(self) -> int:
        """Partitions that do not run since the data counts."""
        return self.difference if self.handling and self.handling.counts else 0

    @property
    def costs(self) -> int:
        """Partitions that run since the data does not count."""
        return self.difference if self.handling and not self.handling.counts else 0

    def __str__(self) -> str:
        return f"{self.stage}: {' and '.join(self.changed)} changed; {self.consequence}"

    @property
    def consequence(self) -> str:
        """What is done about it, in words."""
        if self.handling is None or self.decided_by is None:
            return "computed anew, since only changed code can be kept"
        others = [part for part in self.changed if part != CODE]
        if self.handling.counts and others:
            return f"computed anew all the same, since {' and '.join(others)} changed as well: only code can be kept"
        return f"{_DONE[self.handling]} ({_SAYS[self.decided_by]})"


_DONE = {
    CodeHandling.RECOMPUTE: "computed anew",
    CodeHandling.KEEP: "kept",
    CodeHandling.ACCEPT: "accepted",
}
_SAYS = {
    DecidedBy.OPTION: "as this restore says",
    DecidedBy.STAGE: "as the stage's on_code_change says",
    DecidedBy.ACCEPTANCE: "on record already",
    DecidedBy.DEFAULT: "by default",
}


def stage_changes(situation: Situation, plan: ResumePlan) -> tuple[StageChange, ...]:
    """Stages with stored data in which more changed than what they read, in topological order.

    :param plan: that of the situation.
    """
    stored = (stage for stage in situation.pipeline.stages if stage.output.stored)
    return tuple(change for stage in stored for change in _of_stage(stage, situation, plan))


def _of_stage(stage: Stage, situation: Situation, plan: ResumePlan) -> Iterator[StageChange]:
    found = [(decision, _changed(stage, decision, situation)) for decision in plan.of(stage.name)]
    every = {part for _, parts in found for part in parts}
    if not every or (every == {INPUTS} and not stage.source):
        return
    order = ("record format", *(field.name for field in fields(ComputeKey)))
    changed = tuple(part for part in order if part in every)
    other = [decision for decision, parts in found if CODE in parts]
    if not other:
        yield StageChange(stage.name, changed, 0)
        return
    handling, decided_by = _handling(stage, other, situation)
    difference = abs(_runs(resume_plan(_otherwise(stage, other, handling, situation))) - _runs(plan))
    yield StageChange(stage.name, changed, len(other), handling, decided_by, difference)


def _changed(stage: Stage, decision: Decision, situation: Situation) -> tuple[str, ...]:
    """What has changed since a partition was recorded. Where an input still has to run, its inputs change by that."""
    record = decision.record
    if record is None or not record.state.counts_as_done or situation.of(stage.name).order.accepted:
        return ()
    key = decision.key or shared_key(stage, situation)
    changed = key.changes_since(record.compute_key)
    unknown = situation.of(stage.name).facts.code_problem and CODE not in changed
    return (CODE, *changed) if unknown else changed


def _handling(stage: Stage, other: list[Decision], situation: Situation) -> tuple[CodeHandling, DecidedBy]:
    made_by = _made_by(other)
    choice = situation.of(stage.name).order.code_choice
    if choice and made_by.issubset(choice.made_by):
        return choice.handling, DecidedBy.OPTION
    if stage.on_code_change is OnCodeChange.KEEP:
        return CodeHandling.KEEP, DecidedBy.STAGE
    present, words = situation.of(stage.name).facts.code, situation.of(stage.name).words.acceptances
    if all(acceptance_of(code, present, words) for code in made_by):
        return CodeHandling.ACCEPT, DecidedBy.ACCEPTANCE
    return CodeHandling.RECOMPUTE, DecidedBy.DEFAULT


def _made_by(decisions: list[Decision]) -> frozenset[str]:
    keys = (ComputeKey.parse(decision.record.compute_key) for decision in decisions if decision.record)
    return frozenset(key.code for key in keys if key)


def _otherwise(stage: Stage, other: list[Decision], handling: CodeHandling, situation: Situation) -> Situation:
    """The situation in which the opposite is chosen for the stage."""
    opposite = CodeHandling.RECOMPUTE if handling.counts else CodeHandling.KEEP
    choice = CodeChoice(stage.id, opposite, tuple(_made_by(other)), "")
    known = situation.of(stage.name)
    otherwise = replace(known, order=replace(known.order, code_choice=choice))
    return replace(situation, stages={**situation.stages, stage.name: otherwise})


def _runs(plan: ResumePlan) -> int:
    return plan.counts.run
