"""In which form each exchange of a pipeline goes on, stored or computed along with its reader; why; and what a kill
costs then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stagehold.plan.split.regions import is_divisible
from stagehold.spec.pipeline import Exchange, Output, OutputType, Pipeline, Stage
from stagehold.spec.settings.output_settings import TypeReason

_REASONS = {
    TypeReason.DECLARED: "its output says so",
    TypeReason.MODE: "execution_mode: {mode}",
    TypeReason.UNREAD: "no stage reads it",
    TypeReason.GATE: "its gate judges what is stored",
    TypeReason.STATE: "it keeps state",
    TypeReason.COLUMNS: "its columns are declared",
    TypeReason.SCRIPT: "it is a script",
    TypeReason.AUTO: "its bytes settle how many partitions a reader has",
    TypeReason.TASKS: "several tasks share its region, and each would need all of it",
    TypeReason.JOINED_AGAIN: "its branches meet again, and could wait for each other",
    TypeReason.DEADLOCK: "its region would wait for itself",
}


@dataclass(frozen=True)
class ExchangeForm:
    """The form of one exchange. ``ends`` are the stored stages that are computed along with a producer that is not
    stored; ``whole`` are those of them that are one wave, as each partition needs all of the producer. ``stored``
    says that its reader reads a table now, and ``special`` why that is so, or not, in this interval.
    """

    producer: str
    reader: str
    exchange: Exchange
    type: OutputType
    why: TypeReason
    mode: str
    ends: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    stored: bool = False
    special: str = ""

    @property
    def form(self) -> str:
        if self.stored:
            return "stored"
        return "kept while the task runs" if self.type.bounded else "computed along"

    @property
    def reason(self) -> str:
        why = _REASONS[self.why].format(mode=self.mode)
        return f"{why}: {self.special}" if self.special else why

    def __str__(self) -> str:
        """All of it, for people who know the reader."""
        return f"{self.producer} ({self.exchange}): {self.form} ({self.reason}); a kill costs {self.cost_of_kill}"

    @property
    def cost_of_kill(self) -> str:
        if self.stored:
            return f"nothing of {self.producer} that is consumable"
        if self.whole:
            return f"all of {' and '.join(self.whole)}, with all of {self.producer}"
        return f"the wave of {' and '.join(self.ends)} under way, with its part of {self.producer}"


def exchange_forms(pipeline: Pipeline) -> tuple[ExchangeForm, ...]:
    """Every exchange, by reader, of a pipeline as it is declared, or in its form for an interval."""
    return tuple(form for reader in pipeline.stages for form in forms_into(reader, pipeline))


def forms_into(reader: Stage, pipeline: Pipeline) -> Iterator[ExchangeForm]:
    for edge in reader.inputs:
        yield _form(pipeline.stage(edge.stage), reader, edge.exchange, pipeline)


def _form(producer: Stage, reader: Stage, exchange: Exchange, pipeline: Pipeline) -> ExchangeForm:
    output, mode = producer.output, pipeline.execution_mode.value
    facts = (producer.name, reader.name, exchange, output.type, output.why, mode)
    if output.stored:
        return ExchangeForm(*facts, stored=True, special=_special(output))
    ends = tuple(dict.fromkeys(end.name for end in _stored_from(reader, pipeline)))
    whole = tuple(end for end in ends if not is_divisible(pipeline.stage(end), pipeline))
    return ExchangeForm(*facts, ends, whole, special=_special(output))


def _special(output: Output) -> str:
    """What the mode has found out for the interval."""
    if output.fallback:
        return f"an attempt that computed both at once failed ({output.fallback.rule})"
    return str(output.worth or "")


def _stored_from(stage: Stage, pipeline: Pipeline) -> Iterator[Stage]:
    """The stage if it is stored, else the stored ones that it flows into."""
    if stage.output.stored:
        yield stage
    else:
        for reader in pipeline.readers(stage.name):
            yield from _stored_from(reader, pipeline)
