"""What a commit promises is written once: nothing becomes readable beside `publish`."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from stagehold.settings import PROJECT

LIBRARY = PROJECT / "include" / "stagehold"
OWN = LIBRARY / "run" / "delivery" / "publish.py"
TREES = {path: ast.parse(path.read_text()) for path in LIBRARY.rglob("*.py") if path != LIBRARY / "run" / "faults.py"}


def callers_of(method: str, first: str = "") -> list[Path]:
    """Files that call a method of anything by this name, with a first argument that ends so."""
    return [
        path
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method
        if not first or ast.unparse(node.args[0]).endswith(f".{first}")
    ]


def test_only_publish_has_a_committer_publish() -> None:
    assert callers_of("publish") == [OWN]


@pytest.mark.parametrize("point", ["BEFORE_PUBLISH", "AFTER_PUBLISH", "AFTER_RECORD"])
def test_the_fault_points_around_a_commit_are_reached_in_publish_alone(point: str) -> None:
    assert callers_of("reach", point) == [OWN]
