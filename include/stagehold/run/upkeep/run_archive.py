"""Keeps what is known of a run before the ledger forgets it: `LAKE/_runs/PIPELINE/RUN/ENDED.json`, one file for each
time that `stagehold gc` finds something to forget.
"""

from __future__ import annotations

import logging
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from stagehold.errors import UnknownName
from stagehold.lake.store.files import Files, files_at
from stagehold.lake.store.location import path_safe
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import WHOLE, Attempt, Event, GateResult, PartitionRecord, Restore, Run
from stagehold.model.standing import PartitionState, Tally, counted_in_all
from stagehold.model.states import Transition
from stagehold.plan.resume.waiving import in_force, is_waived
from stagehold.run.planning.acceptance import newest_verdict

if TYPE_CHECKING:
    from pydantic import TypeAdapter

log = logging.getLogger(__name__)

FOLDER = "_runs"
ENDING = ".json"


@dataclass(frozen=True)
class StageCount:
    """What is known of one stage's partitions now, for the run's interval, whichever run made them."""

    stage: str
    consumable: int
    blocked: int
    released: int
    made_by_run: int
    rows: int
    bytes: int
    held: int = 0  # which older archives do not say
    counted: Annotated[tuple[tuple[str, int], ...], Field(exclude_if=operator.not_)] = ()


@dataclass(frozen=True)
class RunReport:
    """``traces`` are by attempt, ``failures`` of partitions, or whole stages, that are blocked now."""

    run: Run
    stages: tuple[StageCount, ...]
    attempts: tuple[Attempt, ...]
    traces: Mapping[str, str]
    failures: tuple[GateResult, ...]
    events: tuple[Event, ...]
    restores: tuple[Restore, ...]
    history: tuple[Transition, ...]

    @property
    def attempt_names(self) -> Mapping[str, str]:
        """What people call each attempt, by its id."""
        return {attempt.attempt_id: attempt.named for attempt in self.attempts}


def recorded_report(run_id: str, ledger: Ledger) -> RunReport:
    """What the ledger knows of it.

    :raises UnknownName: nothing.
    """
    run = ledger.runs.get(run_id)
    newest = ledger.partitions.newest_of(run.pipeline, run.interval)
    return RunReport(
        run=run,
        stages=tuple(_count(stage, records, run_id) for stage, records in newest.items()),
        attempts=ledger.attempts.of_run(run_id),
        traces=ledger.events.traces(run_id),
        failures=tuple(_failures(newest, ledger)),
        events=ledger.events.of_run(run_id),
        restores=ledger.restores.of_run(run_id),
        history=ledger.transitions.of_run(run_id),
    )


def _count(stage: str, records: Sequence[PartitionRecord], run_id: str) -> StageCount:
    tally = Tally.of(records)
    return StageCount(
        stage=stage,
        consumable=tally.readable.partitions,
        blocked=tally.count(PartitionState.BLOCKED),
        released=tally.count(PartitionState.RELEASED),
        made_by_run=sum(record.state.readable and record.run_id == run_id for record in records),
        rows=tally.readable.rows,
        bytes=tally.readable.bytes,
        held=tally.count(PartitionState.HELD),
        counted=counted_in_all(records),
    )


def _failures(newest: Mapping[str, Sequence[PartitionRecord]], ledger: Ledger) -> Iterator[GateResult]:
    """Gate failures of partitions that are blocked now: what was blocked once and passed since, or was waived, is
    history.
    """
    for records in newest.values():
        blocked = {record.partition for record in records if record.state is PartitionState.BLOCKED}
        blocked |= {WHOLE} if _is_refused_together(records, ledger) else set()
        said = ledger.gates.failures(records[0].cell) if blocked else ()
        yield from (result for result in said if result.partition in blocked and result.blocks)


def _is_refused_together(records: Sequence[PartitionRecord], ledger: Ledger) -> bool:
    verdict, cell = newest_verdict(records, ledger), records[0].cell
    words = in_force(ledger.waivers.of(cell.pipeline, cell.interval), datetime.now(UTC))
    return bool(verdict and verdict.refused and not is_waived(verdict, words))


class RunArchive:
    """The archived reports of a lake. Files are made once and never changed; nobody deletes them."""

    def __init__(self, lake_uri: str) -> None:
        self._files: Files = files_at(lake_uri)

    def keep(self, report: RunReport) -> None:
        """Keep the run. Whoever comes second with the same end of the run changes nothing."""
        run = report.run
        ended = f"{run.ended_at:%Y%m%dT%H%M%S.%f}" if run.ended_at else "not-ended"
        folder = f"{FOLDER}/{path_safe(run.pipeline)}/{path_safe(run.run_id)}"
        self._files.create(f"{folder}/{ended}{ENDING}", _form().dump_json(report, indent=1))

    def of_run(self, run_id: str) -> tuple[RunReport, ...]:
        """Oldest first; one that cannot be read is left out and told."""
        name = path_safe(run_id)
        folders = (f"{FOLDER}/{pipeline}/{name}" for pipeline in sorted(self._files.folders(FOLDER)))
        paths = (path for folder in folders for path in sorted(self._files.sizes(folder)))
        found = (self._read(path) for path in paths if path.endswith(ENDING))
        return tuple(report for report in found if report is not None and report.run.run_id == run_id)

    def _read(self, path: str) -> RunReport | None:
        try:
            return _form().validate_json(self._files.read(path))
        except ValueError as error:
            log.warning("the archived run %s is not what was written: %s", path, error)
            return None


@cache
def _form() -> TypeAdapter[RunReport]:
    from pydantic import TypeAdapter  # most runs have nothing archived, and are shown without it

    return TypeAdapter(RunReport)


def report_of(run_id: str, ledger: Ledger, lake_uri: str) -> RunReport:
    """What the ledger knows, with what it has forgotten. A run that it does not know at all is as it was archived last.

    :raises UnknownName: neither ledger nor lake knows it.
    """
    archived = RunArchive(lake_uri).of_run(run_id)
    try:
        return _with_forgotten(recorded_report(run_id, ledger), archived)
    except UnknownName:
        if not archived:
            raise
        return _with_forgotten(archived[-1], archived[:-1])


def archived_traces(run_id: str, lake_uri: str) -> Mapping[str, str]:
    """The traces that the ledger has forgotten, by attempt."""
    return {attempt: text for report in RunArchive(lake_uri).of_run(run_id) for attempt, text in report.traces.items()}


def archive_runs(run_ids: Iterable[str], ledger: Ledger, lake_uri: str) -> None:
    archive = RunArchive(lake_uri)
    for run_id in run_ids:
        archive.keep(recorded_report(run_id, ledger))


def _with_forgotten(report: RunReport, archived: Iterable[RunReport]) -> RunReport:
    """What both know counts once: who archives may die before the ledger forgets."""
    for earlier in reversed(tuple(archived)):
        report = replace(
            report,
            traces={**earlier.traces, **report.traces},
            events=tuple(dict.fromkeys((*earlier.events, *report.events))),
            history=tuple(dict.fromkeys((*earlier.history, *report.history))),
        )
    return report
