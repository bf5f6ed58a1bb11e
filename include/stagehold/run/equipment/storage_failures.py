"""What an error says of a disk, folder or bucket: which one it is, and what is to be done about it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from stagehold.errors import StageFailed, StageholdError, StorageProblem, StorageUnusable
from stagehold.lake.store.location import OBJECT_STORE
from stagehold.plan.restart.rules import diagnose
from stagehold.settings import Settings

FEW_BYTES = 1 << 20  # a disk that has less left is full
MARKUP = re.compile(r"\x1b\[\d*m|<[?/]?\w[^<>]*>")  # delta-rs writes in colours, and what S3 answered as it came
LONGEST = 300


@contextmanager
def naming_storage(settings: Settings) -> Iterator[None]:
    """Errors of a place where something is kept, in the block, come out as StorageUnusable."""
    try:
        yield
    except Exception as error:
        named = storage_failure(error, settings)
        if named is None:
            raise
        raise named from error


def storage_failure(error: BaseException, settings: Settings) -> StorageUnusable | None:
    """The storage failure that an error tells of. None for an error that says nothing of such a place, that has its own
    words, or that comes out of a stage's function: what that wrote is not ours.
    """
    told = isinstance(error, StageholdError) and type(error) is not StageFailed
    found = None if told else diagnose(error)
    if found is None or found.rule.storage is None:
        return None
    story = MARKUP.sub(" ", str(found.decided_by))
    place = getattr(found.decided_by, "filename", None) or _named(story, settings)
    place = str(place or _in_that_state(found.rule.storage, settings))
    return StorageUnusable(place, found.rule.storage, _reason(story, found.rule.texts))


def _named(story: str, settings: Settings) -> str | None:
    """The longest path below lake or home that the error names."""
    roots = "|".join(re.escape(root) for root in (settings.lake_uri, str(settings.home_path)))
    return max(re.findall(rf"(?:{roots})[^\s'\"`(),:#]*", story), key=len, default="").rstrip(".") or None


def _in_that_state(problem: StorageProblem, settings: Settings) -> str:
    """Errors of full disks name no file. What Spark's tasks put aside while they work is on a disk of its machine."""
    places = (settings.lake_uri, str(settings.home_path))
    if problem is StorageProblem.DENIED and settings.lake_uri.startswith(OBJECT_STORE):
        return settings.lake_uri
    found = [place for place in places if _is(problem, place)]
    return " or ".join(found or dict.fromkeys(places)) + ("" if found else ", or a folder for Spark's own files,")


def _is(problem: StorageProblem, place: str) -> bool:
    with suppress(OSError):
        disk = os.statvfs(place)
        if problem is StorageProblem.FULL:
            return disk.f_bavail * disk.f_frsize < FEW_BYTES or disk.f_favail == 0 < disk.f_files
        return bool(disk.f_flag & os.ST_RDONLY) or not os.access(place, os.W_OK)
    return False


def _reason(story: str, texts: tuple[str, ...]) -> str:
    """The line that says it."""
    lines = [line.strip(" \t↳") for line in story.splitlines() if line.strip(" \t↳")]
    said = (line for line in lines if texts and all(re.search(text, line, re.IGNORECASE) for text in texts))
    line = next(said, lines[0] if lines else "it gave an error")
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."
