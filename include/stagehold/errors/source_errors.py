"""Errors: what a stage should read is not there, or not as it was."""

from __future__ import annotations

from collections.abc import Sequence

from stagehold.errors.base import StageholdError, Terminal, Transient, first_of

AGAIN = "then run the pipeline again; `stagehold plan` shows what it would read."  # a plan has no run to resume


class SourceError(StageholdError):
    """What a stage should read is not there, or not as it was; nothing new was read."""


class SourceMissing(SourceError, Terminal):
    """No file matches the path of a source stage."""

    def __init__(self, stage: str, pattern: str) -> None:
        self.stage, self.pattern = stage, pattern
        super().__init__(
            f"Source stage {stage} has no files: nothing matches {pattern}. Nothing was run. "
            f"Put the files there or mend the stage's source path, {AGAIN}"
        )


class ReadMissing(SourceError, Terminal):
    """What a stage declares to read beside its inputs is not there; ``place`` is where it says so."""

    def __init__(self, stage: str, place: str, *, field: str, given: str) -> None:
        self.stage, self.place, self.field, self.given = stage, place, field, given
        wanted = "a file" if field.endswith("files") else "a Delta table"
        super().__init__(
            f"{place}: {field}: got {given!r}; allowed: {wanted} that is there. Stage {stage} declares to read it, so "
            "its content belongs to the keys of the stage, and nothing was run. Put it there or mend the field, "
            f"{AGAIN}"
        )


class ReadChanged(SourceError, Transient):
    """A file that a stage declares to read has changed while it was computed."""

    def __init__(self, stage: str, files: Sequence[str], partitions: str) -> None:
        self.stage, self.files = stage, tuple(files)
        super().__init__(
            f"Stage {stage} reads {', '.join(files)}, which changed while {partitions} was computed, so nobody can "
            "say which content its rows come from. Nothing of that wave is published, and what was published before it "
            f"stays. The next attempt reads what is there then. Let nobody write there meanwhile, {AGAIN}"
        )


class SourceUnusable(SourceError, Terminal):
    """A source is there but cannot be read as its stage declares it; ``remedy`` begins with what to do."""

    def __init__(self, stage: str, reason: str, remedy: str) -> None:
        self.stage, self.reason, self.remedy = stage, reason, remedy
        super().__init__(f"Source stage {stage} cannot be read: {reason}. Nothing of it was run. {remedy}, {AGAIN}")


class SplitsUnlisted(SourceError):
    """A source in Python did not say what its splits are; what it raised decides whether that is tried again."""

    def __init__(self, stage: str, reader: str, raised: str) -> None:
        self.stage, self.reader, self.raised = stage, reader, raised
        super().__init__(
            f"Source stage {stage} cannot be read: {reader} raised {raised} when it was asked for its splits. Nothing "
            f"of it was run. Mend it, {AGAIN}"
        )


class SourceChanged(SourceError, Terminal):
    """What a source has read before was changed in place, so that reading on would lose or repeat rows."""

    def __init__(self, stage: str, changes: Sequence[str]) -> None:
        self.stage, self.changes = stage, tuple(changes)
        lines = "\n".join(f"  {change}" for change in self.changes)
        super().__init__(
            f"Source stage {stage} reads what was added, but something was changed:\n{lines}\n"
            "Nothing new was read, and what was recorded stays safe to read. Put it back as it was and add what is "
            f"new beside it; or, if the change does not matter, set `on_change: ignore` on the source; {AGAIN}"
        )


class SourceLost(SourceError, Terminal):
    """What an interval took of a table cannot be read any more; each of ``losses`` says what, why, and the way out."""

    def __init__(self, stage: str, losses: Sequence[str], waiting: str | None = None) -> None:
        self.stage, self.losses, self.waiting = stage, tuple(losses), waiting
        lines = "\n".join(f"  {loss}" for loss in self.losses)
        until = f" Until then {waiting} takes nothing: it would pass over these rows." if waiting else ""
        super().__init__(
            f"Source stage {stage} has taken rows of a table that it cannot read any more:\n{lines}\n"
            f"Nothing new was read, and what was recorded stays safe to read.{until}"
        )


class RetakeRefused(SourceError, Terminal):
    """An interval is to take its files anew, and must not, or has none.
    ``made`` is what was published from ``files``.
    """

    def __init__(self, stage: str, reason: str, *, made: Sequence[str] = (), files: Sequence[str] = ()) -> None:
        self.stage, self.reason, self.made, self.files = stage, reason, tuple(made), tuple(files)
        published = f" Published: {first_of(self.made)}." if self.made else ""
        ways = "".join(
            f"\n  {file}: put it back as it was, and bring rows that it lacked in a file of another name, which the "
            "next interval takes"
            for file in self.files
        )
        super().__init__(
            f"Stage {stage} cannot take its files anew: {reason}.{published} Nothing was recorded, and all stays as "
            f"it was.{ways}\n"
            "`stagehold plan` shows what a run would read."
        )


class PositionTaken(SourceError, Terminal):
    """An interval should go back to what it, or another one, had taken of a source, and some of it is another's now."""

    def __init__(self, stage: str, interval: str) -> None:
        self.stage, self.interval = stage, interval
        super().__init__(
            f"Source stage {stage} cannot go back to where the checkpoint was: interval {interval} has taken some of "
            "that since, and its rows would be there twice. Nothing was read or changed. Restore into the interval "
            "that had taken it, or into another lake, and run the command again."
        )
