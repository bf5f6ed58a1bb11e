"""An edit that neither the size nor the times of a file tell of."""

from __future__ import annotations

import os
from pathlib import Path


def edit_unseen(file: Path, old: str, new: str) -> None:
    """A second save within a second looks like that to Python, and a copy that keeps times to everybody."""
    before, text = file.stat(), file.read_text()
    assert len(old) == len(new)
    assert old in text
    file.write_text(text.replace(old, new))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
