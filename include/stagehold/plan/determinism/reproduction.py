"""A partition that was computed again: did it come out as before?

The same code on the same inputs should give the same data. Where it does not, what was made from the old data no
longer fits, and people should know why.
"""

from __future__ import annotations

from stagehold.model.records import PartitionRecord
from stagehold.plan.grounds.reasons import Reason


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
    if before.compute_key != compute_key:
        return f"was computed again because {because}" if because and because.is_unexplained else None
    again = "was healed" if healed else "was computed again"
    return f"{again} and came out different (fingerprint {fingerprint}, before {before.fingerprint}): not deterministic"
