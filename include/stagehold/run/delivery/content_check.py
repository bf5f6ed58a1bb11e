"""Compares what is recorded with its fingerprints, by reading it, and refuses what is not as it was recorded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import groupby

from stagehold.errors import PartitionDataMissing
from stagehold.ledger.ledger import Ledger
from stagehold.model.records import AttemptState, Lease, PartitionRecord
from stagehold.plan.determinism.verification import NO_MATCH, Mismatch, as_damaged, same_content, to_verify
from stagehold.run.equipment.workplace import Fingerprints, Session, Workplace
from stagehold.run.planning.task import RegionTask
from stagehold.spark.session.sessions import translate


def mismatches(records: Sequence[PartitionRecord], session: Fingerprints) -> list[Mismatch]:
    """Records, of these that all have files, whose content is not what was recorded."""
    by_attempt = groupby(sorted(records, key=_writer), key=_writer)
    return [found for _, written in by_attempt for found in _differing(list(written), session)]


def _writer(record: PartitionRecord) -> str:
    return record.written_by


def _differing(records: list[PartitionRecord], session: Fingerprints) -> list[Mismatch]:
    """The mismatches among records of one attempt. What cannot even be read is found by reading one after the other."""
    try:
        measured = session.fingerprints(records)
    except Exception as error:
        if translate(error) is not None:
            raise
        if len(records) == 1:
            return [Mismatch(records[0], None)]
        return [bad for record in records for bad in _differing([record], session)]
    return [
        Mismatch(record, measured[record.partition])
        for record in records
        if not same_content(record.fingerprint, measured[record.partition])
    ]


def refuse_damaged(stage: str, damaged: Sequence[PartitionRecord], lease: Lease, ledger: Ledger) -> None:
    """Put on record what is not as it was recorded, so that it is healed whoever plans next.

    :raises PartitionDataMissing: if there is any; the plan has to be made anew.
    """
    if damaged:
        ledger.partitions.record([as_damaged(record, datetime.now(UTC)) for record in damaged], lease)
        raise PartitionDataMissing(stage, [record.partition for record in damaged])


UNHAPPY = (AttemptState.FAILED, AttemptState.CANCELED)


def verify_reused(
    reused: Iterable[tuple[str, Sequence[PartitionRecord]]],
    task: RegionTask,
    lease: Lease,
    session: Session,
    workplace: Workplace,
) -> None:
    """Read partitions that are ``reused``, by stage, as many as the pipeline's policy says.

    Data that changes after it was compared is not noticed.

    :raises PartitionDataMissing: for the first stage with such a partition; the plan has to be made anew.
    """
    interrupted = any(attempt.state in UNHAPPY for attempt in workplace.ledger.attempts.of_run(task.request.run_id))
    for stage, records in reused:
        seed = f"{lease.name}/{lease.epoch}/{stage}"
        chosen = to_verify(
            task.pipeline.verify, records, run_id=task.request.run_id, interrupted=interrupted, seed=seed
        )
        damaged = [found.record for found in mismatches(chosen, session)]
        if damaged:
            workplace.progress(f"{stage}[{', '.join(str(record.partition) for record in damaged)}]: {NO_MATCH}")
        refuse_damaged(stage, damaged, lease, workplace.ledger)
        if chosen:
            workplace.progress(f"{stage}: {len(chosen)} reused partitions compared with their fingerprints")
