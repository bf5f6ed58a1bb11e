"""Which recorded partitions are read again, to see whether their content is still what was recorded; and whether a
partition that was computed again came out as before.

The same code on the same inputs should give the same data. Where it does not, what was made from the old data no
longer fits, and people should know why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from random import Random

from stagehold.model.keys.compute_key import tells_of_the_same
from stagehold.model.records import PartitionRecord
from stagehold.model.standing import PartitionState
from stagehold.plan.grounds.reasons import Reason
from stagehold.spec.settings.run_settings import VerifyPolicy

SAMPLE = 2  # partitions of each stage and attempt; every attempt draws others, so that those of a long repair add up
NO_MATCH = "its content no longer matches its fingerprint"


# A partition whose content is not what was recorded, and the fingerprint that it has now; None if it cannot be read.
Mismatch = tuple[PartitionRecord, str | None]


def to_verify(
    policy: VerifyPolicy, records: Sequence[PartitionRecord], *, run_id: str, interrupted: bool, seed: str
) -> tuple[PartitionRecord, ...]:
    """Records to compare, of the ``records`` that are about to be reused. A partition without rows has nothing to
    compare.

    A sample is drawn of what other runs left, also where this run has only put it in place, and of what this run left
    before it was ``interrupted``: what it has made
    just now is not old enough to have changed, so a run without failures pays nothing.
    """
    filled = [record for record in records if record.all_files]
    if policy is VerifyPolicy.NEVER:
        return ()
    if policy is VerifyPolicy.ALWAYS:
        return tuple(filled)
    old = [record for record in filled if interrupted or record.run_id != run_id or record.taken_over]
    return tuple(Random(seed).sample(old, min(SAMPLE, len(old))))  # noqa: S311


def same_content(recorded: str, measured: str) -> bool:
    """Whether two fingerprints tell of the same rows.
    Where columns are told in another order, only the rows can be counted.
    """
    (columns, rows, *_), (columns_now, rows_now, *_) = recorded.split("-"), measured.split("-")
    return recorded == measured if columns == columns_now else rows == rows_now


def as_damaged(record: PartitionRecord, at: datetime) -> PartitionRecord:
    """What to append to the ledger, so that no later attempt reuses the partition either."""
    return replace(record, state=PartitionState.DAMAGED, reason=NO_MATCH, recorded_at=at)


def remark(
    before: PartitionRecord | None, *, compute_key: str, fingerprint: str, healed: bool, because: Reason | None = None
) -> str | None:
    """What to record with a partition that was computed again; None when nothing is odd about it, and its change is
    explained.

    Other data from another key needs no explanation, unless it was computed ``because`` of data that nothing explains:
    its readers have to hear of that in turn. Empty fingerprints are those of records that nobody measured.
    """
    if before is None or before.fingerprint in ("", fingerprint):
        return None
    if not tells_of_the_same(before.compute_key, compute_key):
        return f"was computed again because {because}" if because and because.is_unexplained else None
    again = "was healed" if healed else "was computed again"
    return f"{again} and came out different (fingerprint {fingerprint}, before {before.fingerprint}): not deterministic"
