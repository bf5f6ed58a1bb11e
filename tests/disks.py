"""Small disks that tests fill, or mount for reading only."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


def _can_mount() -> bool:
    return os.geteuid() == 0 and not subprocess.run(["unshare", "--mount", "true"], check=False).returncode


needs_disks = pytest.mark.skipif(not _can_mount(), reason="nobody may mount a small disk on this machine")


@contextmanager
def small_disk(place: Path, *options: str, size: str = "1m") -> Iterator[Path]:
    """A disk at ``place``, over what was there."""
    place.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join((f"size={size}", *options)), "tmpfs", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def fill(disk: Path) -> None:
    with (disk / "filler").open("wb", buffering=0) as filler, suppress(OSError):
        while filler.write(b"x" * 4096):
            pass


def read_only(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
