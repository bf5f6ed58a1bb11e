"""What an interval takes of an incremental source.

The rule: when an interval is first computed it takes everything there is that no interval has taken, and keeps it for
good. Taking is one transaction of the ledger, so whichever intervals run at once, and in whichever order they do,

* nothing is taken by two intervals: not by concurrent ones, nor by an older one that is backfilled later;
* nothing is left out: what one interval did not take is there for the next that comes;
* every retry, resume, heal and new run of an interval reads what it took, whatever has arrived since.

With `by`, a file belongs to one interval, and only that one takes it when it is first computed. A file that comes late,
when its interval has taken its own, goes to the next later interval that is first computed. So a backfill of five days
whose files are all there gives each day its own, in whatever order they run.

What an interval took stays with it also while its run has failed: part of it may be published already, so handing it on
would repeat rows. Resuming that interval reads it. As long as nothing of it is published it may be taken anew, by
command (`run/intervals/retake.py`). An interval that found nothing new is empty, and stays so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from stagehold.model.source_position import FilesRead, Position, SourceFile, VersionsRead


def new_files(listed: Sequence[SourceFile], taken: Iterable[Position]) -> FilesRead:
    """The files that nobody has taken. A path counts once, whatever became of its content."""
    known = {file.path for file in _files(taken)}
    return FilesRead(tuple(file for file in listed if file.path not in known))


def due_files(
    new: FilesRead, interval: str, earlier: Collection[str], belongs: Callable[[SourceFile, str], bool]
) -> FilesRead:
    """Of files that nobody has taken, those that belong to the interval, and late ones of ``earlier`` intervals, which
    have taken their own.
    """
    intervals = (interval, *earlier)
    return FilesRead(tuple(file for file in new.files if any(belongs(file, each) for each in intervals)))


def new_versions(newest: int, taken: Iterable[Position]) -> VersionsRead:
    """What the table's commits added since the last one that was taken; to begin with, all that it holds."""
    after = last_version(taken)
    return VersionsRead(after, newest if after is None else max(after, newest))


def last_version(taken: Iterable[Position]) -> int | None:
    return max((position.version for position in taken if isinstance(position, VersionsRead)), default=None)


def taken_twice(position: Position, taken: Mapping[str, Position]) -> str | None:
    """An interval that has taken something of this position, too."""
    return next((interval for interval, other in taken.items() if _have_in_common(position, other)), None)


def _have_in_common(position: Position, other: Position) -> bool:
    if isinstance(position, FilesRead) and isinstance(other, FilesRead):
        return not {file.path for file in position.files}.isdisjoint(file.path for file in other.files)
    if isinstance(position, VersionsRead) and isinstance(other, VersionsRead):
        return max(position.first, other.first) <= min(position.version, other.version)
    return False


def file_changes(before: FilesRead, after: FilesRead) -> Mapping[str, str]:
    """What became of the files that an interval takes anew, by path."""
    old, new = {file.path: file for file in before.files}, {file.path: file for file in after.files}
    changes = {path: "no longer there" for path in old if path not in new}
    changes |= {path: "new" for path in new if path not in old}
    changes |= {path: _difference(old[path], new[path]) for path in new if path in old and old[path] != new[path]}
    return dict(sorted(changes.items()))


def changes_since(listed: Sequence[SourceFile], taken: Iterable[Position]) -> tuple[str, ...]:
    """Files that are no longer what was taken, in words.
    One that is gone was cleared away, and that is nobody's loss.
    """
    known = {file.path: file for file in _files(taken)}
    return tuple(_change(known[file.path], file) for file in listed if file.path in known and file != known[file.path])


def _files(taken: Iterable[Position]) -> Iterable[SourceFile]:
    return (file for position in taken if isinstance(position, FilesRead) for file in position.files)


def _change(before: SourceFile, now: SourceFile) -> str:
    return f"{now.path} was read before: {_difference(before, now)}"


def _difference(before: SourceFile, now: SourceFile) -> str:
    return (
        f"{before.bytes} bytes, now {now.bytes}"
        if before.bytes != now.bytes
        else f"still {now.bytes} bytes, but written again"
    )
