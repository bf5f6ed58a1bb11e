"""Errors: a pipeline, or its code, cannot be run as it is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stagehold.errors.base import StageholdError, Terminal


class SpecError(StageholdError):
    """A pipeline or its code cannot be run as it is written; nothing of it was computed."""


@dataclass(frozen=True)
class SpecProblem:
    """A mistake in a file, at one place. ``line`` is 0 where none is known, as in a graph of vertices, of which
    ``field`` is the whole path: ``partitions[0].type``.
    """

    line: int
    field: str
    given: str
    allowed: str

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line else ""
        return f"{where}{self.field}: got {self.given}; allowed: {self.allowed}"


class InvalidSpec(SpecError, Terminal):
    """A pipeline file cannot be used; lists every problem found, not only the first."""

    def __init__(self, file: str, problems: Sequence[SpecProblem]) -> None:
        self.file = file
        self.problems = tuple(problems)
        lines = "\n".join(
            f"  {file}:{problem.line}: {problem.field}: got {problem.given}; allowed: {problem.allowed}"
            for problem in problems
        )
        super().__init__(
            f"{file} has {len(self.problems)} problem(s); nothing was run.\n{lines}\nMend the file and "
            "run the command again."
        )


class CodeUnusable(SpecError, Terminal):
    """Code that stages run cannot be imported; ``problems`` say for each stage where, and why."""

    def __init__(self, pipeline: str, problems: Mapping[str, Sequence[str]]) -> None:
        self.pipeline, self.problems = pipeline, {stage: tuple(found) for stage, found in problems.items()}
        stages: dict[str, list[str]] = {}
        for stage, found in self.problems.items():
            for problem in found:
                stages.setdefault(problem, []).append(stage)
        lines = "\n".join(f"  {problem} ({', '.join(names)})" for problem, names in stages.items())
        super().__init__(
            f"Pipeline {pipeline} cannot run: its code has {len(stages)} problem(s).\n{lines}\n"
            "Nothing was run, and what was recorded stays safe to read. Mend the code and run the command again."
        )


class RegionCycle(SpecError, Terminal):
    """Regions of a pipeline wait for each other, so none of them could ever start."""

    def __init__(self, pipeline: str, regions: Sequence[str]) -> None:
        self.pipeline, self.regions = pipeline, tuple(regions)
        super().__init__(
            f"Regions of pipeline {pipeline} wait for each other, or for ones that do: {', '.join(self.regions)}. "
            "Nothing was run. Make the output of one pipelined stage among them blocking, or locate a stage apart, "
            "and run the command again."
        )


class InvalidTopology(SpecError, Terminal):
    """A graph cannot be used; lists every problem found, not only the first."""

    def __init__(self, file: str, problems: Sequence[SpecProblem]) -> None:
        self.file, self.problems = file, tuple(problems)
        lines = "\n".join(f"  {file}: {problem}" for problem in self.problems)
        super().__init__(
            f"{file} has {len(self.problems)} problem(s); nothing was planned.\n{lines}\nMend it and "
            "run the command again."
        )


class ImpossibleKeyGroups(SpecError, Terminal):
    """Key groups were asked for with a number of partitions, a max_parallelism, or a place among them, that cannot be.

    ``name`` says which of the numbers it is.
    """

    def __init__(self, name: str, given: int, *, least: int, most: int) -> None:
        self.name, self.given, self.least, self.most = name, given, least, most
        super().__init__(
            f"Key groups cannot be dealt with {name} {given}; allowed: {least} to {most}. No row was sent anywhere. "
            "Mend partitions or max_parallelism of the stage and run the command again."
        )


class ScheduleRefused(SpecError, Terminal):
    """A schedule mode cannot run this graph."""

    def __init__(self, *, mode: str, reason: str, remedy: str) -> None:
        self.mode, self.reason, self.remedy = mode, reason, remedy
        super().__init__(f"Schedule mode {mode} cannot run this pipeline: {reason}. Nothing was started. {remedy}")


class CommitterRefused(SpecError, Terminal):
    """A stage asks for the delta_spark committer on an object store,
    where delta-spark's commits overwrite each other.
    """

    def __init__(self, stage: str, table: str) -> None:
        self.stage, self.table = stage, table
        super().__init__(
            f"Stage {stage} asks for `committer: delta_spark` at {table}. On an object store, two Spark drivers that "
            "commit at the same moment overwrite each other's commit, and neither of them is told. Nothing was "
            "written. Leave `committer` out (staged commits are safe there); or, if one Spark server makes every "
            "commit to this lake, set STAGEHOLD_ONLY_SPARK_WRITER=true. Then run `stagehold resume`."
        )
