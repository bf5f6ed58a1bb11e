"""Looks at what stage functions built before anything is computed, and says what may come out different next time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stagehold.code.stage_code import calls_of
from stagehold.plan.determinism.operations import Finding, Kind, findings
from stagehold.run.equipment.engine import Frames
from stagehold.run.functions.call import StageCall
from stagehold.run.functions.inputs import Reading
from stagehold.run.functions.plan_reading import read_plan, with_types
from stagehold.spec.pipeline import Stage
from stagehold.spec.settings.run_settings import DeterminismPolicy

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType


@dataclass(frozen=True)
class StageFinding:
    """Something found in one stage; ``refused`` by its spec, or else only told."""

    stage: str
    finding: Finding
    refused: bool

    def __str__(self) -> str:
        return f"{self.finding} (stage {self.stage})"


def inspect(
    frames: Frames, stage: Stage, reading: Reading, partition: int, schema: StructType
) -> tuple[StageFinding, ...]:
    """What was found in ``stage``, which ``frames`` has checked, and in the stages whose output flows into it.

    ``schema`` is that of the output: where nothing in it is floating-point, it does not matter how such numbers were
    added.
    """
    policy_of = {one.name: reading.pipeline.determinism_of(one) for one in reading.pipeline.stages}
    if policy_of[stage.name] is DeterminismPolicy.OFF:
        return ()
    floating = any(_has_floating(field.dataType) for field in schema.fields)
    return tuple(
        StageFinding(name, finding, policy_of[name] is DeterminismPolicy.ERROR and finding.certain)
        for name, calls in frames.call_again(stage, partition).items()
        if policy_of[name] is not DeterminismPolicy.OFF
        for finding in _found(reading, name, calls, floating=floating)
    )


def _found(reading: Reading, name: str, calls: Sequence[StageCall], *, floating: bool) -> Iterator[Finding]:
    first, *others = calls
    shown = read_plan(first.planned, first.inputs)
    # What a call had in force while its frame was computed, the server can no longer tell types by.
    facts = with_types(first.planned, shown) if floating and not first.at_once else shown.facts
    again = read_plan(others[0].planned, others[0].inputs).facts if others else facts
    job = reading.pipeline.stage(name).job
    code = calls_of(job, Path(reading.project)) if facts.uses or facts != again else ()
    return (one for one in findings(facts, again, code) if floating or one.kind is not Kind.FLOATING)


def _has_floating(kind: DataType) -> bool:
    """Whether a type is floating-point or holds such a thing."""
    text = kind.simpleString()
    return "double" in text or "float" in text
