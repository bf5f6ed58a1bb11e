"""What there is to choose of how an output is kept, and why it is stored or not."""

from __future__ import annotations

from enum import StrEnum


class TypeReason(StrEnum):
    """Why an output is stored, or computed along with its readers."""

    DECLARED = "declared"
    MODE = "mode"  # the execution mode chooses it
    UNREAD = "unread"
    GATE = "gate"
    STATE = "state"
    COLUMNS = "columns"
    SCRIPT = "script"
    AUTO = "auto"  # its bytes settle how many partitions a reader has
    TASKS = "tasks"  # several tasks share its region, and none of them has all that a shuffle needs
    JOINED_AGAIN = "joined_again"  # its branches meet again, which could deadlock
    DEADLOCK = "deadlock"  # its region would wait for itself


class CommitterKind(StrEnum):
    """Who makes an output's commits: delta-rs, of files that Spark staged, or delta-spark, which writes rows again."""

    STAGED = "staged"
    DELTA_SPARK = "delta_spark"


class OnCodeChange(StrEnum):
    """What becomes of recorded partitions that other code made than the stage has now."""

    RECOMPUTE = "recompute"
    KEEP = "keep"


class OnForeignChange(StrEnum):
    """What becomes of a published partition whose rows somebody else removed from its table."""

    FAIL = "fail"  # it is blocked until somebody decides
    HEAL = "heal"  # it is computed again and published
    KEEP = "keep"  # it stays as it is, and counts as done


class Evolution(StrEnum):
    """Whether a published table may gain columns or get wider types. It never loses or narrows any."""

    EVOLVE = "evolve"
    FAIL = "fail"


class OnWaiverEnd(StrEnum):
    """What becomes of a table's rows that rest on refused data, when the waiver ends that let the data through."""

    RETRACT = "retract"  # they are taken out of the table
    KEEP = "keep"  # they stay, and are marked
