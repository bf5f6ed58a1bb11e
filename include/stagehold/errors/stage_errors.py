"""Errors: a stage cannot be computed or published as its author wrote it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stagehold.errors.base import StageholdError, Terminal, ranges


class StageError(StageholdError):
    """A stage cannot be computed or published as its author wrote it; what it recorded before stays safe to read."""


class StageFailed(StageError):
    """What a stage's author wrote, or the data that it was given, failed; the error that tells so is its cause.

    ``trace`` is that error as Python and Spark show it, with every frame. The text has three lines, the rest is for
    whoever asks.
    """

    def __init__(self, *, stage: str, partitions: Sequence[int], problem: str, place: str, trace: str) -> None:
        self.stage, self.partitions, self.problem, self.place, self.trace = (
            stage,
            tuple(partitions),
            problem,
            place,
            trace,
        )
        named = f", partition(s) {ranges(self.partitions)}" if self.partitions else ""
        super().__init__(
            f"{problem}\n  at {place}\n"
            f"Stage {stage}{named}: nothing of it was published, and all that was consumable still is. "
            "Mend the cause, then run `stagehold resume`; `stagehold status RUN --trace` shows the whole trace."
        )


class FunctionFailed(StageFailed):
    """The stage's own Python code raised an error, where it builds its frame or inside Spark's Python workers."""


class StageContractBroken(StageError, Terminal):
    """A stage function did not keep its contract; ``reason`` begins with what broke it, as in "its output has ..."."""

    def __init__(self, stage: str, reason: str) -> None:
        self.stage, self.reason = stage, reason
        super().__init__(
            f"Stage {stage} cannot be committed: {reason}. Nothing of it was published, and what was recorded before "
            "stays safe to read. Mend the stage function, then run `stagehold resume`."
        )


@dataclass(frozen=True)
class ColumnProblem:
    """A column of an output that is not what the stage declares; ``instead`` is what to write in its query."""

    column: str
    declared: str
    found: str
    instead: str

    def __str__(self) -> str:
        return f"{self.column}: declared {self.declared}; found {self.found}; {self.instead}"


class ColumnsNotAsDeclared(StageError, Terminal):
    """The columns of a stage's output are not those that it declares. ``kept_back`` says what was not done with it."""

    def __init__(self, stage: str, problems: Sequence[ColumnProblem], kept_back: str) -> None:
        self.stage, self.problems, self.kept_back = stage, tuple(problems), kept_back
        lines = "\n".join(f"  {problem}" for problem in self.problems)
        what = "it was computed" if kept_back == "computed" else "this wave was published"
        super().__init__(
            f"The output of stage {stage} is not what `output.columns` declares:\n{lines}\n"
            f"Nothing of {what}, and what was recorded before stays safe to read. Change the stage's function or "
            "query as said, or what is declared, then run `stagehold resume`."
        )


@dataclass(frozen=True)
class KeyProblem:
    """Key columns, each with its type, that may not be dealt to partitions by key;
    ``stage`` is to return ``instead`` of one of them.
    """

    columns: tuple[str, ...]
    why: str
    stage: str
    instead: str

    def __str__(self) -> str:
        return f"{' and '.join(self.columns)}: {self.why}; have {self.stage} return {self.instead} in its place"


class KeyTypesUnlike(StageError, Terminal):
    """Key columns of a keyed stage have types whose equal values need not fall into one partition."""

    def __init__(self, stage: str, problems: Sequence[KeyProblem]) -> None:
        self.stage, self.problems = stage, tuple(problems)
        lines = "\n".join(f"  {problem}" for problem in self.problems)
        super().__init__(
            f"Stage {stage} cannot be computed by its key: rows with equal keys could be in different partitions and "
            "would not meet.\n"
            f"{lines}\nNothing of it was computed, and what was recorded before stays safe to read. Change the "
            "columns as said, then run "
            "`stagehold resume`."
        )


