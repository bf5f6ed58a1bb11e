"""A partition that was computed again: did it come out as before?

The same code on the same inputs should give the same data. Where it does not, what was made from the old data no
longer fits, and people should know why.
"""

from __future__ import annotations

from stagehold.model.records import PartitionRecord

CAME_OUT_DIFFERENT = "came out different"


def remark(before: PartitionRecord | None, *, compute_key: str, fingerprint: str, healed: bool, because: str = "") -> str | None:
    """What to record with a partition that was computed again; None when nothing is odd about it.

    Other data from another key needs no explanation, unless such a remark is ``because`` of what it was computed: its readers
    have to hear of it in turn. Empty fingerprints are those of records that nobody measured.
    """
    if before is None or before.fingerprint in ("", fingerprint):
        return None
    if before.compute_key != compute_key:
        return f"was computed again because {because}" if CAME_OUT_DIFFERENT in because else None
    again = "was healed" if healed else "was computed again"
    return f"{again} and {CAME_OUT_DIFFERENT} (fingerprint {fingerprint}, before {before.fingerprint}): not deterministic"


def tells_of_other_data(record: PartitionRecord | None) -> bool:
    """Whether the record was kept with such a remark."""
    return record is not None and CAME_OUT_DIFFERENT in (record.reason or "")
