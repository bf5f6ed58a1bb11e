"""Whether a stage's code looks at its interval: then the data of another one is not what it would make."""

from __future__ import annotations

import ast
from pathlib import Path

from stagehold.code.references import attributes
from stagehold.code.stage_code import reached_code

OF_THE_INTERVAL = frozenset({"interval", "logical_date", "seed"})  # what a context says of it
LOOKS_AT_EVERYTHING = frozenset({"getattr", "vars", "asdict", "astuple", "__dict__"})


def looks_at_interval(job: str, project: Path) -> bool:
    """As far as names tell: an attribute of such a name may be somebody else's, and counts all the same."""
    return any(_looks(statement) for _, statement in reached_code(job, project))


def _looks(statement: ast.stmt) -> bool:
    names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    return bool(attributes(statement) & (OF_THE_INTERVAL | LOOKS_AT_EVERYTHING) or names & LOOKS_AT_EVERYTHING)
