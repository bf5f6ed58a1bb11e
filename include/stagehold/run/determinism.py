"""Looks at what stage functions built before anything is computed, and says what may come out different next time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stagehold.model.code_calls import calls_of
from stagehold.model.spec import DeterminismPolicy, Stage
from stagehold.plan.nondeterminism import Finding, Kind, findings
from stagehold.run.frames import FrameBuilder
from stagehold.run.spark_plan import read_plan, with_types
from stagehold.run.stage_call import StageCall

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


def inspect(frames: FrameBuilder, stage: Stage, partition: int, schema: StructType) -> tuple[StageFinding, ...]:
    """What was found in ``stage``, which `frames` has checked, and in the stages whose output flows into it.

    Builds the output a second time, since only another plan shows what the first one drew by itself. ``schema`` is that of
    the output: where nothing in it is floating-point, it does not matter how such numbers were added.
    """
    if frames.pipeline.determinism_of(stage) is DeterminismPolicy.OFF:
        return ()
    frames.output(stage, (partition,))
    floating = any(_has_floating(field.dataType) for field in schema.fields)
    return tuple(
        StageFinding(
            name, finding, frames.pipeline.determinism_of(frames.pipeline.stage(name)) is DeterminismPolicy.ERROR and finding.certain
        )
        for name, calls in frames.calls.items()
        if frames.pipeline.determinism_of(frames.pipeline.stage(name)) is not DeterminismPolicy.OFF
        for finding in _found(frames, name, calls, floating=floating)
    )


def _found(frames: FrameBuilder, name: str, calls: Sequence[StageCall], *, floating: bool) -> Iterator[Finding]:
    first, *others = calls
    reading = read_plan(first.frame, first.inputs)
    facts = with_types(first.frame, reading) if floating else reading.facts
    again = read_plan(others[0].frame, others[0].inputs).facts if others else facts
    code = calls_of(frames.pipeline.stage(name).job, Path(frames.project)) if facts.uses or facts != again else ()
    return (one for one in findings(facts, again, code) if floating or one.kind is not Kind.FLOATING)


def _has_floating(kind: DataType) -> bool:
    """Whether a type is floating-point or holds such a thing."""
    text = kind.simpleString()
    return "double" in text or "float" in text