class KeyMayBeNull(StageError, Terminal):
    """Key columns of a stage's output come from the side of an outer join that has no row for some keys;
    ``expressions`` by column.
    """

    def __init__(self, stage: str, expressions: Mapping[str, str]) -> None:
        self.stage, self.expressions = stage, dict(expressions)
        lines = "\n".join(f"  {expression}" for expression in self.expressions.values())
        super().__init__(
            f"Stage {stage} cannot be computed: its key column {', '.join(self.expressions)} comes from a side of an "
            "outer join that has no row for some keys. There it is null, so such rows would belong to the partition of "
            "the null key, whichever partition made them. Nothing of it was computed, and what was recorded before "
            "stays safe to read. "
            f"Take the key from whichever side has it:\n{lines}\nThen run `stagehold resume`."
        )


class StrayKey(StageError, Terminal):
    """A row's key belongs to another partition than that whose keys the function was given.
    ``key`` is in text, None for null.
    """

    def __init__(self, stage: str, key: Mapping[str, str | None], *, computed: int, belongs: int) -> None:
        self.stage, self.key, self.computed, self.belongs = stage, dict(key), computed, belongs
        shown = ", ".join(f"{column} = {'null' if text is None else text!r}" for column, text in self.key.items())
        super().__init__(
            f"Stage {stage} gave partition {computed} a row with {shown}, which belongs to partition {belongs}: so "
            f"its key ({', '.join(self.key)}) is not the one that its inputs are exchanged by. "
            "Nothing of this wave was published, and what was recorded before stays safe to read. "
            "Have its function pass the key on as it was given (after an outer join: F.coalesce of both sides' "
            "keys), or name the column that holds it under the stage's `key`. Then run `stagehold resume`."
        )


class NotDeterministic(StageError, Terminal):
    """A stage does what may give other data in the next run, while its spec says `determinism: error`, or while rows
    could get lost by it.
    """

    def __init__(self, stage: str, findings: Sequence[str]) -> None:
        self.stage, self.findings = stage, tuple(findings)
        lines = "\n".join(f"  {finding}" for finding in self.findings)
        super().__init__(
            f"Stage {stage} may give other data from the same input, in {len(self.findings)} place(s):\n{lines}\n"
            "Nothing of it was computed. Change them, or end the line of one that does no harm with `# stagehold: "
            "deterministic`, then run `stagehold resume`."
        )


class UndeclaredRead(StageError, Terminal):
    """Stages read, beside their inputs, what they do not declare, while their spec says `reads: strict`.

    ``reads`` are by stage what was found, with its place; ``declarations`` are by stage what its `reads` should be.
    """

    def __init__(self, reads: Mapping[str, Sequence[str]], declarations: Mapping[str, str]) -> None:
        self.reads = {stage: tuple(found) for stage, found in reads.items()}
        self.declarations = dict(declarations)
        lines = "\n".join(f"  {stage}:\n    reads: {said}" for stage, said in self.declarations.items())
        found = "\n".join(f"  {text}" for texts in self.reads.values() for text in texts)
        super().__init__(
            f"{' and '.join(self.reads)} would read, beside inputs, what no `reads` declares:\n{found}\n"
            "A change of it would not be seen, and old data would be reused. Nothing was computed, and what was "
            "recorded before stays safe to read. Take it from an input, or declare it, and run `stagehold resume`:\n"
            f"stages:\n{lines}"
        )


class CameOutDifferent(StageError, Terminal):
    """Partitions that were computed again under the key they were recorded with hold other data;
    ``remarks`` by partition.
    """

    def __init__(self, stage: str, remarks: Mapping[int, str]) -> None:
        self.stage, self.remarks = stage, dict(remarks)
        lines = "\n".join(f"  {stage}[{partition}] {text}" for partition, text in sorted(self.remarks.items()))
        super().__init__(
            f"Stage {stage} gives other data from the same code and inputs:\n{lines}\n"
            "Nothing of this wave was published, and what was recorded before stays safe to read. Mend the stage so "
            "that it gives the same each time. Or, if other data will do, set `determinism: warn` on the stage: then "
            "it is published, and its readers run again. Then run `stagehold resume`."
        )
