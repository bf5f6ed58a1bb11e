"""Errors: a gate did not say yes, so partitions were not published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stagehold.errors.base import StageholdError, Terminal


class GateError(StageholdError):
    """A gate did not say yes, so partitions were not published."""


class GateBlocked(GateError, Terminal):
    """A gate refused partitions; ``reasons`` says for each which expectation it failed and with which value."""

    def __init__(self, stage: str, reasons: Mapping[int, str]) -> None:
        self.stage, self.reasons = stage, dict(reasons)
        lines = "\n".join(f"  {stage}[{partition}] {reason}" for partition, reason in sorted(self.reasons.items()))
        super().__init__(
            f"The gate of {stage} blocked {len(self.reasons)} partition(s):\n{lines}\n"
            "No stage can read their data, and this run published none of it. All other partitions stay consumable and "
            "are not computed again. Mend the data or the stage (or the gate, if it is wrong), or say with "
            "`stagehold waive` that they may be read as they are. Then run `stagehold resume`: it runs only these and "
            "their readers."
        )


class RowsUnaccounted(GateError, Terminal):
    """Rows were set aside, and those and the others are not as many as there were."""

    def __init__(self, stage: str, partition: int, rows: int, left: int, aside: int) -> None:
        self.stage, self.partition, self.rows, self.left, self.aside = stage, partition, rows, left, aside
        super().__init__(
            f"{stage}[{partition}] has {rows} rows; {aside} were to be set aside, and {left} are left. Nothing of this "
            "wave was published. An expectation that finds other rows each time, such as one that calls rand(), cannot "
            "set rows aside: give it `on_fail: block`, then run `stagehold resume`."
        )


class GateErrored(GateError, Terminal):
    """Expectations could not be judged: that is neither a pass nor a fail, so nothing of the wave was published."""

    def __init__(self, suite: str, problems: Sequence[str]) -> None:
        self.suite, self.problems = suite, tuple(problems)
        lines = "\n".join(f"  {problem}" for problem in self.problems)
        super().__init__(
            f"Suite {suite} cannot judge {len(self.problems)} of its expectations:\n{lines}\n"
            "Nothing of this wave was published; what was recorded before stays safe to read. Mend the suite, then "
            "run `stagehold resume`."
        )


class SuiteModuleUnusable(GateError, Terminal):
    """A module that defines expectations of a suite cannot be imported; ``place`` is where the suite names it."""

    def __init__(self, suite: str, place: str, module: str, cause: str) -> None:
        self.suite, self.place, self.module, self.cause = suite, place, module, cause
        super().__init__(
            f"Suite {suite} cannot judge anything:\n  {place}: modules: {module} cannot be imported: {cause}\n"
            "Nothing of this wave was published; what was recorded before stays safe to read. Mend the module, then "
            "run `stagehold resume`."
        )


class DocsNotWritten(GateError, Terminal):
    """Pages of what gates said could not be written."""

    def __init__(self, pipeline: str, interval: str, said: str) -> None:
        self.pipeline, self.interval, self.said = pipeline, interval, said
        last = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "it said nothing")
        super().__init__(
            f"The pages of Great Expectations of {pipeline} for {interval} were not written: {last}\n"
            "What the gates said is on record as ever. `stagehold gates RUN --docs` writes them from a shell."
        )


class NothingJudged(GateError, Terminal):
    """There is nothing to write pages of."""

    def __init__(self, pipeline: str, interval: str) -> None:
        self.pipeline, self.interval = pipeline, interval
        super().__init__(
            f"No gate has judged anything of {pipeline} for {interval}, so there is nothing to make pages of. Run it, "
            "or give a stage a `gate`."
        )
