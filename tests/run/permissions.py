"""Places that nobody can write to, root included: permission of the system, which no code of ours can forget."""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WRITING = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1  # linux/prctl.h, linux/capability.h


def obey_permissions() -> None:
    """In a child, before it becomes a program: that and all that it starts may write only where permissions say so.
    Others than root may not do more anyway.
    """
    if os.geteuid() == 0 and ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0):
        raise OSError("the right to override permissions cannot be given up here")


@contextmanager
def read_only(*places: Path) -> Iterator[None]:
    """Nothing in these files and folders can be changed, added or deleted inside the block."""
    found = [each for place in places for each in (place, *place.rglob("*"))]
    modes = {path: path.stat().st_mode for path in found}
    for path, mode in modes.items():
        path.chmod(mode & ~WRITING)
    try:
        yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
