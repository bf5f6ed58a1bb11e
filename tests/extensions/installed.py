"""Packages that are installed as far as Python can tell: a module and a dist-info folder on the path."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def install(folder: Path, name: str, code: str, entry_points: Mapping[str, Mapping[str, str]]) -> None:
    """``entry_points`` are by group and name; ``folder`` has to be on the path."""
    (folder / f"{name}.py").write_text(code)
    facts = folder / f"{name}-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    groups = (
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in named.items())
        for group, named in entry_points.items()
    )
    (facts / "entry_points.txt").write_text("\n".join(groups))
