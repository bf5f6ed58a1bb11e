"""`stagehold gates`: what the gates said of each stage when they judged its partitions last."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stagehold.cli.common.output import moment, print_document, print_table
from stagehold.cli.common.request import AsJson
from stagehold.model.choices import Severity
from stagehold.settings import Settings, load_settings

if TYPE_CHECKING:
    from stagehold.gates.verdict_pages import DocSite
    from stagehold.gates.verdicts import Waived
    from stagehold.ledger.ledger import Ledger
    from stagehold.model.records import GateResult, Run

COLUMNS = ("stage", "gate", "severity", "passed", "failed", "judged", "expectation", "seen where it failed first")
RunName = Annotated[str, typer.Argument(metavar="RUN", help="Id of a run, as `stagehold status` shows it.")]
OnlyFailed = Annotated[bool, typer.Option("--failed", help="Only expectations that some partition does not meet.")]
WithDocs = Annotated[
    bool, typer.Option("--docs", help="Write it as pages of Great Expectations into the lake, and say where.")
]


@dataclass(frozen=True)
class JudgedExpectation:
    """An expectation of a stage's gate: how many partitions meet it, and which do not. ``results`` are all that
    was said, by partition.
    """

    stage: str
    suite: str
    expectation: str
    severity: Severity
    passed: int
    failed: tuple[GateResult, ...]
    judged_at: datetime
    results: tuple[GateResult, ...]
    waived: Waived
    published: frozenset[int]

    @property
    def waived_partitions(self) -> int:
        return sum((result.partition, self.expectation) in self.waived for result in self.failed)

    @property
    def outstaying(self) -> int:
        """How many are in their table though nobody's word lets them."""
        lacking = (partition for partition in self.failed if (partition.partition, self.expectation) not in self.waived)
        return (
            sum(partition.partition in self.published for partition in lacking)
            if self.severity is Severity.CRITICAL
            else 0
        )


def gates(run: RunName, failed: OnlyFailed = False, as_json: AsJson = False, docs: WithDocs = False) -> None:
    """Show what the gates of a run's interval said, whichever run made or judged the data."""
    from stagehold.chronicle.chronicle import open_ledger
    from stagehold.run.intervals.verdict_site import verdict_site

    settings = load_settings()
    with open_ledger(settings) as ledger:
        found = ledger.runs.get(run)
        every = list(judged_in(found, ledger, settings))
        marked = list(_marked(found, ledger))
        site = verdict_site(found.pipeline, found.interval, ledger, settings) if docs and every else None
    judged = [expectation for expectation in every if expectation.failed or not failed]
    pages = _write_docs(site, settings) if site else None
    if as_json:
        about: dict[str, Any] = {"run": found.run_id, "pipeline": found.pipeline, "interval": found.interval}
        about |= {"docs": pages} if pages else {}
        about |= {"outstaying": marked} if marked else {}
        print_document({**about, "gates": [_document(expectation) for expectation in judged]})
    elif judged:
        print_table(f"Gates of {found.pipeline} for {found.interval}", COLUMNS, map(_cells, judged))
    else:
        what = "every partition meets what its gate asks for" if failed else "no gate has judged anything"
        typer.echo(f"{found.pipeline} for {found.interval}: {what}")
    if not as_json:
        for line in marked:
            typer.echo(line)
    if pages and not as_json:
        typer.echo(f"Pages: {pages}")


def _marked(run: Run, ledger: Ledger) -> Iterator[str]:
    """A line for each published table that is marked as having rows whose waiver has ended."""
    from stagehold.lake.commit.table_marks import outstaying
    from stagehold.model.partition_set import PartitionSet

    for stage, records in ledger.partitions.newest_of(run.pipeline, run.interval).items():
        tables = {record.table for record in records if record.in_table}
        for partitions in filter(None, (outstaying(table, run.interval) for table in sorted(tables))):
            which = f"{stage}[{PartitionSet(partitions)}]"
            yield f"{which} stays in its table though a waiver has ended that it rests on"


