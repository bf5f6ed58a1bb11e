"""The tree of errors is as it is drawn, and each is known by one name, wherever it is written down."""

from __future__ import annotations

import ast
import pickle
import re
from pathlib import Path

import pytest

from stagehold import errors
from stagehold.errors import Fenced, InputsNeverCame, LedgerUnavailable, StageholdError, Terminal, Transient
from stagehold.plan.restart.error_facts import names_of
from stagehold.plan.restart.rules import RULES

LINE = re.compile(r"^ {4}(?P<stem>[| ]*)\+-- (?P<name>\w+)(?P<transient> ~)? {2,}(?P<said>\S.*)$", re.MULTILINE)
DEFINED = {
    node.name: path.stem
    for path in Path(errors.__file__).parent.glob("*.py")
    for node in ast.walk(ast.parse(path.read_text()))
    if isinstance(node, ast.ClassDef)
}
CLASSES = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and name in DEFINED}
ERRORS = {name: kind for name, kind in CLASSES.items() if issubclass(kind, StageholdError)}


def drawn() -> dict[str, tuple[str, bool]]:
    """For every error of the tree its parent, and whether it is marked as transient."""
    path, found = ["StageholdError"], {}
    for line in LINE.finditer(errors.__doc__ or ""):
        depth = len(line["stem"]) // 4 + 1
        path[depth:] = [line["name"]]
        found[line["name"]] = (path[depth - 1], line["transient"] is not None)
    return found


def test_the_tree_is_drawn_as_it_is() -> None:
    tree = drawn()
    assert {name: parent for name, (parent, _) in tree.items()} == {
        name: kind.__bases__[0].__name__ for name, kind in ERRORS.items() if kind is not StageholdError
    }
    marked = {name for name, (_, transient) in tree.items() if transient}
    assert marked == {name for name, kind in ERRORS.items() if issubclass(kind, Transient)} - {"Transient"}


def test_an_error_is_terminal_or_transient_unless_its_cause_says_so() -> None:
    families = {kind.__bases__[0] for kind in ERRORS.values()} | {Terminal, Transient}
    open_ones = {name for name, kind in ERRORS.items() if not issubclass(kind, (Terminal, Transient))}
    assert open_ones - {kind.__name__ for kind in families} == {"FunctionFailed", "SplitsUnlisted"}
    assert not any(issubclass(kind, Terminal) and issubclass(kind, Transient) for kind in ERRORS.values())


def test_every_class_is_exported() -> None:
    assert set(DEFINED) == set(CLASSES)
    assert {kind.__module__ for kind in CLASSES.values()} == {"stagehold.errors"}


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_the_name_that_rules_and_records_use_is_that_of_the_class(name: str) -> None:
    assert f"stagehold.errors:{name}" in names_of(CLASSES[name])


def test_the_errors_that_rules_name_are_there() -> None:
    named = {error for rule in RULES for error in rule.errors if error.startswith("stagehold.")}
    assert named <= {f"stagehold.errors:{name}" for name in ERRORS}
    assert "stagehold.errors:Fenced" in named


def test_an_error_says_its_family_and_whether_another_try_may_help() -> None:
    assert {"stagehold.errors:LeaseError", "stagehold.errors:Terminal"} < names_of(Fenced)
    assert {"stagehold.errors:LedgerError", "stagehold.errors:Transient"} < names_of(LedgerUnavailable)
    assert pickle.loads(pickle.dumps(Fenced)) is Fenced


def test_an_error_goes_to_another_process_as_it_is_with_its_notes() -> None:
    error = InputsNeverCame("totals", {"rows": [1, 2]})
    error.add_note("a note")
    come = pickle.loads(pickle.dumps(error))
    assert (type(come), str(come), come.missing, come.__notes__) == (
        InputsNeverCame,
        str(error),
        {"rows": [1, 2]},
        ["a note"],
    )
