"""Errors: a table of the lake does not take or does not have the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stagehold.errors.base import StageholdError, Terminal, Transient


class LakeError(StageholdError):
    """A table of the lake does not take the data, or no longer has it."""


class TableSchemaConflict(LakeError, Terminal):
    """Earlier intervals of a published table hold columns that the stage's output no longer has,
    or has with another type.
    """

    def __init__(self, stage: str, table: str, *, missing: Sequence[str], changed: Sequence[str]) -> None:
        self.stage, self.table, self.missing, self.changed = stage, table, tuple(missing), tuple(changed)
        facts = (
            f"no longer in the output: {', '.join(self.missing)}" if missing else "",
            f"of another type: {', '.join(self.changed)}" if changed else "",
        )
        super().__init__(
            f"Stage {stage} cannot publish to {table}, which may gain columns but not lose or change them; "
            f"{'; '.join(fact for fact in facts if fact)}. The table is unchanged. "
            "Keep those columns as they were, or name another table under the stage's output, then run `stagehold "
            "resume`."
        )


class TableChanged(LakeError, Terminal):
    """Somebody else removed rows of published partitions, and nobody has said what is to become of them.

    ``reasons`` says for each partition which commit did it.
    """

    def __init__(self, stage: str, reasons: Mapping[int, str]) -> None:
        self.stage, self.reasons = stage, dict(reasons)
        lines = "\n".join(f"  {stage}[{partition}] {reason}" for partition, reason in sorted(self.reasons.items()))
        super().__init__(
            f"Somebody else removed rows of a published table, which holds up {len(self.reasons)} partition(s) of "
            f"{stage}:\n{lines}\n"
            "They were not computed again, as that would bring back what may have been removed on purpose, and no "
            "stage reads them. Everything else stays consumable. Under the output of the stage that publishes the "
            "table, set `on_foreign_change: heal` to have the rows computed again, or `on_foreign_change: keep` to "
            "leave the table as it is; then run `stagehold resume`."
        )


class CommitContested(LakeError, Transient):
    """Each time a commit was tried, another had just landed in the same table."""

    def __init__(self, table: str, tries: int, reason: str) -> None:
        self.table, self.tries, self.reason = table, tries, reason
        super().__init__(
            f"A commit to {table} failed {tries} times because others landed first: {reason} "
            "Nothing of it is readable, and what was recorded stays safe. Run the task again, or `stagehold resume`."
        )


class TableUnreadable(LakeError, Transient):
    """The log of a table cannot be read, so nobody knows what the table holds."""

    def __init__(self, table: str, reason: str) -> None:
        self.table, self.reason = table, reason
        super().__init__(
            f"The log of {table} cannot be read: {reason} Nothing was deleted. Mend the log, or have the pipeline "
            "publish another table, then run the command again."
        )


class PartitionDataMissing(LakeError, Transient):
    """Partitions that are recorded as consumable can no longer be read."""

    def __init__(self, stage: str, partitions: Sequence[int]) -> None:
        self.stage, self.partitions = stage, tuple(partitions)
        named = ", ".join(str(partition) for partition in self.partitions)
        super().__init__(
            f"Data of {stage} is gone for partition(s) {named}. Everything else is still safe to read. "
            f"`stagehold plan` shows what runs again; `stagehold resume` runs it."
        )


class CopyRefused(LakeError, Terminal):
    """Files were to be copied to where another file is."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"{path} is there already, and is another file. It is untouched; what was copied beside it is complete. "
            "Delete it, or name another place, then run the command again."
        )
