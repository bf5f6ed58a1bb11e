"""What a gate can be called, and the file that it means."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from stagehold.code.unchanging_files import found_once

ENDINGS = (".yaml", ".json")
OF_PROJECT = "expectations"  # where a project folder of Great Expectations has its suites


def is_of_python(gate: str) -> bool:
    """Whether its suite is `module:name`, which code makes and no file holds."""
    return ":" in gate


def suite_files(suites: Path, project: Path) -> Mapping[str, Path]:
    """What a gate can be called, and the file that it means: `NAME` for one of ``suites``, `FOLDER/NAME` for a suite of
    a project folder of Great Expectations in ``project``.
    """
    return found_once(("suites", str(suites), str(project)), lambda: _suite_files(suites, project))


def _suite_files(suites: Path, project: Path) -> Mapping[str, Path]:
    own = {file.stem: file for ending in ENDINGS for file in sorted(suites.glob(f"*{ending}"))}
    roots = sorted(project.glob(f"*/{OF_PROJECT}"))
    found = ((root, file) for root in roots for file in sorted(root.rglob("*.json")))
    named = {f"{root.parent.name}/{file.relative_to(root).with_suffix('').as_posix()}": file for root, file in found}
    return {**named, **own}
