"""Suites that are objects of Python: made by the project's code in a process of its own, and read as they would be from
a file of Great Expectations.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

from stagehold.code.project import find_module
from stagehold.code.stage_code import code_fingerprint
from stagehold.errors import InvalidSpec, SpecProblem
from stagehold.model.keys.compute_key import digest

AT_MOST = 120  # seconds
SAID = "stagehold suite: "  # before the line with the suite, among whatever an import prints
EXPORT = f"""
import importlib, json, sys
gate, project = sys.argv[1:]
sys.path.insert(0, project)
module, _, name = gate.partition(":")
found = getattr(importlib.import_module(module), name)
suite = found() if callable(found) else found
print({SAID!r} + json.dumps(suite.to_json_dict()))
"""


def suite_of_python(gate: str, project: Path) -> dict[str, Any]:
    """What ``module:name``, a suite or a function that makes one, would be as a file.

    :raises InvalidSpec: it makes none; with what Python said.
    """
    return dict(_exported(gate, project, code_of(gate, project)))


def code_of(gate: str, project: Path) -> str:
    """Changes when anything of the project does that the suite is made of; of what nobody can follow, when its own file
    does.
    """
    file = find_module(gate.partition(":")[0], project)
    own = file.read_text(encoding="utf-8") if file and file.is_file() else ""
    return code_fingerprint(gate, project).value or digest((own,))


@lru_cache(maxsize=64)
def _exported(gate: str, project: Path, code: str) -> tuple[tuple[str, Any], ...]:  # noqa: ARG001 - another code, another suite
    command = [sys.executable, "-c", EXPORT, gate, str(project)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=AT_MOST, cwd=project, check=False)
    except subprocess.TimeoutExpired as error:
        raise _problem(gate, f"it took more than {AT_MOST} seconds") from error
    told = [line.removeprefix(SAID) for line in done.stdout.splitlines() if line.startswith(SAID)]
    if done.returncode or not told:
        raise _problem(gate, (done.stderr.strip().splitlines() or ["it made nothing"])[-1])
    return tuple(json.loads(told[-1]).items())


def _problem(gate: str, why: str) -> InvalidSpec:
    return InvalidSpec(gate, [SpecProblem(0, "gate", why, "an ExpectationSuite, or a function that returns one")])
