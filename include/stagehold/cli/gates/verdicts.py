"""`stagehold gates`: what the gates said of each stage when they judged its partitions last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from stagehold.cli.output import moment, print_document, print_table
from stagehold.cli.request import AsJson
from stagehold.settings import load_settings

if TYPE_CHECKING:
    from stagehold.ledger.ledger import Ledger
    from stagehold.model.records import GateResult, Run

COLUMNS = ("stage", "gate", "passed", "failed", "judged", "expectation", "seen where it failed first")
RunName = Annotated[str, typer.Argument(metavar="RUN", help="Id of a run, as `stagehold status` shows it.")]
OnlyFailed = Annotated[bool, typer.Option("--failed", help="Only expectations that some partition does not meet.")]


@dataclass(frozen=True)
class FailedPartition:
    """``observed`` is what the expectation saw there."""

    partition: int
    observed: str


@dataclass(frozen=True)
class JudgedExpectation:
    """One expectation of a stage's gate: in how many partitions it is met, and in which not."""

    stage: str
    suite: str
    expectation: str
    passed: int
    failed: tuple[FailedPartition, ...]
    judged_at: datetime


def gates(run: RunName, failed: OnlyFailed = False, as_json: AsJson = False) -> None:
    """Show what the gates of a run's interval said, whichever run made or judged the data."""
    from stagehold.lake.chronicle import open_ledger

    with open_ledger(load_settings()) as ledger:
        found = ledger.runs.get(run)
        judged = [one for one in judged_in(found, ledger) if one.failed or not failed]
    if as_json:
        about = {"run": found.run_id, "pipeline": found.pipeline, "interval": found.interval}
        print_document({**about, "gates": [asdict(one) for one in judged]})
    elif judged:
        print_table(f"Gates of {found.pipeline} for {found.interval}", COLUMNS, map(_cells, judged))
    else:
        what = "every partition meets what its gate asks for" if failed else "no gate has judged anything"
        typer.echo(f"{found.pipeline} for {found.interval}: {what}")


def judged_in(run: Run, ledger: Ledger) -> Iterator[JudgedExpectation]:
    """By stage, in the order of the suite."""
    for stage, records in ledger.partitions.newest_of(run.pipeline, run.interval).items():
        by_expectation: dict[tuple[str, str], list[GateResult]] = {}
        for result in ledger.gates.newest(records[0].cell):
            by_expectation.setdefault((result.suite, result.expectation), []).append(result)
        for (suite, expectation), results in by_expectation.items():
            yield _judged(stage, suite, expectation, results)


def _judged(stage: str, suite: str, expectation: str, results: Sequence[GateResult]) -> JudgedExpectation:
    failed = tuple(FailedPartition(one.partition, one.observed) for one in results if not one.passed)
    newest = max(one.recorded_at for one in results)
    return JudgedExpectation(stage, suite, expectation, len(results) - len(failed), failed, newest)


def _cells(one: JudgedExpectation) -> tuple[str, ...]:
    from stagehold.plan.resume.reasons import partition_ranges

    which = f"{len(one.failed)} ({partition_ranges([each.partition for each in one.failed])})" if one.failed else "0"
    seen = one.failed[0].observed if one.failed else ""
    return one.stage, one.suite, str(one.passed), which, moment(one.judged_at), one.expectation, seen
