"""Java's archive of the classes that a server loads. With it the next server starts in half the time.

Java writes the archive when a server ends that was told to write it (`ArchiveMaking`), which takes some 10 to 20
seconds. An archive fits one Java and one class path, so its name has a digest of both; it also has a checksum, because
Java would die of an archive that is torn.
"""

from __future__ import annotations

import fcntl
import logging
import os
import subprocess
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO

from stagehold.settings import Settings
from stagehold.spark.server.java import virtual_machine

CHUNK = 1 << 20
UNUSED_SECONDS = 14 * 24 * 3600.0  # archives of Javas and checkouts that are no more
BASE_SECONDS = 120.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ArchivePlace:
    """Where the archive for one Java and one class path lies, and where it is made."""

    folder: Path
    key: str
    java: Path
    has_base: bool

    @property
    def base(self) -> Path:
        """The archive of Java's own classes, if this Java has none of its own: our archive builds on it."""
        return self.folder / f"{self.key}.base"

    @property
    def lock(self) -> Path:
        return self.folder / f"{self.key}.lock"

    def archives(self) -> Iterator[Path]:
        return self.folder.glob(f"{self.key}-*.jsa")


class ArchiveMaking:
    """An archive that a server writes when it ends. A lock sees to it that only one server makes it."""

    def __init__(self, place: ArchivePlace, draft: Path, lock: IO[str]) -> None:
        self.place, self.draft, self.lock = place, draft, lock

    @property
    def options(self) -> tuple[str, ...]:
        base = () if self.place.has_base else (f"-XX:SharedArchiveFile={self.place.base}",)
        return (*base, f"-XX:ArchiveClassesAtExit={self.draft}")

    def complete(self) -> None:
        """Take over what a server wrote that has ended by itself: the archive appears under its name as a whole."""
        with self.lock:
            if self.draft.exists():
                named = self.place.folder / f"{self.place.key}-{_checksum(self.draft)}.jsa"
                self.draft.replace(named)
                log.info("archive of classes made: %s", named)
            _clear(self.place)


def archive_place(settings: Settings, java_home: Path, jars: Sequence[Path]) -> ArchivePlace | None:
    """The place of the archive for this Java and class path; None for a Java whose parts lie where we do not
    know them.
    """
    machine = virtual_machine(java_home)
    if machine is None:
        return None
    facts = sha256("\n".join(_identity(file) for file in (machine, *jars)).encode()).hexdigest()[:16]
    has_base = (machine.parent / "classes.jsa").exists()
    return ArchivePlace(Path(settings.cache) / "classes", facts, java_home / "bin" / "java", has_base)


def whole_archive(place: ArchivePlace) -> Path | None:
    """The archive, if there is one; a damaged one is put aside. Reads the whole file, which takes some 0.1 s."""
    for archive in place.archives():
        if archive.stem == f"{place.key}-{_checksum(archive)}" and (place.has_base or place.base.exists()):
            for used in (archive,) if place.has_base else (archive, place.base):
                with suppress(OSError):  # somebody else's
                    os.utime(used)
            return archive
        log.warning("%s is damaged, and is not used", archive)
        archive.replace(archive.with_suffix(".damaged"))
    return None


def begin_making(place: ArchivePlace) -> ArchiveMaking | None:
    """Prepare to make the archive; None if another server is making it already, or if Java cannot."""
    place.folder.mkdir(parents=True, exist_ok=True)
    lock = place.lock.open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    draft = place.folder / f"{place.key}.draft"
    draft.unlink(missing_ok=True)
    if _with_base(place):
        return ArchiveMaking(place, draft, lock)
    lock.close()
    return None


def _with_base(place: ArchivePlace) -> bool:
    if place.has_base or place.base.exists():
        return True
    draft = place.base.with_suffix(".base-draft")
    command = [str(place.java), "-Xshare:dump", f"-XX:SharedArchiveFile={draft}"]
    try:
        subprocess.run(command, capture_output=True, check=True, timeout=BASE_SECONDS)
        draft.replace(place.base)
    except (OSError, subprocess.SubprocessError) as error:
        log.warning("no archive of classes is made: %s", error)
        return False
    return True


def _clear(place: ArchivePlace) -> None:
    """Delete archives that no server has used for long, for any Java and class path."""
    for file in place.folder.iterdir():
        if file.suffix == ".damaged" or time.time() - file.stat().st_mtime > UNUSED_SECONDS:
            file.unlink(missing_ok=True)


def _identity(file: Path) -> str:
    """What Java compares of a file: it does not look into JARs, nor at parts of seconds, which images of containers
    lose.
    """
    found = file.stat()
    return f"{file}|{found.st_size}|{int(found.st_mtime)}"


def _checksum(file: Path) -> str:
    """A checksum of the file that also counts its length: a cut file has another."""
    total = 0
    with file.open("rb") as stream:
        while part := stream.read(CHUNK):
            total = zlib.crc32(part, total)
    return f"{total:08x}"
