"""Compares reused partitions with their fingerprints before anything is made from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from stagehold.errors import PartitionDataMissing
from stagehold.model.records import AttemptState, Lease, PartitionRecord
from stagehold.plan.determinism.verification import NO_MATCH, as_damaged, to_verify
from stagehold.run.delivery.comparison import mismatches
from stagehold.run.equipment.engine import Session
from stagehold.run.equipment.workplace import Workplace
from stagehold.run.planning.task import RegionTask

UNHAPPY = (AttemptState.FAILED, AttemptState.CANCELED)


def verify_reused(
    reused: Iterable[tuple[str, Sequence[PartitionRecord]]],
    task: RegionTask,
    lease: Lease,
    session: Session,
    workplace: Workplace,
) -> None:
    """Read partitions that are ``reused``, by stage, as many as the pipeline's policy says.

    What is not as it was recorded is put on record as damaged, so that it is healed whoever plans next. Data that
    changes after it was compared is not noticed.

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
            workplace.ledger.partitions.record([as_damaged(record, datetime.now(UTC)) for record in damaged], lease)
            workplace.progress(f"{stage}[{', '.join(str(record.partition) for record in damaged)}]: {NO_MATCH}")
            raise PartitionDataMissing(stage, [record.partition for record in damaged])
        if chosen:
            workplace.progress(f"{stage}: {len(chosen)} reused partitions compared with their fingerprints")
