"""Errors: a table of the lake does not take or does not have the data; a disk, folder or bucket does not take or give
what it should.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType

from stagehold.errors.base import StageholdError, Terminal, Transient


class LakeError(StageholdError):
    """A table of the lake does not take the data, or no longer has it."""


class TableSchemaConflict(LakeError, Terminal):
    """A published table may not take the columns that the stage's output has now.

    ``missing`` are columns of the table with their types, ``changed`` others with their types in table and output, and
    ``new`` those that the output's `schema: fail` keeps out.
    """

    def __init__(
        self,
        stage: str,
        table: str,
        *,
        missing: Mapping[str, str] = MappingProxyType({}),
        changed: Mapping[str, tuple[str, str]] = MappingProxyType({}),
        new: Sequence[str] = (),
    ) -> None:
        self.stage, self.table = stage, table
        self.missing, self.changed, self.new = dict(missing), dict(changed), tuple(new)
        super().__init__(
            f"Stage {stage} cannot publish to {table}, which may gain columns but not lose or change them; "
            f"{'; '.join(self._facts())}. The table is unchanged. "
            f"{', and '.join(self._ways_out())}, or name another table under the stage's output; then run `stagehold "
            "resume`."
        )

    def _facts(self) -> Iterator[str]:
        if self.missing:
            yield f"no longer in the output: {', '.join(self.missing)}"
        if self.changed:
            of = (
                f"{name} ({before} in the table, {now} in the output)" for name, (before, now) in self.changed.items()
            )
            yield f"of another type: {', '.join(of)}"
        if self.new:
            yield f"new in the output, whose `schema: fail` keeps them out: {', '.join(self.new)}"

    def _ways_out(self) -> Iterator[str]:
        if self.missing:
            nulls = (f'F.lit(None).cast("{kind}").alias("{name}")' for name, kind in self.missing.items())
            yield f"Have the function select what a day does not have as NULL: {', '.join(nulls)}"
        if self.changed:
            yield "Cast what is of another type in the function"
        if self.new:
            yield "Take the new columns out of the function, or set `schema: evolve` under the output"


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


class CatalogTaken(LakeError, Terminal):
    """The name under which a published table is to be registered is another table's."""

    def __init__(self, name: str, location: str, table: str) -> None:
        self.name, self.location, self.table = name, location, table
        super().__init__(
            f"The catalog of Spark's server knows {name} as the table at {location}, and not as that at {table}. What "
            "was published there is complete and stays so; the catalog was not changed. Give the output another name "
            "under `catalog`, or have whoever owns the entry drop it; then run `stagehold resume`."
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


class StorageProblem(StrEnum):
    """What is wrong with a place where something is kept."""

    FULL = "full"
    DENIED = "denied"  # it is read-only, or somebody else's, or the credentials for it have run out
    BROKEN = "broken"  # a file where a folder should be, or a disk that gives errors

    @property
    def remedy(self) -> str:
        return _REMEDIES[self]


_REMEDIES = {
    StorageProblem.FULL: "Make room on its disk, or raise its quota",
    StorageProblem.DENIED: "Let the user that runs Stagehold (and its Spark server) write there: mount it for writing, "
    "and mend owner and permissions; for a bucket, see that its credentials are valid and may write",
    StorageProblem.BROKEN: "See that its disk answers, and that nothing but folders leads there",
}


class StorageError(StageholdError):
    """A place where something is kept does not take it or does not give it back."""


class StorageUnusable(StorageError, Transient):
    """``place`` is a path or an address, or several of which one is meant."""

    def __init__(self, place: str, problem: StorageProblem, reason: str) -> None:
        self.place, self.problem, self.reason = place, problem, reason
        super().__init__(
            f"{place} cannot be used: {reason.rstrip('.')}. Nothing half written is ever read, and what was recorded "
            f"stays safe. {problem.remedy}; then run the command again, or `stagehold resume` for a run that had begun."
        )
