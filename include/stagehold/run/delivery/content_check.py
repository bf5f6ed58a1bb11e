"""Reads recorded data and compares it with its fingerprints; refuses data that differs from its record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import groupby

from stagehold.errors import PartitionDataMissing
from stagehold.lake.local_copies import LocalCopies
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import Lease, PartitionRecord
from stagehold.model.states import ENDED_BADLY
from stagehold.plan.determinism.verification import NO_MATCH, Mismatch, as_damaged, same_content, to_verify
from stagehold.run.equipment.workplace import Fingerprints, Progress, Session, Workplace
from stagehold.run.planning.task import RegionTask
from stagehold.settings import Settings
from stagehold.spark.session.sessions import translate


def mismatches(records: Sequence[PartitionRecord], session: Fingerprints) -> list[Mismatch]:
    """The records whose data differs from them. All of the records have files."""
    by_attempt = groupby(sorted(records, key=_writer), key=_writer)
    return [found for _, written in by_attempt for found in _differing(list(written), session)]


def beyond_repair(
    records: Sequence[PartitionRecord], session: Fingerprints, settings: Settings, tell: Progress
) -> list[Mismatch]:
    """The records whose data differs from them, and for which this worker has no copies that do not."""
    found, copies = mismatches(records, session), LocalCopies.of(settings)
    damaged = [record for record, _ in found]
    return mismatches(damaged, session) if copies and damaged and copies.repair(damaged, tell) else found


def _writer(record: PartitionRecord) -> str:
    return record.written_by


def _differing(records: list[PartitionRecord], session: Fingerprints) -> list[Mismatch]:
    """The mismatches among records of one attempt. Data that cannot even be read is found by reading one partition
    after the other.
    """
    try:
        return _unlike(records, session)
    except Exception as error:
        if translate(error) is not None:
            raise
        if len(records) > 1:
            return [bad for record in records for bad in _differing([record], session)]
    return _read_once_more(records[0], session)


def _read_once_more(record: PartitionRecord, session: Fingerprints) -> list[Mismatch]:
    """The record if its data cannot be read again, though its table's log can: keys that ran out, a store or an
    executor that is away, say nothing of the data.

    :raises Exception: what keeps Spark from reading anything there
    """
    session.read_log(record.table)
    try:
        return _unlike([record], session)
    except Exception as error:
        if translate(error) is not None:
            raise
        return [(record, None)]


def _unlike(records: Sequence[PartitionRecord], session: Fingerprints) -> list[Mismatch]:
    measured = session.fingerprints(records)
    return [
        (record, measured[record.partition])
        for record in records
        if not same_content(record.fingerprint, measured[record.partition])
    ]


def refuse_damaged(stage: str, damaged: Sequence[PartitionRecord], lease: Lease, ledger: Ledger) -> None:
    """Put on record which data differs from its record, so that any plan heals it.

    :raises PartitionDataMissing: some data differs; the plan has to be made anew.
    """
    if damaged:
        ledger.partitions.record([as_damaged(record, datetime.now(UTC)) for record in damaged], lease)
        raise PartitionDataMissing(stage, [record.partition for record in damaged])


def verify_reused(
    reused: Iterable[tuple[str, Sequence[PartitionRecord]]],
    task: RegionTask,
    lease: Lease,
    session: Session,
    workplace: Workplace,
) -> None:
    """Read partitions that are ``reused``, by stage, as many as the pipeline's policy says.

    Data that changes after it was compared is not noticed.

    :raises PartitionDataMissing: data of a stage, the first one, differs; the plan has to be made anew.
    """
    interrupted = any(attempt.state in ENDED_BADLY for attempt in workplace.ledger.attempts.of_run(task.request.run_id))
    for stage, records in reused:
        seed = f"{lease.name}/{lease.epoch}/{stage}"
        chosen = to_verify(
            task.pipeline.verify, records, run_id=task.request.run_id, interrupted=interrupted, seed=seed
        )
        damaged = [record for record, _ in beyond_repair(chosen, session, workplace.settings, workplace.progress)]
        if damaged:
            workplace.progress(f"{stage}[{', '.join(str(record.partition) for record in damaged)}]: {NO_MATCH}")
        refuse_damaged(stage, damaged, lease, workplace.ledger)
        if chosen:
            workplace.progress(f"{stage}: {len(chosen)} reused partitions compared with their fingerprints")