def judged_in(run: Run, ledger: Ledger, settings: Settings) -> Iterator[JudgedExpectation]:
    """What each expectation said, by stage and in the order of the suite."""
    from stagehold.gates.verdicts import waived_in
    from stagehold.plan.resume.waiving import refused_data
    from stagehold.run.planning.acceptance import newest_verdict, waivers_in_force

    words = waivers_in_force(run.pipeline, run.interval, ledger, settings)
    for stage, records in ledger.partitions.newest_of(run.pipeline, run.interval).items():
        data = refused_data(records, newest_verdict(records, ledger))
        waived = waived_in(data, [waiver for waiver in words if waiver.stage == stage])
        by_expectation: dict[tuple[str, str, bool], list[GateResult]] = {}
        for result in ledger.gates.newest(records[0].cell):
            by_expectation.setdefault((result.suite, result.expectation, result.is_of_stage), []).append(result)
        for results in by_expectation.values():
            published = frozenset(record.partition for record in records if record.in_table and record.refused)
            yield _judged(stage, results, waived, published)


def _write_docs(site: DocSite, settings: Settings) -> str:
    """Writes the pages, and says where the first one is."""
    from stagehold.gates.verdict_pages import write_docs

    return write_docs(site, settings.lake_uri)


def _judged(stage: str, results: Sequence[GateResult], waived: Waived, published: frozenset[int]) -> JudgedExpectation:
    failed = tuple(result for result in results if not result.passed)
    newest = max(results, key=lambda result: result.recorded_at)
    return JudgedExpectation(
        stage=stage,
        suite=newest.suite,
        expectation=newest.expectation,
        severity=newest.severity,
        passed=len(results) - len(failed),
        failed=failed,
        judged_at=newest.recorded_at,
        results=tuple(results),
        waived=waived,
        published=published,
    )


def _document(expectation: JudgedExpectation) -> Mapping[str, Any]:
    return {
        "stage": expectation.stage,
        "suite": expectation.suite,
        "expectation": expectation.expectation,
        "severity": expectation.severity,
        "scope": "stage" if expectation.results[0].is_of_stage else "partition",
        "passed": expectation.passed,
        "failed": [{"partition": result.partition, "observed": result.observed} for result in expectation.failed],
        "judged_at": expectation.judged_at,
        "outstaying": expectation.outstaying,
        "results": [_result(result, expectation.waived) for result in expectation.results],
    }


def _result(result: GateResult, waived: Waived) -> Mapping[str, Any]:
    """``success``, ``expectation_config`` and ``result`` are called as Great Expectations calls them in the JSON of its
    results; the last two are empty where a version said it that did not keep them.
    """
    word = None if result.passed else waived.get((result.partition, result.expectation))
    return {
        "partition": result.partition,
        "severity": result.severity,
        "success": result.passed,
        "expectation_config": json.loads(result.configuration or "{}"),
        "result": json.loads(result.result or "{}"),
        "observed": result.observed,
        "judged_at": result.recorded_at,
        "waived": word and {"by": word.waived_by, "reason": word.reason, "when": word.recorded_at, "until": word.until},
    }


def _cells(expectation: JudgedExpectation) -> tuple[str, ...]:
    from stagehold.model.partition_set import PartitionSet

    which = (
        f"{len(expectation.failed)} ({PartitionSet(result.partition for result in expectation.failed)})"
        if expectation.failed
        else "0"
    )
    waived = f", {expectation.waived_partitions} waived" if expectation.waived_partitions else ""
    seen = expectation.failed[0].observed if expectation.failed else ""
    waived += f", {expectation.outstaying} in its table all the same" if expectation.outstaying else ""
    judged = (str(expectation.passed), which + waived, moment(expectation.judged_at))
    return (expectation.stage, expectation.suite, expectation.severity, *judged, expectation.expectation, seen)
